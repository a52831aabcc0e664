// SPDX-License-Identifier: Apache-2.0
//
// The text that is signed, and the header that carries the signature.
#include "net/signed_request.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::net {
namespace {

RequestSignature Signature() {
  RequestSignature signature{.time = 1700000000};
  signature.key.fill(0x0a);
  signature.nonce.fill(0x0b);
  signature.signature.fill(0xc0);
  return signature;
}

// As docs/artifacts.md has it, to the byte.
TEST(SignedRequestTest, SigningText) {
  RequestClaim claim{.method = "PUT",
                     .path = "/artifact/00ff",
                     .audience = "example.org/log",
                     .content_range = "bytes 0-9/10",
                     .time = 1700000000};
  claim.nonce.fill(0x0b);
  EXPECT_THAT(SigningText(claim),
              IsOkAndHolds("lockstep-request-v1\nPUT\n/artifact/00ff\nexample.org/log\n"
                           "bytes 0-9/10\n1700000000\n0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b\n"));
}

// Or one claim could be read as another.
TEST(SignedRequestTest, LineFeedsAreRefused) {
  for (std::string RequestClaim::*field : {&RequestClaim::method, &RequestClaim::path,
                                           &RequestClaim::audience, &RequestClaim::content_range}) {
    RequestClaim claim;
    claim.*field = "a\nb";
    EXPECT_THAT(SigningText(claim), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(SignedRequestTest, AuthorizationBothWays) {
  const std::string text = FormatAuthorization(Signature());
  EXPECT_THAT(text, ::testing::StartsWith("lockstep-ed25519 key=0a0a"));
  EXPECT_THAT(ParseAuthorization(text), IsOkAndHolds(Signature()));
}

TEST(SignedRequestTest, AnyOtherTextIsRefused) {
  const std::string text = FormatAuthorization(Signature());
  for (const std::string& bad :
       {std::string(), std::string("Basic abc"), text + " ", " " + text,
        text.substr(0, text.size() - 1), absl::StrReplaceAll(text, {{"c0", "C0"}}),
        absl::StrReplaceAll(text, {{"1700000000", "01700000000"}}),
        absl::StrReplaceAll(text, {{"1700000000", "-1"}}),
        absl::StrReplaceAll(text, {{"1700000000", ""}}),
        absl::StrReplaceAll(text, {{"1700000000", "9223372036854775808"}}),
        absl::StrReplaceAll(text, {{"key=", "Key="}}), absl::StrReplaceAll(text, {{",", ", "}})}) {
    EXPECT_THAT(ParseAuthorization(bad), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

}  // namespace
}  // namespace lockstep::net
