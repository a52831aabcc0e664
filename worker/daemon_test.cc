// SPDX-License-Identifier: Apache-2.0
//
// The daemon against a coordinator over gRPC and artifacts over HTTP, with a machine that is made
// up.
#include "worker/daemon.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/encoding.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc_error.h"
#include "worker/grpc_coordinator.h"
#include "worker/testing/small_work.h"

namespace lockstep::worker {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// What a test says the machine is like.
class FakeProbe final : public SystemProbe {
 public:
  explicit FakeProbe(const std::atomic<bool>& on_battery) : on_battery_(on_battery) {}
  MachineState Read() override {
    MachineState state;
    state.on_battery = on_battery_.load();
    return state;
  }

 private:
  const std::atomic<bool>& on_battery_;
};

// Time at a thousand times its speed.
class FastClock final : public Clock {
 public:
  absl::Time Now() const override { return start_ + Monotonic(); }
  absl::Duration Monotonic() const override { return 1000 * RealClock().Monotonic(); }

 private:
  const absl::Time start_ = absl::Now() - 1000 * RealClock().Monotonic();
};

class DaemonTest : public ::testing::Test {
 protected:
  DaemonTest() {
    config_.coordinators = {work_.coordinator().address()};
    config_.data_folder = folder_ / "data";
    config_.cache_folder = folder_ / "cache";
    config_.threads = 2;
    config_.guest.disk_free_bytes_min = 0;
    std::filesystem::create_directories(folder_ / "data/keys");
    // The key that the coordinator knows.
    WriteKey(folder_ / "data/keys/worker.key");
  }
  ~DaemonTest() override { End(); }

  // OpenSSL's PKCS #8 of the key whose seed the test knows: a fixed head, and the seed.
  static void WriteKey(const std::string& path) {
    const Digest seed = Sha256(AsBytes(absl::StrCat("test key ", audit::WorkerKey(0))));
    std::string der = HexDecode("302e020100300506032b657004220420").value();
    der.append(seed.bytes.begin(), seed.bytes.end());
    WriteBytes(path, "-----BEGIN PRIVATE KEY-----\n" + Base64Encode(AsBytes(der)) +
                         "\n-----END PRIVATE KEY-----\n");
    LOCKSTEP_CHECK(chmod(path.c_str(), 0600) == 0);
  }

  absl::StatusOr<std::unique_ptr<Daemon>> Make(bool once) {
    DaemonOptions options;
    options.config = config_;
    options.once = once;
    options.connect = [](const std::string& address, const Ed25519PrivateKey& key,
                         const std::string& attempt, std::function<bool()> interrupted) {
      GrpcCoordinatorOptions grpc;
      grpc.address = address;
      grpc.attempt_id = attempt;
      grpc.tries_max = 1;
      grpc.interrupted = std::move(interrupted);
      return ConnectGrpc(key, grpc);
    };
    options.probe = std::make_unique<FakeProbe>(on_battery_);
    options.random = [] { return 0.0; };
    options.tick = tick_;
    options.backoff = backoff_;
    options.clock = clock_;
    return Daemon::Create(std::move(options));
  }
  void RunOnce(absl::StatusCode code = absl::StatusCode::kOk) {
    daemon_ = Make(/*once=*/true).value();
    const absl::Status status = daemon_->Run();
    ASSERT_EQ(status.code(), code) << status;
  }
  void Begin() {
    daemon_ = Make(/*once=*/false).value();
    thread_ = std::thread([this] { LOCKSTEP_CHECK(daemon_->Run().ok()); });
  }
  void End() {
    if (daemon_) daemon_->Stop();
    if (thread_.joinable()) thread_.join();
    daemon_.reset();
  }
  // Until something is so; a test that waits for what never comes fails.
  void Await(const std::function<bool()>& so, const char* what) {
    for (int i = 0; i < 6000; ++i) {
      if (so()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << "never: " << what;
  }
  audit::StepState State(uint64_t step) {
    return work_.coordinator().StateOfStep(work_.run().run_id(), step);
  }

  TemporaryFolder folder_;
  std::atomic<bool> on_battery_{false};
  std::atomic<bool> unplug_at_fetch_{false};  // of the first artifact
  SmallWork work_{[this](const net::testing::HttpRequest&) {
    if (unplug_at_fetch_) on_battery_ = true;
    return std::optional<net::testing::HttpReply>();
  }};
  WorkerConfig config_;
  absl::Duration tick_ = absl::Milliseconds(10);
  Backoff::Options backoff_ = {.first = absl::Milliseconds(20), .most = absl::Milliseconds(50)};
  const FastClock fast_clock_;
  const Clock* clock_ = &RealClock();  // outlives the daemon
  std::unique_ptr<Daemon> daemon_;
  std::thread thread_;
};

TEST_F(DaemonTest, NeedsACoordinatorAKeyAndItsFolderForItself) {
  config_.coordinators.clear();
  EXPECT_THAT(Make(true), StatusIs(absl::StatusCode::kInvalidArgument));
  config_.coordinators = {work_.coordinator().address()};
  const auto first = Make(true);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(Make(true), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("another lockstep-worker")));
  config_.data_folder = folder_ / "empty";
  EXPECT_THAT(Make(true), StatusIs(absl::StatusCode::kNotFound, HasSubstr("keys init")));
}

TEST_F(DaemonTest, ALeaseFromStateToRelease) {
  work_.coordinator().GiveLease(work_.Lease(2, 4, /*from_state=*/true));
  RunOnce();
  EXPECT_EQ(State(2), audit::StepState::kConfirmed);
  EXPECT_EQ(State(3), audit::StepState::kConfirmed);
  EXPECT_THAT(work_.coordinator().calls(), Contains("Release 1 "));
  EXPECT_GE(work_.coordinator().CountCalls("Heartbeat"), 1);
  const nlohmann::json status = daemon_->Status();
  EXPECT_EQ(status["steps_attested"], 2);
  EXPECT_EQ(status["outbox"]["pending"], 0);
  EXPECT_FALSE(daemon_->found_mismatch());
}

TEST_F(DaemonTest, AMismatchIsFoundAndNotPassedOver) {
  work_.coordinator().GiveLease(work_.WithFalseRecord(work_.Lease(0, 1), audit::kTrainerKey));
  RunOnce(absl::StatusCode::kDataLoss);
  EXPECT_TRUE(daemon_->found_mismatch());
  // This log has the honest record, and says that the false one was a test: of a record with the
  // trainer's signature, that is not taken.
  EXPECT_EQ(daemon_->Status()["outbox"]["pending"], 1);
  EXPECT_EQ(work_.coordinator().CountCalls("Release"), 0);
}

TEST_F(DaemonTest, ATestIsPassed) {
  // The record is false on purpose: what is said of it is in no log, and settled all the same.
  work_.coordinator().GiveLease(work_.WithFalseRecord(work_.Lease(0, 1)));
  RunOnce();
  EXPECT_FALSE(daemon_->found_mismatch());
  EXPECT_EQ(daemon_->Status()["tests_passed"], 1);
  EXPECT_EQ(daemon_->Status()["outbox"]["refused"], 0);
  EXPECT_EQ(daemon_->Status()["outbox"]["pending"], 0);
  EXPECT_THAT(work_.coordinator().calls(), Contains("Release 1 "));
}

TEST_F(DaemonTest, WhatEverybodyReadsHasNoPlacesOfThisMachine) {
  work_.coordinator().GiveLease(work_.Lease(0, 1));
  daemon_ = Make(/*once=*/true).value();
  std::filesystem::remove_all(folder_ / "cache/runs");
  WriteBytes(folder_ / "cache/runs", "a file where a folder should be");
  const absl::Status status = daemon_->Run();
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.path()));
  EXPECT_THAT(work_.coordinator().calls(),
              Contains(::testing::AllOf(HasSubstr("Release 3"), HasSubstr("(a path)"))));
  EXPECT_THAT(work_.coordinator().calls(), Each(Not(HasSubstr(folder_.path()))));
}

TEST_F(DaemonTest, ALeaseThatMakesNoSenseIsGivenBack) {
  v1::Lease lease = work_.Lease(0, 2);
  lease.set_end_step(0);
  work_.coordinator().GiveLease(lease);
  RunOnce(absl::StatusCode::kDataLoss);
  EXPECT_EQ(work_.coordinator().CountCalls("Release 3 lease: steps"), 1);
}

TEST_F(DaemonTest, FiveLeasesThatComeToNothingPauseIt) {
  for (int i = 0; i < 8; ++i) {
    v1::Lease lease = work_.Lease(0, 2);
    lease.clear_records();
    work_.coordinator().GiveLease(lease);
  }
  Begin();
  Await([&] { return daemon_->Status()["state"] == "paused"; }, "paused");
  Await([&] { return work_.coordinator().CountCalls("Release 3") >= kFailuresMax; }, "given back");
  EXPECT_EQ(work_.coordinator().CountCalls("Release 3"), kFailuresMax);
  EXPECT_THAT(daemon_->Status().value("reason", ""), HasSubstr("records"));
  daemon_->Resume();
  Await([&] { return work_.coordinator().CountCalls("Release 3") > kFailuresMax; }, "resumed");
}

TEST_F(DaemonTest, AGuestPausesAndSaysWhy) {
  on_battery_ = true;
  work_.coordinator().GiveLease(work_.Lease(0, 1));
  Begin();
  Await([&] { return daemon_->Status().value("reason", "") != ""; }, "paused");
  EXPECT_THAT(daemon_->Status().value("reason", ""), HasSubstr("on battery"));
  EXPECT_EQ(work_.coordinator().CountCalls("AcquireLease"), 0);
  on_battery_ = false;
  Await([&] { return State(0) == audit::StepState::kConfirmed; }, "confirmed");
  daemon_->Pause();
  Await([&] { return daemon_->Status()["state"] == "paused"; }, "asked to pause");
  EXPECT_EQ(daemon_->Status()["reason"], "asked to");
}

TEST_F(DaemonTest, ALongPauseGivesTheLeaseUp) {
  config_.release_after = absl::Milliseconds(50);
  unplug_at_fetch_ = true;
  work_.coordinator().GiveLease(work_.Lease(0, 4));
  Begin();
  Await([&] { return work_.coordinator().CountCalls("Release 2") > 0; }, "given back");
}

TEST_F(DaemonTest, WhatTheCoordinatorHasNoUseForIsLeft) {
  work_.coordinator().SetGoOn(false);
  work_.coordinator().GiveLease(work_.Lease(0, 4));
  RunOnce();
  // Given back, so that it does not count as one that ran out.
  EXPECT_EQ(work_.coordinator().CountCalls("Release 2"), 1);
  EXPECT_EQ(daemon_->Status()["failures_in_a_row"], 0);
}

TEST_F(DaemonTest, ALeaseThatCannotBeKeptIsNotTaken) {
  std::filesystem::create_directories(folder_ / "data");
  WriteBytes(folder_ / "data/leases", "in the way");
  EXPECT_FALSE(Make(true).ok());
  std::filesystem::remove(folder_ / "data/leases");
  daemon_ = Make(/*once=*/false).value();
  // As a full disk has it: nothing new can be written.
  std::filesystem::remove(folder_ / "data/leases");
  for (int i = 0; i < 3; ++i) work_.coordinator().GiveLease(work_.Lease(0, 2));
  thread_ = std::thread([this] { LOCKSTEP_CHECK(daemon_->Run().ok()); });
  Await([&] { return work_.coordinator().CountCalls("Release 2") == 3; }, "given back");
  EXPECT_EQ(work_.coordinator().CountCalls("Attest"), 0);
  EXPECT_NE(daemon_->Status()["coordinators"][0].value("last_error", ""), "");
}

TEST_F(DaemonTest, ACopyOfTheFolderWaitsAndItsOwnerIsTold) {
  work_.coordinator().Fail("AcquireLease",
                           rpc::WithReason(absl::FailedPreconditionError("in use"), "KEY_IN_USE",
                                           {{"retry_after_ms", "3000000"}}),
                           100);
  Begin();
  Await([&] { return daemon_->Status()["coordinators"][0].contains("advice"); }, "told");
  const nlohmann::json site = daemon_->Status()["coordinators"][0];
  EXPECT_THAT(site.value("advice", ""), HasSubstr("copied"));
  EXPECT_GT(site.value("asked_again_in_ms", 0), 2'900'000);
  EXPECT_EQ(work_.coordinator().headers().size(), 1u);  // heeded: not asked again meanwhile
}

TEST_F(DaemonTest, AKeptLeaseOutlivesErrorsThatPass) {
  const std::string log = Sha256(AsBytes("example.com/log")).ToHex().substr(0, 16);
  WriteBytes(folder_ / ("data/leases/" + log), work_.Lease(0, 2).SerializeAsString());
  work_.coordinator().Fail(
      "Heartbeat", rpc::WithReason(absl::ResourceExhaustedError("slow"), "RATE_LIMITED"), 2);
  RunOnce();
  EXPECT_EQ(State(1), audit::StepState::kConfirmed);
  EXPECT_EQ(work_.coordinator().CountCalls("AcquireLease"), 0);
}

TEST_F(DaemonTest, ACoordinatorAwayForAnHourLosesNothingAndIsNotStormed) {
  v1::Lease lease = work_.Lease(0, 4);
  lease.set_heartbeat_ms(60'000);
  work_.coordinator().GiveLease(lease);
  config_.checkpoint_every = absl::InfiniteDuration();
  clock_ = &fast_clock_;
  tick_ = absl::Seconds(1);
  backoff_ = {.first = absl::Seconds(5), .most = absl::Minutes(10)};
  Begin();
  Await([&] { return work_.coordinator().CountCalls("Heartbeat") > 0; }, "at work");
  const absl::Status away = absl::UnavailableError("away");
  for (const char* method : {"GetServerInfo", "Heartbeat", "SubmitAttestation", "SubmitOpening",
                             "AcquireLease", "ReleaseLease"}) {
    work_.coordinator().Fail(method, away, 1'000'000);
  }
  const size_t asked = work_.coordinator().headers().size() +
                       static_cast<size_t>(work_.coordinator().CountCalls("GetServerInfo"));
  const absl::Duration began = fast_clock_.Monotonic();
  Await([&] { return fast_clock_.Monotonic() - began > absl::Hours(1); }, "an hour");
  const size_t asked_since = work_.coordinator().headers().size() +
                             static_cast<size_t>(work_.coordinator().CountCalls("GetServerInfo")) -
                             asked;
  // Heartbeats three times a minute while it works, tries that get rarer after that.
  EXPECT_GT(asked_since, 3u);
  EXPECT_LT(asked_since, 300u);
  for (const char* method : {"GetServerInfo", "Heartbeat", "SubmitAttestation", "SubmitOpening",
                             "AcquireLease", "ReleaseLease"}) {
    work_.coordinator().Fail(method, away, 0);
  }
  for (uint64_t step = 0; step < 4; ++step) {
    Await([&] { return State(step) == audit::StepState::kConfirmed; }, "confirmed");
  }
  EXPECT_EQ(work_.coordinator().CountCalls("Attest"), 4);
}

TEST_F(DaemonTest, ACoordinatorThatIsAwayLosesNothing) {
  work_.coordinator().GiveLease(work_.Lease(0, 2));
  work_.coordinator().Fail("SubmitAttestation", absl::UnavailableError("away"), 3);
  RunOnce();
  EXPECT_EQ(State(0), audit::StepState::kConfirmed);
  EXPECT_EQ(State(1), audit::StepState::kConfirmed);
}

TEST_F(DaemonTest, AKilledLeaseIsGoneOnWith) {
  // As a kill leaves it: the lease on disk, the daemon gone.
  const v1::Lease lease = work_.Lease(0, 2);
  const std::string log = Sha256(AsBytes("example.com/log")).ToHex().substr(0, 16);
  WriteBytes(folder_ / ("data/leases/" + log), lease.SerializeAsString());
  RunOnce();
  EXPECT_EQ(work_.coordinator().CountCalls("AcquireLease"), 0);
  EXPECT_EQ(State(1), audit::StepState::kConfirmed);
  EXPECT_FALSE(std::filesystem::exists(folder_ / ("data/leases/" + log)));
}

TEST_F(DaemonTest, TheAttemptIsTheSameAfterARestart) {
  work_.coordinator().GiveLease(work_.Lease(0, 1));
  RunOnce();
  End();
  work_.coordinator().GiveLease(work_.Lease(1, 2));
  RunOnce();
  const auto headers = work_.coordinator().headers();
  EXPECT_EQ(headers.front().attempt_id(), headers.back().attempt_id());
}

TEST_F(DaemonTest, TheNextCoordinatorIsAskedWhenOneIsAway) {
  config_.coordinators = {"http://127.0.0.1:1", work_.coordinator().address()};
  work_.coordinator().GiveLease(work_.Lease(0, 1));
  RunOnce();
  EXPECT_EQ(State(0), audit::StepState::kConfirmed);
  EXPECT_TRUE(daemon_->Status()["coordinators"][0].contains("last_error"));
}

TEST_F(DaemonTest, AStateIsOffered) {
  config_.offer_states = true;
  work_.coordinator().SetArtifactUrl(work_.http().address());
  work_.coordinator().GiveLease(work_.Lease(0, 2));
  RunOnce();
  // (The web server of the test has that very state, and says so to each upload.)
  EXPECT_EQ(work_.coordinator().CountCalls("OfferState"), 1);
  EXPECT_EQ(State(1), audit::StepState::kConfirmed);
}

TEST_F(DaemonTest, KeyEventsAreToldFirst) {
  const KeyFolder keys = KeyFolder::Open(folder_ / "data/keys").value();
  // Another operator's machine: the coordinator knows the key already, and says so.
  ASSERT_THAT(keys.InitOperator("second", "", folder_ / "revocation.key"), IsOk());
  work_.coordinator().GiveLease(work_.Lease(0, 1));
  RunOnce();
  const auto calls = work_.coordinator().calls();
  const auto told = std::find(calls.begin(), calls.end(), "SubmitKeyEvent");
  const auto asked = std::find(calls.begin(), calls.end(), "AcquireLease");
  EXPECT_LT(told - calls.begin(), asked - calls.begin());
}

}  // namespace
}  // namespace lockstep::worker
