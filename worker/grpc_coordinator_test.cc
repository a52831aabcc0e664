// SPDX-License-Identifier: Apache-2.0
#include "worker/grpc_coordinator.h"

#include <memory>
#include <string>
#include <vector>

#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc_error.h"
#include "worker/testing/fake_coordinator.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class GrpcCoordinatorTest : public ::testing::Test {
 protected:
  GrpcCoordinatorOptions Options() {
    return {.address = server_.address(),
            .attempt_id = std::string(16, 'a'),
            .tries_max = 3,
            .interrupted = [this] { return interrupted_; },
            .clock = &clock_,
            .sleep =
                [this](absl::Duration wait) {
                  waits_.push_back(wait);
                  clock_.Advance(wait);
                },
            .random = [] { return 0.5; }};
  }
  std::unique_ptr<Coordinator> Make() { return ConnectGrpc(key_, Options()).value(); }

  FakeCoordinator server_;
  FakeClock clock_{absl::Now()};
  const Ed25519PrivateKey key_ = Ed25519PrivateKey::Generate().value();
  std::vector<absl::Duration> waits_;
  bool interrupted_ = false;
};

TEST_F(GrpcCoordinatorTest, AddressesAreChecked) {
  for (const char* bad : {"", "host:1", "ftp://host:1", "https://", "https://:1", "https://host:0",
                          "https://host:65536", "https://host:1/path", "http://example.com:1",
                          "http://localhost.example.com:1"}) {
    GrpcCoordinatorOptions options = Options();
    options.address = bad;
    EXPECT_THAT(ConnectGrpc(key_, options), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
  for (const char* good :
       {"https://example.com:1", "https://example.com", "http://localhost:1", "http://[::1]:1/"}) {
    GrpcCoordinatorOptions options = Options();
    options.address = good;
    EXPECT_THAT(ConnectGrpc(key_, options), IsOk()) << good;
  }
}

TEST_F(GrpcCoordinatorTest, SaysWhoItIs) {
  const absl::StatusOr<ServerInfo> info = Make()->Connect();
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->origin, "example.com/log");
  EXPECT_EQ(info->log_key, server_.log_key());
}

TEST_F(GrpcCoordinatorTest, NoWorkIsAnAnswer) {
  const auto answer = Make()->AcquireLease({});
  ASSERT_THAT(answer, IsOk());
  EXPECT_FALSE(answer->has_lease());
  EXPECT_EQ(answer->no_work_reason(), "nothing to do");
  ASSERT_THAT(server_.headers(), SizeIs(1));
  EXPECT_EQ(server_.headers()[0].attempt_id(), std::string(16, 'a'));
  EXPECT_EQ(server_.headers()[0].request_id().size(), 16u);
}

TEST_F(GrpcCoordinatorTest, TriesTheSameRequestAgainWhileUnavailable) {
  server_.Fail("AcquireLease", absl::UnavailableError("busy"), 2);
  ASSERT_THAT(Make()->AcquireLease({}), IsOk());
  const auto headers = server_.headers();
  ASSERT_THAT(headers, SizeIs(3));
  EXPECT_EQ(headers[0].SerializeAsString(), headers[2].SerializeAsString());
  EXPECT_THAT(waits_, ElementsAre(absl::Milliseconds(750), absl::Milliseconds(1500)));
}

// gRPC's own limit is 4 MiB; a record is an entry of some 900 bytes.
TEST_F(GrpcCoordinatorTest, TakesALeaseOfManyRecords) {
  v1::Lease lease;
  for (int i = 0; i < 8000; ++i) lease.add_records(std::string(1000, 'r'));
  server_.GiveLease(lease);
  const auto answer = Make()->AcquireLease({});
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->lease().records_size(), 8000);
}

TEST_F(GrpcCoordinatorTest, ALostAnswerDoesNotTakeASecondLease) {
  v1::Lease lease;
  lease.set_lease_id("first");
  server_.GiveLease(lease);
  lease.set_lease_id("second");
  server_.GiveLease(lease);
  server_.Fail("AcquireLease", absl::UnavailableError("cut off"), 1, /*done=*/true);
  EXPECT_EQ(Make()->AcquireLease({})->lease().lease_id(), "first");
}

TEST_F(GrpcCoordinatorTest, GivesUpAndSaysSo) {
  server_.Fail("Heartbeat", absl::UnavailableError("busy"), 100);
  EXPECT_THAT(Make()->Heartbeat({}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not available now")));
  EXPECT_THAT(waits_, SizeIs(2));
}

TEST_F(GrpcCoordinatorTest, OtherErrorsAreNotTriedAgain) {
  server_.Fail("Heartbeat", rpc::WithReason(absl::NotFoundError("gone"), "LEASE_UNKNOWN"), 100);
  const auto answer = Make()->Heartbeat({});
  EXPECT_EQ(rpc::ReasonOf(answer.status()), "LEASE_UNKNOWN");
  EXPECT_THAT(waits_, SizeIs(0));
}

TEST_F(GrpcCoordinatorTest, AWrongClockHereDoesNotMatter) {
  const std::unique_ptr<Coordinator> coordinator = Make();
  for (const absl::Duration off : {absl::Hours(24), -absl::Hours(48)}) {
    clock_.SetNow(clock_.Now() + off);
    ASSERT_THAT(coordinator->AcquireLease({}), IsOk());
  }
  EXPECT_THAT(server_.headers(), SizeIs(2));  // none of them had to be sent twice
}

TEST_F(GrpcCoordinatorTest, AClockThatIsSetThereIsFollowed) {
  const std::unique_ptr<Coordinator> coordinator = Make();
  ASSERT_THAT(coordinator->AcquireLease({}), IsOk());
  server_.SetTime(absl::Now() + absl::Hours(24));
  ASSERT_THAT(coordinator->AcquireLease({}), IsOk());
  const auto headers = server_.headers();
  ASSERT_THAT(headers, SizeIs(3));
  EXPECT_NE(headers[1].request_id(), headers[2].request_id());
}

TEST_F(GrpcCoordinatorTest, AnotherLogUnderTheSameAddressIsNoticed) {
  const std::unique_ptr<Coordinator> coordinator = Make();
  ASSERT_THAT(coordinator->Connect(), IsOk());
  server_.Stop();
  FakeCoordinator other("example.com/other");
  other.Stop();
  other.Start(std::stoi(server_.address().substr(server_.address().rfind(':') + 1)));
  EXPECT_THAT(coordinator->Connect(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(GrpcCoordinatorTest, AnInterruptEndsTheWait) {
  server_.Fail("Heartbeat", absl::UnavailableError("busy"), 100);
  const std::unique_ptr<Coordinator> coordinator = Make();
  ASSERT_THAT(coordinator->Connect(), IsOk());
  interrupted_ = true;
  EXPECT_THAT(coordinator->Heartbeat({}), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace lockstep::worker
