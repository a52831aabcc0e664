// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"
#include "base/ed25519.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "lockstep/v1/audit.pb.h"
#include "rpc/address.h"
#include "rpc/rpc_error.h"
#include "rpc/signed_request.h"

namespace lockstep::rpc {
namespace {

using ::testing::HasSubstr;

constexpr char kMethod[] = "/lockstep.v1.AuditService/AcquireLease";

TEST(ServerAddress, PlainTextStaysOnThisMachine) {
  for (const char* const here : {"localhost", "127.0.0.1", "127.200.3.4", "[::1]"}) {
    const auto address = ParseServerAddress(absl::StrCat("http://", here, ":7440"));
    ASSERT_THAT(address, IsOk()) << here;
    EXPECT_FALSE(address->tls);
    EXPECT_EQ(address->target, absl::StrCat(here, ":7440"));
    EXPECT_TRUE(ParseServerAddress(absl::StrCat("https://", here, ":7440/"))->tls);
  }
  for (const char* const elsewhere :
       {"audit.example.com", "127.0.0.1.example.com", "localhost.example.com", "127.1", "128.0.0.1",
        "[::2]", "[::1", "::1]"}) {
    EXPECT_THAT(ParseServerAddress(absl::StrCat("http://", elsewhere, ":7440")),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("https://")))
        << elsewhere;
  }
  EXPECT_EQ(ParseServerAddress("https://audit.example.com:7440")->target, "audit.example.com:7440");
  EXPECT_EQ(ParseServerAddress("https://audit.example.com/")->target, "audit.example.com:443");
  EXPECT_EQ(ParseServerAddress("https://[2001:db8::1]")->target, "[2001:db8::1]:443");
}

TEST(ServerAddress, SaysWhatItExpects) {
  for (const char* const bad :
       {"", "https://", "http://127.0.0.1", "http://[::1]", "audit.example.com:443", "ftp://a:1",
        "https://a:0", "https://a:65536", "https://a:x", "https://a:1/path", "https://:1"}) {
    EXPECT_THAT(ParseServerAddress(bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("https://HOST:PORT")))
        << bad;
  }
}

TEST(RpcError, AReasonGoesThere) {
  const absl::Status sent = WithReason(absl::NotFoundError("no such lease"), "LEASE_UNKNOWN",
                                       {{"lease", "12"}, {"hint", "none"}});
  const absl::Status got = FromGrpc(ToGrpc(sent));
  EXPECT_EQ(got.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(got.message(), "no such lease");
  EXPECT_EQ(ReasonOf(got), "LEASE_UNKNOWN");
  EXPECT_EQ(MetadataOf(got), (Metadata{{"hint", "none"}, {"lease", "12"}}));
}

TEST(RpcError, WhatTheCallerCannotHelpStaysHere) {
  const grpc::Status sent = ToGrpc(absl::DataLossError("/var/lib/lockstep/secret is damaged"));
  EXPECT_EQ(sent.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(sent.error_message(), ::testing::Not(HasSubstr("secret")));
  EXPECT_EQ(ReasonOf(FromGrpc(sent)), "INTERNAL");
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kResourceExhausted,
        absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kCancelled}) {
    const grpc::Status kept = ToGrpc(absl::Status(code, "INSERT INTO secret: SQLite code 5"));
    EXPECT_EQ(static_cast<int>(kept.error_code()), static_cast<int>(code));
    EXPECT_THAT(kept.error_message(), ::testing::Not(HasSubstr("secret")));
    EXPECT_THAT(kept.error_details(), ::testing::Not(HasSubstr("secret")));
  }
}

TEST(RpcError, MessagesAreUtf8AndBounded) {
  const std::string hostile = "\xff\xc0\x80 caf\xc3\xa9 \xf0\x9f\x98" + std::string(5000, 'x');
  const grpc::Status sent = ToGrpc(WithReason(absl::InvalidArgumentError(hostile), "X"));
  EXPECT_THAT(sent.error_message(), HasSubstr("??? caf\xc3\xa9 ???"));
  EXPECT_LE(sent.error_message().size(), 1024u + 3);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(sent.error_details()));
  EXPECT_EQ(details.details_size(), 1);
}

TEST(RpcError, AnswersOfOthersAreRead) {
  EXPECT_EQ(ReasonOf(FromGrpc(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no such method"))),
            "");
  EXPECT_EQ(FromGrpc(grpc::Status(static_cast<grpc::StatusCode>(99), "?")).code(),
            absl::StatusCode::kUnknown);
  EXPECT_EQ(ReasonOf(FromGrpc(grpc::Status(grpc::StatusCode::ABORTED, "", "no protobuf \xff"))),
            "");
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  info.set_reason("LEASE_UNKNOWN");
  info.set_domain("elsewhere");
  details.add_details()->PackFrom(info);
  const grpc::Status foreign(grpc::StatusCode::ABORTED, "", details.SerializeAsString());
  EXPECT_EQ(ReasonOf(FromGrpc(foreign)), "");
}

class SignedRequestTest : public ::testing::Test {
 protected:
  SignedRequestTest() {
    request_.set_steps_max(7);
    request_.mutable_header()->set_request_id("0123456789abcdef");
  }

  absl::StatusOr<Ed25519PublicKey> Verify(const v1::SignedRequest& request,
                                          const char* method = kMethod,
                                          const char* origin = "audit.example/log") {
    return VerifyRequest(request, method, origin, &got_);
  }

  const Ed25519PrivateKey key_ = Ed25519PrivateKey::Generate().value();
  v1::AcquireLeaseRequest request_;
  v1::AcquireLeaseRequest got_;
};

TEST_F(SignedRequestTest, HoldsForItsMethodAndCoordinatorOnly) {
  const v1::SignedRequest made = SignRequest(key_, kMethod, "audit.example/log", request_);
  EXPECT_THAT(Verify(made), IsOkAndHolds(key_.public_key()));
  EXPECT_EQ(got_.steps_max(), 7u);
  for (const auto& status : {Verify(made, "/lockstep.v1.AuditService/Heartbeat").status(),
                             Verify(made, kMethod, "other.example/log").status(),
                             // The parts cannot be shifted against each other.
                             Verify(made, "/lockstep.v1.AuditService/Acquire").status()}) {
    EXPECT_EQ(ReasonOf(status), "SIGNATURE_INVALID");
  }
}

TEST_F(SignedRequestTest, EveryBitCounts) {
  const v1::SignedRequest made = SignRequest(key_, kMethod, "audit.example/log", request_);
  const auto flipped = [](std::string bytes, size_t bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    return bytes;
  };
  for (size_t bit = 0; bit < made.payload().size() * 8; ++bit) {
    v1::SignedRequest changed = made;
    changed.set_payload(flipped(made.payload(), bit));
    EXPECT_EQ(ReasonOf(Verify(changed).status()), "SIGNATURE_INVALID") << "payload bit " << bit;
  }
  for (size_t bit = 0; bit < 64 * 8; ++bit) {
    v1::SignedRequest changed = made;
    changed.set_signature(flipped(made.signature(), bit));
    EXPECT_EQ(ReasonOf(Verify(changed).status()), "SIGNATURE_INVALID") << "signature bit " << bit;
  }
  for (size_t bit = 0; bit < 32 * 8; ++bit) {
    v1::SignedRequest changed = made;
    changed.set_public_key(flipped(made.public_key(), bit));
    EXPECT_EQ(ReasonOf(Verify(changed).status()), "SIGNATURE_INVALID") << "key bit " << bit;
  }
}

TEST_F(SignedRequestTest, WhatIsNoRequestIsRefused) {
  v1::SignedRequest empty;
  EXPECT_EQ(ReasonOf(Verify(empty).status()), "SIGNATURE_INVALID");
  v1::SignedRequest made = SignRequest(key_, kMethod, "audit.example/log", request_);
  made.set_public_key(std::string(32, '\0'));  // of low order
  EXPECT_EQ(ReasonOf(Verify(made).status()), "SIGNATURE_INVALID");
}

}  // namespace
}  // namespace lockstep::rpc
