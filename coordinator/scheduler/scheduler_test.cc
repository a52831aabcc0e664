// SPDX-License-Identifier: Apache-2.0
//
// Trust, the worth of a step, and the choice of a range, case by case. scheduler_population_test.cc
// has whole populations.

#include "coordinator/scheduler/scheduler.h"

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "coordinator/scheduler/trust.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

using ::testing::DoubleEq;

constexpr TrustPolicy kTrust;
constexpr double kNoCanary = 0.999;

// Numbers that a test gives; the last one again and again.
Random Give(std::deque<double> numbers) {
  return [numbers]() mutable {
    const double number = numbers.front();
    if (numbers.size() > 1) numbers.pop_front();
    return number;
  };
}

KeyTrust Trusted(int64_t valid_in_a_row, int64_t quota_steps) {
  return {.valid_in_a_row = valid_in_a_row, .valid = valid_in_a_row, .quota_steps = quota_steps};
}

TEST(TrustTest, TenInARowAreTrusted) {
  KeyTrust trust;
  for (int i = 0; i < 9; ++i) trust = AfterValidStep(trust);
  EXPECT_FALSE(IsTrusted(trust, kTrust));
  EXPECT_TRUE(NeedsReplication(trust, kTrust, 0.999));
  trust = AfterValidStep(trust);
  EXPECT_TRUE(IsTrusted(trust, kTrust));
  EXPECT_TRUE(NeedsReplication(trust, kTrust, 0.0999));  // with probability 1 / 10
  EXPECT_FALSE(NeedsReplication(trust, kTrust, 0.1));
  trust = AfterInvalid(trust, kTrust, 5);
  EXPECT_FALSE(IsTrusted(trust, kTrust));
  EXPECT_EQ(trust.valid, 10);
  EXPECT_EQ(trust.invalid, 1);
  EXPECT_EQ(trust.not_before_ms, 5 + 60'000);
}

TEST(TrustTest, QuotaGrowsWithSuccessAndFallsWithFailure) {
  KeyTrust trust;
  EXPECT_EQ(QuotaSteps(trust, kTrust), 4);
  for (const int64_t quota : {8, 16, 32, 64, 128, 256, 512, 1024, 1024}) {
    trust = AfterGoodLease(trust, kTrust);
    EXPECT_EQ(QuotaSteps(trust, kTrust), quota);
  }
  trust = AfterExpired(trust, kTrust, 0);
  EXPECT_EQ(QuotaSteps(trust, kTrust), 512);
  EXPECT_EQ(trust.not_before_ms, 0);  // the first is forgiven
  for (int i = 0; i < 20; ++i) trust = AfterExpired(trust, kTrust, 0);
  EXPECT_EQ(QuotaSteps(trust, kTrust), 1);
  EXPECT_EQ(trust.not_before_ms, kTrust.backoff_ms_max);
  trust = AfterValidStep(trust);
  EXPECT_EQ(trust.not_before_ms, 0);
  EXPECT_EQ(QuotaSteps(AfterInvalid(Trusted(50, 1024), kTrust, 0), kTrust), 1);
}

TEST(TrustTest, TwoLeasesInARowMayBeHandedBackUndone) {
  KeyTrust trust;
  for (int i = 0; i < 2; ++i) trust = AfterUndoneLease(trust, kTrust, 0);
  EXPECT_EQ(trust.expired, 0);
  trust = AfterPartOfLease(trust);
  for (int i = 0; i < 2; ++i) trust = AfterUndoneLease(trust, kTrust, 0);
  EXPECT_EQ(trust.expired, 0);
  EXPECT_EQ(QuotaSteps(trust, kTrust), kTrust.quota_steps_new);
  for (int i = 1; i <= 20; ++i) {
    trust = AfterUndoneLease(trust, kTrust, 0);
    EXPECT_EQ(trust.expired, i);
  }
  EXPECT_EQ(QuotaSteps(trust, kTrust), 1);
  EXPECT_EQ(trust.not_before_ms, kTrust.backoff_ms_max);
  EXPECT_EQ(AfterGoodLease(trust, kTrust).undone_in_a_row, 0);
}

TEST(TrustTest, CanariesGetRarerAndNeverStop) {
  EXPECT_THAT(CanaryShare({}, kTrust), DoubleEq(0.125));
  EXPECT_THAT(CanaryShare(Trusted(10, 4), kTrust), DoubleEq(0.1));
  EXPECT_THAT(CanaryShare(Trusted(100'000, 4), kTrust), DoubleEq(1.0 / 64));
}

// One run of `steps` steps with states at 0, 10, 20, ...; quorum 2 operators, 2 backend classes;
// operator 99 trains it. The asker is key 1 of operator 1 with backend 1.
class SchedulerTest : public ::testing::Test {
 protected:
  explicit SchedulerTest(size_t steps = 40) : steps_(steps) {
    for (uint64_t state = 0; state < steps; state += 10) states_.push_back(state);
    asker_.auditor = {.key = 1, .operator_number = 1, .backend = 1};
    asker_.trust = Trusted(100, 4);
    asker_.memory_bytes = 100;
    asker_.disk_bytes = 100;
    asker_.operations_per_second = 1000;
  }

  RunView Run() const {
    RunView run;
    run.trainer = 99;
    run.quorum_operators = 2;
    run.quorum_backends = 2;
    run.steps = steps_;
    run.states = states_;
    run.memory_bytes = 100;
    run.disk_bytes = 100;
    run.operations_per_step = 1000;  // a second a step
    return run;
  }
  double Worth(const StepView& step) const {
    return StepWorth(Run(), step, asker_.auditor, now_ms_, policy_);
  }
  Decision Ask(const Random& random = Give({kNoCanary})) const {
    const RunView run = Run();
    return Schedule({.now_ms = now_ms_, .runs = {&run, 1}}, asker_, policy_, random);
  }
  NoLease Refusal() const {
    const Decision decision = Ask();
    EXPECT_FALSE(decision.lease.has_value());
    EXPECT_GT(decision.retry_ms, 0);
    return decision.reason;
  }

  std::vector<StepView> steps_;
  std::vector<uint64_t> states_;
  Requester asker_;
  SchedulerPolicy policy_;
  int64_t now_ms_ = 0;
};

Auditor Other(uint32_t n, uint16_t backend) {
  return {.key = n, .operator_number = n, .backend = backend};
}

TEST_F(SchedulerTest, OwnAndTrainersWorkIsWorthNothing) {
  StepView step;
  EXPECT_GT(Worth(step), 0);
  step.matches = {{.key = 7, .operator_number = 1, .backend = 3}};  // another key of the operator
  EXPECT_EQ(Worth(step), 0);
  step.matches = {};
  step.holders = {{.key = 7, .operator_number = 1, .backend = 3}};
  EXPECT_EQ(Worth(step), 0);
  asker_.auditor.operator_number = 99;
  EXPECT_EQ(Worth({}), 0);
}

TEST_F(SchedulerTest, PrefersBegunStepsAndOtherBackends) {
  StepView begun_by_other_backend;
  begun_by_other_backend.matches = {Other(2, 2)};
  StepView begun_by_same_backend;
  begun_by_same_backend.matches = {Other(2, 1)};
  EXPECT_GT(Worth(begun_by_other_backend), Worth({}) - 1);
  EXPECT_GT(Worth(begun_by_other_backend), Worth(begun_by_same_backend));
  EXPECT_GT(Worth({}), Worth(begun_by_same_backend));
  EXPECT_GT(Worth(begun_by_same_backend), 0);
  StepView two_operators_one_backend;
  two_operators_one_backend.matches = {Other(2, 2), Other(3, 2)};
  EXPECT_GT(Worth(two_operators_one_backend), Worth({}));
  two_operators_one_backend.matches = {Other(2, 1), Other(3, 1)};
  EXPECT_EQ(Worth(two_operators_one_backend), 0);
}

TEST_F(SchedulerTest, DoneAndHeldStepsAreLeft) {
  StepView done;
  done.matches = {Other(2, 2), Other(3, 3)};
  EXPECT_EQ(Worth(done), 0);
  done.matches = {Other(2, 2)};
  done.holders = {Other(3, 3)};
  EXPECT_EQ(Worth(done), 0);
}

TEST_F(SchedulerTest, ASecondLookIsForAQuorumOfOne) {
  RunView run = Run();
  run.quorum_operators = run.quorum_backends = 1;
  StepView step;
  step.matches = {Other(2, 2)};
  EXPECT_EQ(StepWorth(run, step, asker_.auditor, 0, policy_), 0);
  step.second_look = true;
  EXPECT_GT(StepWorth(run, step, asker_.auditor, 0, policy_), 0);
  step.matches.push_back(Other(3, 2));
  EXPECT_EQ(StepWorth(run, step, asker_.auditor, 0, policy_), 0);
}

TEST_F(SchedulerTest, DisputesGoToOtherOperatorsAndBackends) {
  StepView disputed;
  disputed.disputed = true;
  disputed.matches = {Other(2, 2)};
  disputed.mismatches = {Other(3, 3)};
  EXPECT_GE(Worth(disputed), 8);
  asker_.auditor.backend = 3;
  EXPECT_EQ(Worth(disputed), 0);
  now_ms_ = policy_.dispute_patience_ms;
  EXPECT_GE(Worth(disputed), 8);  // nobody with another backend came
  asker_.auditor.operator_number = 3;
  EXPECT_EQ(Worth(disputed), 0);
  asker_.auditor.operator_number = 1;
  disputed.holders = {Other(4, 4)};
  EXPECT_EQ(Worth(disputed), 0);
  disputed.holders = {};
  disputed.mismatches.push_back(Other(4, 4));
  EXPECT_EQ(Worth(disputed), 0);  // two say so
}

// Those who had matched before it say nothing of a late mismatch: one more looks, and no more.
TEST_F(SchedulerTest, AMismatchAfterTheMatchesIsLookedAtOnceMore) {
  StepView disputed;
  disputed.disputed = true;
  disputed.matches = {Other(2, 2), Other(3, 3)};
  disputed.mismatches = {Other(4, 4)};
  EXPECT_EQ(Worth(disputed), 0) << "both came after the mismatch";
  disputed.matched_before = 2;
  EXPECT_GE(Worth(disputed), 8);
  disputed.matches.push_back(Other(5, 5));
  EXPECT_EQ(Worth(disputed), 0) << "one has looked, and matches";
  disputed.matches.pop_back();
  disputed.mismatches.push_back(Other(5, 5));
  EXPECT_EQ(Worth(disputed), 0) << "one has looked, and does not";
}

TEST_F(SchedulerTest, WaitingMakesAStepWorthMore) {
  StepView step;
  const double worth = Worth(step);
  now_ms_ = policy_.aging_ms;
  EXPECT_THAT(Worth(step), DoubleEq(2 * worth));
}

TEST_F(SchedulerTest, LeasesBeginAtStatesAndHaveTheQuota) {
  const Decision decision = Ask();
  ASSERT_TRUE(decision.lease.has_value());
  EXPECT_EQ(decision.lease->first_step % 10, 0);
  EXPECT_EQ(decision.lease->end_step, decision.lease->first_step + 4);
  EXPECT_EQ(decision.lease->steps_wanted, 4);
  EXPECT_FALSE(decision.lease->canary_step.has_value());
  EXPECT_EQ(decision.lease->lease_ms, policy_.lease_ms_min);
  EXPECT_GT(decision.lease->bound_ms, decision.lease->lease_ms);
}

TEST_F(SchedulerTest, LeasesReachBehindWhatIsDone) {
  for (StepView& step : steps_) step.matches = {Other(2, 2), Other(3, 3)};
  steps_[17].matches = {};
  steps_[19].matches = {};
  steps_[20].matches = {};  // a state: better begun there
  const Decision decision = Ask();
  ASSERT_TRUE(decision.lease.has_value());
  // 20 alone costs one step; 17 and 19 cost ten.
  EXPECT_EQ(decision.lease->first_step, 20);
  steps_[20].matches = {Other(2, 2), Other(3, 3)};
  const Decision rest = Ask();
  ASSERT_TRUE(rest.lease.has_value());
  EXPECT_EQ(rest.lease->first_step, 10);
  EXPECT_EQ(rest.lease->end_step, 20);
  EXPECT_EQ(rest.lease->steps_wanted, 2);
}

TEST_F(SchedulerTest, LeasesEndAtADispute) {
  asker_.trust.quota_steps = 100;
  steps_[12].disputed = true;
  steps_[12].mismatches = {Other(3, 3)};
  const Decision decision = Ask();
  ASSERT_TRUE(decision.lease.has_value());
  EXPECT_EQ(decision.lease->first_step, 10);  // before all else
  EXPECT_EQ(decision.lease->end_step, 13);
  // Not even a canary comes between.
  EXPECT_FALSE(Ask(Give({0})).lease->canary_step.has_value());
  // Whoever found the mismatch is not sent over it again.
  asker_.auditor = Other(3, 3);
  const Decision other = Ask();
  ASSERT_TRUE(other.lease.has_value());
  EXPECT_TRUE(other.lease->end_step <= 12 || other.lease->first_step >= 20);
}

TEST_F(SchedulerTest, ACanaryIsTheLastStepOfItsLease) {
  // For the time to retry, for each of four states, for the canary, and for its place.
  const Decision decision = Ask(Give({0, 0.9, 0, 0, 0, 0, 0.6}));
  ASSERT_TRUE(decision.lease.has_value());
  EXPECT_EQ(decision.lease->first_step, 0);
  EXPECT_EQ(decision.lease->canary_step, 2);
  EXPECT_EQ(decision.lease->end_step, 3);
  EXPECT_EQ(decision.lease->steps_wanted, 3);
}

TEST_F(SchedulerTest, ACanaryIsNeverAStepThatTheAskerHasAttested) {
  asker_.trust.quota_steps = 100;
  for (const uint64_t step : {0, 1, 3, 4}) steps_[step].matches = {asker_.auditor};
  states_ = {0};
  for (double place = 0; place < 1; place += 0.01) {
    const Decision decision = Ask(Give({0, 0.9, 0, place}));
    ASSERT_TRUE(decision.lease.has_value() && decision.lease->canary_step.has_value());
    const uint64_t step = *decision.lease->canary_step;
    EXPECT_TRUE(step == 2 || step >= 5) << step;
    EXPECT_EQ(decision.lease->end_step, step + 1);
    EXPECT_EQ(decision.lease->steps_wanted, step == 2 ? 1 : static_cast<int64_t>(step) - 3);
  }
}

TEST_F(SchedulerTest, CapsAreKept) {
  asker_.leases_of_key = policy_.leases_per_key_max;
  EXPECT_EQ(Refusal(), NoLease::kTooManyLeasesOfKey);
  asker_.leases_of_key = 0;
  asker_.leases_of_address = policy_.leases_per_address_max;
  EXPECT_EQ(Refusal(), NoLease::kTooManyLeasesOfAddress);
  asker_.leases_of_address = 0;
  asker_.leases_of_operator = policy_.leases_per_operator_max;
  EXPECT_EQ(Refusal(), NoLease::kTooManyLeasesOfOperator);
  asker_.leases_of_operator = 0;
  asker_.steps_of_key = 4;
  EXPECT_EQ(Refusal(), NoLease::kQuota);
  asker_.steps_of_key = 3;
  EXPECT_EQ(Ask().lease->steps_wanted, 1);
  asker_.trust.not_before_ms = 10;
  EXPECT_EQ(Refusal(), NoLease::kBackoff);
  EXPECT_EQ(Ask().retry_ms, 10);
}

TEST_F(SchedulerTest, MachinesMustBeLargeAndFastEnough) {
  asker_.memory_bytes = 99;
  EXPECT_EQ(Refusal(), NoLease::kMachineTooSmall);
  asker_.memory_bytes = 100;
  asker_.disk_bytes = 99;
  EXPECT_EQ(Refusal(), NoLease::kMachineTooSmall);
  asker_.disk_bytes = 100;
  asker_.operations_per_second = 0;
  EXPECT_EQ(Refusal(), NoLease::kMachineTooSmall);
  // An hour a step: two steps fit in the two hours of a lease.
  asker_.operations_per_second = 1000.0 / 3600;
  EXPECT_EQ(Ask().lease->steps_wanted, 2);
  EXPECT_EQ(Ask().lease->lease_ms, policy_.lease_ms_max);
}

TEST_F(SchedulerTest, WithoutStepsOrStatesThereIsNoWork) {
  states_.clear();
  EXPECT_EQ(Refusal(), NoLease::kNoWork);
  states_ = {40, 50};  // of steps not published
  EXPECT_EQ(Refusal(), NoLease::kNoWork);
  steps_.clear();
  EXPECT_EQ(Refusal(), NoLease::kNoWork);
  EXPECT_EQ(Schedule({}, asker_, policy_, Give({0.5})).reason, NoLease::kNoWork);
}

TEST_F(SchedulerTest, SameArgumentsSameLease) {
  const auto random = [](uint64_t seed) {
    return [engine = std::mt19937_64(seed)]() mutable {
      return static_cast<double>(engine() >> 11) * 0x1p-53;
    };
  };
  std::vector<bool> begun(4);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Decision decision = Ask(random(seed));
    EXPECT_EQ(decision.lease, Ask(random(seed)).lease);
    begun[decision.lease->first_step / 10] = true;
  }
  EXPECT_EQ(begun, std::vector<bool>(4, true));  // and askers are spread
}

TEST(NoLeaseTest, HasANameForEach) {
  EXPECT_EQ(NoLeaseName(NoLease::kNoWork), "NO_WORK");
  EXPECT_EQ(NoLeaseName(NoLease::kMachineTooSmall), "MACHINE_TOO_SMALL");
}

}  // namespace
}  // namespace lockstep::coordinator
