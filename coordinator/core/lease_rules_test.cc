// SPDX-License-Identifier: Apache-2.0
//
// What leases cost those who do not work them off, what a verdict costs who is wrong, and who is
// whom in all of it, in simulated time. What the operations answer: coordinator_test.cc.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/status_matchers.h"
#include "coordinator/core/coordinator.h"
#include "coordinator/testing/reason_matcher.h"
#include "coordinator/testing/small_network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

using audit::OperatorKey;
using audit::StepState;
using audit::TestDigest;
using audit::TestEntry;
using audit::TestPublicKey;
using audit::WorkerKey;

class LeaseRulesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(network_.Open().ok()); }
  void Begin(int operators, int steps) {
    for (int n = 0; n < operators; ++n) network_.AddOperator(n, 2);
    network_.AddRun(steps);
  }
  AcquireAnswer Ask(int key, int64_t steps_max = 0, const std::string& backend = "x86-avx2") {
    return network_->AcquireLease(network_.CallerOf(key), SmallNetwork::Machine(backend), steps_max)
        .value();
  }
  absl::Status Release(int key, const LeaseRow& lease, ReleaseReason reason) {
    return network_->ReleaseLease(network_.CallerOf(key), lease.lease_id, reason);
  }
  // A match of each step of a lease that the key is given.
  LeaseRow MatchAll(int key, const std::string& backend = "x86-avx2") {
    const LeaseGrant grant = network_.Lease(key, 0, backend);
    for (uint64_t step = grant.begin_step; step < grant.lease.end_step; ++step) {
      network_.Match(grant.lease, step, key, backend);
    }
    return grant.lease;
  }
  absl::Status Mismatch(const LeaseRow& lease, uint64_t step, int key,
                        const std::string& backend = "x86-avx2") {
    audit::StepRecord found = network_.Record(step);
    found.parameters = TestDigest("other parameters", step);
    return network_.Attest(network_.Found(lease, step, key, &found, backend), key).status();
  }
  void RunOut(const LeaseRow& lease) {
    network_.clock.Advance(absl::Milliseconds(lease.expires_ms - lease.granted_ms));
    ASSERT_TRUE(network_->Tick().ok());
  }
  int64_t LiveRows() {
    return static_cast<int64_t>(network_->ReadStore().value()->LiveLeases().value().size());
  }

  SmallNetwork network_;
};

// A refusal undoes what its request wrote, and others' leases had run out before it.
TEST_F(LeaseRulesTest, ARefusalSavesNoLeaseThatRanOut) {
  Begin(2, 64);
  const int copied = WorkerKey(0);
  const int hoarder = WorkerKey(1);
  const LeaseRow held = network_.Lease(hoarder, 1).lease;
  network_.clock.Advance(absl::Milliseconds(held.expires_ms - held.granted_ms - 1'000));
  network_.Lease(copied, 1);
  network_.clock.Advance(absl::Seconds(1));
  EXPECT_THAT(
      network_->AcquireLease(network_.CallerOf(copied, "attempt 2"), SmallNetwork::Machine(), 1)
          .status(),
      HasReason("KEY_IN_USE"));
  EXPECT_EQ(network_->LiveLeases(), 1u);
  EXPECT_EQ(LiveRows(), 1);
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_EQ(network_.Trust(hoarder).expired, 1);
  ASSERT_TRUE(network_.Open().ok());
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_EQ(network_.Trust(hoarder).expired, 1) << "once, whatever was refused in between";
}

// Where a run begins is what its manifest says, whatever somebody offers for it.
TEST_F(LeaseRulesTest, NobodysStateTakesThePlaceOfTheInitialOne) {
  Begin(3, 8);
  network_.has_artifacts = true;
  const absl::Status offered =
      network_
          ->OfferState(network_.CallerOf(WorkerKey(0)),
                       TestEntry(network_.StateBefore(0), {WorkerKey(0)}), {})
          .status();
  SCOPED_TRACE(offered.ToString());
  const LeaseGrant first = network_.Lease(WorkerKey(1));
  EXPECT_EQ(first.lease.first_step, 0u);
  EXPECT_FALSE(first.start.has_value());
  ASSERT_TRUE(Release(WorkerKey(1), first.lease, ReleaseReason::kInconclusive).ok());
  const AcquireAnswer second = Ask(WorkerKey(2));
  ASSERT_TRUE(second.lease.has_value()) << second.no_work_reason;
  EXPECT_FALSE(second.lease->start.has_value());
}

// A revocation key is public, and anybody may name it as his own.
TEST_F(LeaseRulesTest, AnOperatorIsItsOwnEntryAndNotAKeyThatItNames) {
  network_.options.policy.leases_per_operator_max = 1;
  ASSERT_TRUE(network_.Open().ok());
  network_.AddOperator(0);
  const int victim = WorkerKey(0);
  const int stranger = WorkerKey(1);
  network_
      .AddKey(audit::OperatorEvent{.operator_key = TestPublicKey(OperatorKey(1)),
                                   .revocation_key = TestPublicKey(audit::RevocationKey(0)),
                                   .name = "a stranger",
                                   .contact = ""},
              {OperatorKey(1)})
      .value();
  for (const int key : {stranger, int{audit::kTrainerKey}}) {
    network_
        .AddKey(audit::WorkerEvent{.worker_key = TestPublicKey(key),
                                   .operator_key = TestPublicKey(OperatorKey(1)),
                                   .hardware = "a machine"},
                {OperatorKey(1), key})
        .value();
  }
  // The stranger's operator trains one run; another is everybody's.
  network_.AddRun(64);
  EXPECT_EQ(Ask(stranger).no_work_reason, "NO_WORK");
  const AcquireAnswer answer = Ask(victim, 1);
  ASSERT_TRUE(answer.lease.has_value()) << answer.no_work_reason;
  EXPECT_EQ(Ask(victim, 1).no_work_reason, "TOO_MANY_LEASES_OF_OPERATOR");
  const auto owner = [&](int key) { return network_->UploaderOf(TestPublicKey(key))->owner; };
  const auto before = owner(victim);
  EXPECT_NE(before, owner(stranger));
  // Its own key may be replaced.
  network_
      .AddKey(audit::RotateEvent{.old_key = TestPublicKey(OperatorKey(0)),
                                 .new_key = TestPublicKey(OperatorKey(7))},
              {OperatorKey(0), OperatorKey(7)})
      .value();
  EXPECT_EQ(owner(victim), before);
  ASSERT_TRUE(network_.Open().ok());
  EXPECT_EQ(owner(victim), before) << "uploads outlive a start";
}

TEST_F(LeaseRulesTest, AMismatchBeforeTheMatchesCostsItsSigner) {
  Begin(4, 1);
  const LeaseRow lease = network_.Lease(WorkerKey(2)).lease;
  ASSERT_TRUE(Mismatch(lease, 0, WorkerKey(2)).ok());
  EXPECT_EQ(network_.Trust(WorkerKey(2)).invalid, 0) << "it may be right";
  MatchAll(WorkerKey(0), "arm-neon");
  EXPECT_EQ(network_.Trust(WorkerKey(2)).invalid, 0);
  MatchAll(WorkerKey(1), "cuda-sm90");
  EXPECT_EQ(network_.Trust(WorkerKey(2)).invalid, 1);
  EXPECT_EQ(network_.Trust(WorkerKey(0)).valid, 1);
  EXPECT_EQ(network_.StateOf(0), StepState::kDisputed) << "which is not outvoted";
  EXPECT_EQ(Ask(WorkerKey(3), 0, "reference").no_work_reason, "NO_WORK");
}

// Steps 0 and 1 confirmed, and operator 2 in a lease on both that has not said anything of step 0.
class LateMismatchTest : public LeaseRulesTest {
 protected:
  void SetUp() override {
    LeaseRulesTest::SetUp();
    Begin(5, 1);
    MatchAll(WorkerKey(0));
    MatchAll(WorkerKey(1));
    ASSERT_EQ(network_.StateOf(0), StepState::kConfirmed);
    network_->PublishRecords(network_.run_id(), network_.RecordEntries(1, 1)).value();
    lease_ = network_.Lease(WorkerKey(2)).lease;
    ASSERT_EQ(lease_.first_step, 0u);
    MatchAll(WorkerKey(0));
    network_.Match(lease_, 1, WorkerKey(2));
    ASSERT_EQ(network_.StateOf(1), StepState::kConfirmed);
  }
  LeaseRow lease_;
};

TEST_F(LateMismatchTest, CostsItsSignerAndSendsOneMoreWhoMatches) {
  EXPECT_EQ(Ask(WorkerKey(4), 0, "cuda-sm90").no_work_reason, "NO_WORK") << "all is confirmed";
  ASSERT_TRUE(Mismatch(lease_, 0, WorkerKey(2)).ok());
  EXPECT_EQ(network_.StateOf(0), StepState::kDisputed);
  EXPECT_EQ(network_.Trust(WorkerKey(2)).invalid, 1);
  const LeaseRow referee = MatchAll(WorkerKey(3), "arm-neon");
  EXPECT_EQ(referee.first_step, 0u);
  EXPECT_EQ(network_.Trust(WorkerKey(3)).valid, 1);
  EXPECT_EQ(network_.Trust(WorkerKey(2)).invalid, 1) << "once";
  network_.clock.Advance(absl::Hours(2));
  EXPECT_EQ(Ask(WorkerKey(4), 0, "cuda-sm90").no_work_reason, "NO_WORK") << "one is enough";
}

TEST_F(LateMismatchTest, CostsNothingToWhoFindsTheSame) {
  ASSERT_TRUE(Mismatch(lease_, 0, WorkerKey(2)).ok());
  const LeaseRow referee = network_.Lease(WorkerKey(3), 0, "arm-neon").lease;
  ASSERT_TRUE(Mismatch(referee, 0, WorkerKey(3), "arm-neon").ok());
  EXPECT_EQ(network_.Trust(WorkerKey(3)).invalid, 0);
  network_.clock.Advance(absl::Hours(2));
  EXPECT_EQ(Ask(WorkerKey(4), 0, "cuda-sm90").no_work_reason, "NO_WORK");
}

// Hoarding costs, though one lets go in time.
TEST_F(LeaseRulesTest, WhoHandsLeasesBackUndonePaysFromTheThirdOn) {
  Begin(1, 64);
  const int hoarder = WorkerKey(0);
  const auto hand_back = [&](ReleaseReason reason) {
    const LeaseRow lease = network_.Lease(hoarder).lease;
    network_.clock.Advance(absl::Seconds(30));
    ASSERT_TRUE(Release(hoarder, lease, reason).ok());
  };
  hand_back(ReleaseReason::kCanceled);
  hand_back(ReleaseReason::kFinished);
  EXPECT_EQ(network_.Trust(hoarder).expired, 0) << "an owner may want the machine back";
  hand_back(ReleaseReason::kCanceled);
  EXPECT_EQ(network_.Trust(hoarder).expired, 1);
  EXPECT_EQ(network_.Trust(hoarder).quota_steps, 2);
  hand_back(ReleaseReason::kFinished);
  EXPECT_EQ(network_.Trust(hoarder).expired, 2);
  EXPECT_EQ(network_.Trust(hoarder).quota_steps, 1);
  EXPECT_EQ(Ask(hoarder).no_work_reason, "BACKOFF");
  // A start does not forget it.
  ASSERT_TRUE(network_.Open().ok());
  EXPECT_EQ(Ask(hoarder).no_work_reason, "BACKOFF");
}

TEST_F(LeaseRulesTest, WhoWorksMayBeInterrupted) {
  Begin(1, 64);
  const int worker = WorkerKey(0);
  for (int i = 0; i < 8; ++i) {
    const LeaseGrant grant = network_.Lease(worker);
    if (i % 2 == 1) network_.Match(grant.lease, grant.begin_step, worker);
    ASSERT_TRUE(Release(worker, grant.lease, ReleaseReason::kCanceled).ok());
  }
  EXPECT_EQ(network_.Trust(worker).expired, 0);
  EXPECT_EQ(network_.Trust(worker).quota_steps, 0) << "and earns nothing by it";
}

class CanaryRulesTest : public LeaseRulesTest {
 protected:
  void SetUp() override {
    network_.options.policy.trust.canary_share_new = 1;
    LeaseRulesTest::SetUp();
    Begin(1, 64);
  }
  absl::Status See(const LeaseGrant& grant, int key) {
    const auto served = audit::DecodeStepRecord(AsBytes(grant.canary->false_record)).value();
    audit::Attestation said = audit::TestAttestation(network_.run_id(), served, TestPublicKey(key),
                                                     &network_.Record(grant.canary->step));
    said.lease_id = grant.lease.lease_id;
    said.nonce = grant.lease.nonce;
    return network_.Attest(said, key).status();
  }
};

// Who recognises a canary by its signature must not draw again for nothing.
TEST_F(CanaryRulesTest, HandedBackItCostsAsIfItHadRunOut) {
  const int worker = WorkerKey(0);
  for (const ReleaseReason reason : {ReleaseReason::kCanceled, ReleaseReason::kFinished}) {
    const int64_t before = network_.Trust(worker).expired;
    const LeaseGrant grant = network_.Lease(worker);
    ASSERT_TRUE(grant.canary.has_value());
    ASSERT_TRUE(Release(worker, grant.lease, reason).ok());
    EXPECT_EQ(network_.Trust(worker).expired, before + 1);
  }
  EXPECT_EQ(Ask(worker).no_work_reason, "BACKOFF");
}

// The published record can be read by everybody: to know it is no proof of work.
TEST_F(CanaryRulesTest, SeenAloneItEarnsNoQuota) {
  const int worker = WorkerKey(0);
  LeaseGrant grant = network_.Lease(worker, 1);
  ASSERT_EQ(grant.canary->step, grant.begin_step);
  ASSERT_TRUE(See(grant, worker).ok());
  EXPECT_EQ(network_.Trust(worker).canaries, 1);
  EXPECT_EQ(network_.Trust(worker).quota_steps, 0);
  // With other steps of the same lease it is a good lease.
  for (int tries = 0; tries < 16; ++tries) {
    grant = network_.Lease(worker);
    for (uint64_t step = grant.begin_step; step < grant.canary->step; ++step) {
      network_.Match(grant.lease, step, worker);
    }
    ASSERT_TRUE(See(grant, worker).ok());
    if (grant.canary->step > grant.begin_step) break;
    EXPECT_EQ(network_.Trust(worker).quota_steps, 0);
  }
  EXPECT_EQ(network_.Trust(worker).quota_steps, 2 * network_.options.policy.trust.quota_steps_new);
}

// An answer without work takes the scheduler a look at everything that is published.
TEST_F(LeaseRulesTest, WhoAsksTooEarlyIsAnsweredFromMemory) {
  int drawn = 0;
  network_.options.random = [&] {
    ++drawn;
    return 0.5;
  };
  ASSERT_TRUE(network_.Open().ok());
  Begin(2, 1);
  const int worker = WorkerKey(0);
  const Caller first = network_.CallerOf(worker);
  const LeaseGrant grant =
      network_->AcquireLease(first, SmallNetwork::Machine(), 0).value().lease.value();
  network_.Match(grant.lease, 0, worker);
  const AcquireAnswer none = Ask(worker);
  ASSERT_EQ(none.no_work_reason, "NO_WORK");
  ASSERT_GT(none.retry_after_ms, 1);
  network_->PublishRecords(network_.run_id(), network_.RecordEntries(1, 1)).value();
  const int before = drawn;
  network_.clock.Advance(absl::Milliseconds(none.retry_after_ms - 1));
  const AcquireAnswer early = Ask(worker);
  EXPECT_EQ(early.no_work_reason, "NO_WORK");
  EXPECT_EQ(early.retry_after_ms, 1);
  EXPECT_EQ(drawn, before) << "the scheduler was not asked";
  EXPECT_TRUE(Ask(WorkerKey(1)).lease.has_value()) << "of the key, and of no other";
  // An answer that got lost is the same once more.
  EXPECT_EQ(network_->AcquireLease(first, SmallNetwork::Machine(), 0).value().lease->lease.lease_id,
            grant.lease.lease_id);
  network_.clock.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(Ask(worker).lease.has_value());
}

TEST_F(LeaseRulesTest, ANewKeyIsWhatTheOldOneWas) {
  Begin(1, 64);
  const int first = WorkerKey(0);
  const auto rotate = [&](int from, int to) {
    network_
        .AddKey(audit::RotateEvent{.old_key = TestPublicKey(from), .new_key = TestPublicKey(to)},
                {from, to})
        .value();
  };
  RunOut(network_.Lease(first, 1).lease);
  EXPECT_EQ(network_.Trust(first).expired, 1);
  // What the old key holds is still held, and costs when it runs out.
  std::vector<LeaseRow> held;
  for (int i = 0; i < 2; ++i) held.push_back(network_.Lease(first, 1).lease);
  rotate(first, 7001);
  rotate(7001, 7002);
  EXPECT_EQ(Ask(7002, 1).no_work_reason, "TOO_MANY_LEASES_OF_KEY");
  RunOut(held[0]);
  EXPECT_EQ(network_.Trust(first).expired, 3);
  EXPECT_EQ(Ask(7002, 1).no_work_reason, "BACKOFF");
  ASSERT_TRUE(network_.Open().ok());
  EXPECT_EQ(Ask(7002, 1).no_work_reason, "BACKOFF");
  network_.clock.Advance(absl::Hours(1));
  EXPECT_EQ(network_.Lease(7002).lease.end_step, 1u) << "its quota is what was left of it";
}

TEST_F(LeaseRulesTest, AStartTakesUpAllStatesAtOnce) {
  constexpr uint64_t kStates = 70;
  network_.options.policy.leases_per_operator_max = 1'000;
  ASSERT_TRUE(network_.Open().ok());
  network_.AddOperator(0, 40);
  network_.AddRun(kStates + 1);
  network_.has_artifacts = true;
  for (uint64_t step = 1; step <= kStates; ++step) {
    network_->AnnounceCheckpoint(TestEntry(network_.StateBefore(step), {audit::kTrainerKey}), {})
        .value();
  }
  ASSERT_TRUE(network_.Open().ok());
  // An operator is not sent to a step twice: so its leases begin at all of them.
  std::set<uint64_t> starts;
  for (int i = 0; i < 80; ++i) {
    const AcquireAnswer answer = Ask(WorkerKey(0, i / 2), 1);
    if (answer.lease) starts.insert(answer.lease->lease.first_step);
  }
  EXPECT_EQ(starts.size(), kStates + 1);
}

TEST_F(LeaseRulesTest, AStateInDoubtIsInDoubtAfterAStart) {
  Begin(2, 8);
  network_.has_artifacts = true;
  const int liar = WorkerKey(0);
  const int honest = WorkerKey(1);
  ASSERT_EQ(MatchAll(liar).end_step, 4u);
  network_->OfferState(network_.CallerOf(liar), TestEntry(network_.StateBefore(4), {liar}), {})
      .value();
  LeaseGrant lease = network_.Lease(honest);
  for (int tries = 0; lease.lease.first_step != 4 && tries < 8; ++tries) {
    for (uint64_t step = lease.begin_step; step < lease.lease.end_step; ++step) {
      network_.Match(lease.lease, step, honest);
    }
    lease = network_.Lease(honest);
  }
  ASSERT_EQ(lease.lease.first_step, 4u);
  ASSERT_TRUE(Release(honest, lease.lease, ReleaseReason::kInconclusive).ok());
  ASSERT_TRUE(network_.Open().ok());
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_EQ(network_.Lease(honest).lease.first_step, 0u);
}

// Two runs of one trainer at once, with the same workers.
TEST_F(LeaseRulesTest, TwoRunsAreAuditedSideBySide) {
  Begin(2, 4);
  const Digest first_run = network_.run_id();
  network_.UseRun(1);
  network_.AddRun(4);
  const Digest second_run = network_.run_id();
  ASSERT_NE(first_run, second_run);
  // Whoever asks for one gets that; whoever does not, either, and in the end both.
  for (const auto& [n, run] : {std::pair(0, first_run), std::pair(1, second_run)}) {
    network_.UseRun(n);
    for (const int key : {WorkerKey(0), WorkerKey(1)}) {
      Capabilities machine = SmallNetwork::Machine();
      machine.runs = {run};
      const LeaseGrant grant =
          network_->AcquireLease(network_.CallerOf(key), machine, 1).value().lease.value();
      EXPECT_EQ(grant.lease.run, run);
      network_.Match(grant.lease, 0, key);
    }
    EXPECT_EQ(network_.StateOf(0), StepState::kConfirmed);
    EXPECT_EQ(network_.StateOf(1), StepState::kUnaudited);
  }
  std::set<Digest> given;
  for (const int key : {WorkerKey(0), WorkerKey(0), WorkerKey(1), WorkerKey(1)}) {
    given.insert(network_.Lease(key, 2).lease.run);
  }
  EXPECT_THAT(given, ::testing::UnorderedElementsAre(first_run, second_run));
  // A mismatch in one is none in the other, neither now nor after a start.
  network_.clock.Advance(absl::Hours(24));
  ASSERT_TRUE(network_->Tick().ok());
  network_.UseRun(0);
  Capabilities machine = SmallNetwork::Machine();
  machine.runs = {first_run};
  const LeaseRow lease =
      network_->AcquireLease(network_.CallerOf(WorkerKey(0, 1)), machine, 0).value().lease->lease;
  ASSERT_TRUE(Mismatch(lease, 1, WorkerKey(0, 1)).ok());
  for (int start = 0; start < 2; ++start) {
    network_.UseRun(0);
    EXPECT_EQ(network_.StateOf(0), StepState::kConfirmed);
    EXPECT_EQ(network_.StateOf(1), StepState::kDisputed);
    network_.UseRun(1);
    EXPECT_EQ(network_.StateOf(0), StepState::kConfirmed);
    EXPECT_EQ(network_.StateOf(1), StepState::kUnaudited);
    ASSERT_TRUE(network_.Open().ok());
  }
}

// All of it is good evidence, of the same key, for the same step, but of the other run: taken under
// this lease it would be a match in a run that the key was never sent to.
TEST_F(LeaseRulesTest, NothingOfOneRunIsOfUseInAnother) {
  Begin(2, 4);
  network_.UseRun(1);
  network_.AddRun(4);
  const int worker = WorkerKey(0);
  const LeaseRow other_lease = [&] {
    Capabilities machine = SmallNetwork::Machine();
    machine.runs = {network_.run_id()};
    return network_->AcquireLease(network_.CallerOf(worker), machine, 2).value().lease->lease;
  }();
  const audit::Attestation there = network_.Found(other_lease, 0, worker);
  network_.UseRun(0);
  Capabilities machine = SmallNetwork::Machine();
  machine.runs = {network_.run_id()};
  const LeaseRow lease =
      network_->AcquireLease(network_.CallerOf(worker), machine, 2).value().lease->lease;
  audit::Attestation said = there;
  said.lease_id = lease.lease_id;
  EXPECT_THAT(network_.Attest(said, worker).status(), HasReason("STEP_OUTSIDE_LEASE"));
  said.nonce = lease.nonce;
  EXPECT_THAT(network_.Attest(said, worker).status(), HasReason("STEP_OUTSIDE_LEASE"));
  // Under this run's name it is about another record.
  said.run_id = network_.run_id();
  EXPECT_THAT(network_.Attest(said, worker).status(), HasReason("NOT_THE_PUBLISHED_RECORD"));
  EXPECT_EQ(network_.CountEntries("attestation"), 0);
  EXPECT_EQ(network_.StateOf(0), StepState::kClaimed);
  // Where it belongs it is taken.
  network_.UseRun(1);
  EXPECT_TRUE(network_.Attest(there, worker).ok());
}

}  // namespace
}  // namespace lockstep::coordinator
