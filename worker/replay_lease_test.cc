// SPDX-License-Identifier: Apache-2.0
//
// Leases of the golden run, replayed from what a web server has, and what of it reaches the log.
#include "worker/replay_lease.h"

#include <memory>
#include <optional>
#include <string>

#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "engine/backend/cpu_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/grpc_coordinator.h"
#include "worker/outbox_sender.h"
#include "worker/testing/small_work.h"

namespace lockstep::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ReplayLeaseTest : public ::testing::Test {
 protected:
  ReplayLeaseTest() {
    net::HttpOptions options;
    options.tries_max = 1;
    client_ = std::make_unique<net::HttpClient>(options);
    OpenCache();
    outbox_ = Outbox::Open(folder_ / "outbox").value();
    witness_ = ThisWitness(2).value();
  }
  void OpenCache() {
    cache_.reset();
    std::filesystem::create_directories(folder_ / "cache/artifacts");
    cache_ = net::ArtifactCache::Open(folder_ / "cache/artifacts", {.bytes_max = 1 << 30}).value();
  }

  LeaseReport Replay(const v1::Lease& message, absl::Duration checkpoint_every = absl::Hours(1),
                     bool keep_last = false) {
    const WorkLease lease = ReadLease(message).value();
    const WorkFolder folder = WorkFolder::Open(folder_ / "cache", lease).value();
    const ReplaySetting setting = {.backend = *backend_,
                                   .folder = folder,
                                   .cache = *cache_,
                                   .client = *client_,
                                   .outbox = *outbox_,
                                   .key = work_.key(),
                                   .witness = witness_,
                                   .origin = "example.com/log",
                                   .mirrors = {ArtifactPlace(work_.http().address())},
                                   .memory = {},
                                   .checkpoint_every = checkpoint_every,
                                   .keep_last = keep_last,
                                   .clock = &clock_};
    return ReplayLease(setting, lease,
                       {.interrupted = [this] { return interrupted_; },
                        .stepped =
                            [this](uint64_t next) {
                              ++stepped_;
                              if (stop_at_ == next) interrupted_ = true;
                            }});
  }
  // What the log makes of the outbox.
  audit::StepState Deliver(uint64_t step) {
    const auto coordinator = ConnectGrpc(work_.key(), {.address = work_.coordinator().address(),
                                                       .attempt_id = std::string(16, 'a'),
                                                       .tries_max = 1})
                                 .value();
    SendReport report;
    const absl::Status status = SendOutbox(*outbox_, *coordinator, coordinator->Connect().value(),
                                           work_.key(), nullptr, &report);
    LOCKSTEP_CHECK(status.ok(), "{}", status);
    return work_.coordinator().StateOfStep(work_.run().run_id(), step);
  }
  std::string RunPath() const {
    return folder_ / ("cache/runs/" + SmallRun::Get().run_id().ToHex());
  }

  TemporaryFolder folder_;
  FakeClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  SmallWork work_;
  std::unique_ptr<engine::Backend> backend_ = engine::CreateCpuBackend(2).value();
  std::unique_ptr<net::HttpClient> client_;
  std::unique_ptr<net::ArtifactCache> cache_;
  std::unique_ptr<Outbox> outbox_;
  Witness witness_;
  bool interrupted_ = false;
  std::optional<uint64_t> stop_at_;
  int stepped_ = 0;
};

TEST_F(ReplayLeaseTest, FromTheStartOfTheRunEveryStepIsConfirmed) {
  const LeaseReport report = Replay(work_.Lease(0, 3));
  ASSERT_EQ(report.verdict, audit::Verdict::kMatch) << report.reason;
  EXPECT_EQ(report.attested, 3u);
  EXPECT_EQ(report.next_step, 3u);
  for (uint64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(Deliver(step), audit::StepState::kConfirmed) << step;
  }
  EXPECT_EQ(Deliver(3), audit::StepState::kUnaudited);
}

TEST_F(ReplayLeaseTest, FromAStateByDigestWithStepsBeforeTheFirst) {
  const LeaseReport report = Replay(work_.Lease(3, 4, /*from_state=*/true));
  ASSERT_EQ(report.verdict, audit::Verdict::kMatch) << report.reason;
  EXPECT_EQ(report.attested, 1u);  // step 2 is replayed, and not asked for
  EXPECT_EQ(stepped_, 2);
  EXPECT_EQ(Deliver(3), audit::StepState::kConfirmed);
  EXPECT_EQ(Deliver(2), audit::StepState::kUnaudited);
}

TEST_F(ReplayLeaseTest, AFalseRecordIsAMismatchWithBothHashes) {
  const LeaseReport report = Replay(work_.WithFalseRecord(work_.Lease(0, 2)));
  ASSERT_EQ(report.verdict, audit::Verdict::kMismatch) << report.reason;
  EXPECT_EQ(report.difference->field, "parameters");
  EXPECT_EQ(report.attested, 2u);
  ASSERT_THAT(outbox_->Pending(), SizeIs(2));
  const OutboxItem item = outbox_->Read(2).value();
  EXPECT_THAT(item.leaves, IsEmpty());
  EXPECT_FALSE(item.trainer_signed);
  EXPECT_TRUE(outbox_->Read(1)->trainer_signed);
  const auto attestation =
      std::get<audit::Attestation>(audit::LogEntry::Parse(item.envelope)->payload());
  EXPECT_EQ(attestation.verdict, audit::Verdict::kMismatch);
  EXPECT_EQ(attestation.computed_record, work_.run().records[1]);
  EXPECT_EQ(attestation.replayed_at, clock_.Now());
}

TEST_F(ReplayLeaseTest, ADifferenceBeforeTheLeaseIsNoStepToAttest) {
  v1::Lease lease = work_.Lease(1, 2);
  audit::StepRecord first = work_.run().records[0];
  first.loss += 1;
  audit::StepRecord second = work_.run().records[1];
  second.previous_chain = audit::ChainAfter(first);
  *lease.mutable_records(0) = work_.RecordEntry(first);
  *lease.mutable_records(1) = work_.RecordEntry(second);
  const LeaseReport report = Replay(lease);
  EXPECT_EQ(report.verdict, audit::Verdict::kInconclusive);
  EXPECT_THAT(report.reason, StatusIs(absl::StatusCode::kFailedPrecondition,
                                      AllOf(HasSubstr("step 0"), HasSubstr("loss"))));
  EXPECT_THAT(outbox_->Pending(), IsEmpty());
}

TEST_F(ReplayLeaseTest, InterruptedItGoesOnFromTheLastFinishedStep) {
  stop_at_ = 2;
  const LeaseReport first = Replay(work_.Lease(0, 4));
  EXPECT_EQ(first.verdict, audit::Verdict::kInconclusive);
  EXPECT_THAT(first.reason, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(first.attested, 2u);
  interrupted_ = false;
  stop_at_.reset();
  stepped_ = 0;
  const LeaseReport second = Replay(work_.Lease(0, 4));
  ASSERT_EQ(second.verdict, audit::Verdict::kMatch) << second.reason;
  EXPECT_EQ(second.attested, 2u);
  EXPECT_EQ(stepped_, 2);  // and no step twice
  EXPECT_EQ(Deliver(3), audit::StepState::kConfirmed);
}

TEST_F(ReplayLeaseTest, AStateOfOurOwnThatIsDamagedIsDoneWithout) {
  stop_at_ = 2;
  Replay(work_.Lease(0, 4));
  interrupted_ = false;
  stop_at_.reset();
  const std::string path = RunPath() + "/checkpoints/00000002/parameters.safetensors";
  std::string bytes = ReadBytes(path);
  ASSERT_GT(bytes.size(), 2000u);
  bytes[bytes.size() - 100] ^= 1;
  WriteBytes(path, bytes);
  stepped_ = 0;
  const LeaseReport report = Replay(work_.Lease(0, 4));
  ASSERT_EQ(report.verdict, audit::Verdict::kMatch) << report.reason;
  EXPECT_EQ(stepped_, 4);
  EXPECT_EQ(report.attested, 2u);  // two were attested before
}

TEST_F(ReplayLeaseTest, StatesAreSavedOnTheWayAndOnlyTheLastIsKept) {
  const LeaseReport report = Replay(work_.Lease(0, 4), absl::ZeroDuration(), /*keep_last=*/true);
  ASSERT_EQ(report.verdict, audit::Verdict::kMatch) << report.reason;
  EXPECT_NE(report.kept_state, "");
  const auto run = engine::RunFolder::Open(RunPath());
  ASSERT_THAT(run, IsOk());
  EXPECT_THAT(run->Checkpoints(), IsOkAndHolds(::testing::ElementsAre(4)));
}

TEST_F(ReplayLeaseTest, NothingIsAttestedTwice) {
  ASSERT_EQ(Replay(work_.Lease(0, 2)).verdict, audit::Verdict::kMatch);
  const LeaseReport again = Replay(work_.Lease(0, 2));
  EXPECT_EQ(again.verdict, audit::Verdict::kMatch);
  EXPECT_EQ(again.attested, 0u);
  EXPECT_THAT(outbox_->Pending(), SizeIs(2));
}

TEST_F(ReplayLeaseTest, ArtifactsThatAreNotThereAreTheReason) {
  v1::Lease lease = work_.Lease(2, 4, /*from_state=*/true);
  lease.mutable_start()->mutable_files(0)->set_sha256(std::string(32, 'x'));
  const LeaseReport report = Replay(lease);
  EXPECT_EQ(report.verdict, audit::Verdict::kInconclusive);
  EXPECT_THAT(report.reason, StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace lockstep::worker
