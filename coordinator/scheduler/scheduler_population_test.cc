// SPDX-License-Identifier: Apache-2.0
//
// The scheduler over whole populations of workers, honest and not, by seeded random numbers and
// simulated time: what must hold of the outcome, whoever comes in which order.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "coordinator/scheduler/scheduler.h"
#include "coordinator/scheduler/trust.h"
#include "coordinator/scheduler/work_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

Digest Name(absl::string_view text) { return Sha256(AsBytes(text)); }

enum class Conduct {
  kHonest,
  kHoards,       // takes leases and does nothing
  kHandsBack,    // so does this one, and lets go before they run out
  kAlwaysMatch,  // answers "match" without replaying
  kUnreliable    // does half of its leases
};

struct Worker {
  Auditor auditor;
  std::string address;
  Conduct conduct = Conduct::kHonest;
  KeyTrust trust;
  int64_t steps_granted = 0;  // worth something
  int64_t leases_granted = 0;
  int64_t leases_most = 0;  // live at once
  int canaries_missed = 0;
};

// Every tick each worker, in random order, finishes what it holds and asks anew. A lease not worked
// on ends when its time is up.
class Population {
 public:
  Population(uint64_t seed, int32_t operators, int32_t backends, uint64_t steps,
             uint64_t state_every)
      : random_(seed), steps_(steps), run_(Name("run")) {
    EXPECT_THAT(table_.AddRun({.run = run_,
                               .trainer_operator = Name("trainer"),
                               .quorum_operators = operators,
                               .quorum_backends = backends,
                               .memory_bytes = 1,
                               .disk_bytes = 1,
                               .operations_per_step = 1}),
                IsOk());
    for (uint64_t step = 0; step < steps; ++step) {
      EXPECT_THAT(table_.AddStep(run_, step, 0), IsOk());
      if (step % state_every != 0) continue;
      EXPECT_THAT(table_.AddState(run_, step), IsOk());
    }
  }

  size_t Add(Conduct conduct, const std::string& operator_name, const std::string& backend,
             const std::string& address) {
    Worker worker;
    worker.auditor = table_.NumberAuditor(Name(absl::StrCat("key ", workers_.size())),
                                          Name(operator_name), backend);
    worker.address = address;
    worker.conduct = conduct;
    workers_.push_back(worker);
    return workers_.size() - 1;
  }

  // Until all steps are confirmed or `ticks` have passed; the ticks it took.
  int Run(int ticks) {
    for (int tick = 0; tick < ticks; ++tick) {
      if (Confirmed() == steps_) return tick;
      now_ms_ += kTickMs;
      std::vector<size_t> order(workers_.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random_);
      FinishLeases();
      for (const size_t i : order) Ask(i);
    }
    return ticks;
  }

  uint64_t Confirmed() const {
    const RunView& run = table_.View(now_ms_).runs[0];
    return static_cast<uint64_t>(
        std::count_if(run.steps.begin(), run.steps.end(), [&](const StepView& step) {
          std::set<OperatorNumber> operators;
          std::set<BackendNumber> backends;
          for (const Auditor& match : step.matches) {
            operators.insert(match.operator_number);
            backends.insert(match.backend);
          }
          return static_cast<int32_t>(operators.size()) >= OperatorsWanted(run, step) &&
                 static_cast<int32_t>(backends.size()) >= run.quorum_backends;
        }));
  }

  const std::vector<StepView> Steps() const {
    const RunView& run = table_.View(now_ms_).runs[0];
    return {run.steps.begin(), run.steps.end()};
  }
  const Worker& worker(size_t i) const { return workers_[i]; }
  const std::vector<Worker>& workers() const { return workers_; }
  SchedulerPolicy& policy() { return policy_; }

 private:
  static constexpr int64_t kTickMs = 60'000;

  struct Held {
    std::string lease_id;
    size_t worker = 0;
    LeaseDecision lease;
    int64_t granted_ms = 0;
  };

  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  void Ask(size_t i) {
    Worker& worker = workers_[i];
    Requester requester;
    requester.auditor = worker.auditor;
    requester.trust = worker.trust;
    requester.memory_bytes = requester.disk_bytes = 1;
    requester.operations_per_second = 1;
    // A hoarder takes all it gets; others one lease a tick.
    const bool greedy = worker.conduct == Conduct::kHoards || worker.conduct == Conduct::kHandsBack;
    for (int asked = 0; asked < (greedy ? 100 : 1); ++asked) {
      table_.CountLeases(worker.address, &requester);
      const Decision decision =
          Schedule(table_.View(now_ms_), requester, policy_, [this] { return Uniform(); });
      if (!decision.lease.has_value()) return;
      ASSERT_LT(decision.lease->first_step, decision.lease->end_step);
      ASSERT_LE(decision.lease->end_step, steps_);
      ASSERT_LE(requester.steps_of_key + decision.lease->steps_wanted,
                QuotaSteps(worker.trust, policy_.trust));
      Held held{.lease_id = absl::StrCat(++leases_),
                .worker = i,
                .lease = *decision.lease,
                .granted_ms = now_ms_};
      ASSERT_THAT(table_.AddLease({.lease_id = held.lease_id,
                                   .run = run_,
                                   .first_step = held.lease.first_step,
                                   .end_step = held.lease.end_step,
                                   .steps_wanted = held.lease.steps_wanted,
                                   .auditor = worker.auditor,
                                   .address = worker.address}),
                  IsOk());
      worker.steps_granted += held.lease.steps_wanted;
      ++worker.leases_granted;
      worker.leases_most = std::max(worker.leases_most, requester.leases_of_key + 1);
      held_.push_back(std::move(held));
    }
  }

  void FinishLeases() {
    std::vector<Held> still;
    for (Held& held : std::exchange(held_, {})) {
      Worker& worker = workers_[held.worker];
      if (worker.conduct == Conduct::kHandsBack) {
        worker.trust = AfterUndoneLease(worker.trust, policy_.trust, now_ms_);
        EXPECT_THAT(table_.EndLease(held.lease_id), IsOk());
        continue;
      }
      const bool idle = worker.conduct == Conduct::kHoards ||
                        (worker.conduct == Conduct::kUnreliable && Uniform() < 0.5);
      if (!idle) {
        Finish(held, worker);
      } else if (now_ms_ - held.granted_ms < held.lease.lease_ms) {
        still.push_back(std::move(held));
        continue;
      } else {
        worker.trust = AfterExpired(worker.trust, policy_.trust, now_ms_);
      }
      EXPECT_THAT(table_.EndLease(held.lease_id), IsOk());
    }
    for (Held& held : still) held_.push_back(std::move(held));
  }

  // The steps of a lease that was worked on; matches of who lies do not count, since the openings
  // show it (here: nothing is added for them), but a canary is what takes its trust.
  void Finish(const Held& held, Worker& worker) {
    const bool lies = worker.conduct == Conduct::kAlwaysMatch;
    if (held.lease.canary_step.has_value() && lies) {
      ++worker.canaries_missed;
      worker.trust = AfterInvalid(worker.trust, policy_.trust, now_ms_);
      return;
    }
    for (uint64_t step = held.lease.first_step; step < held.lease.end_step; ++step) {
      if (step == held.lease.canary_step) continue;
      const StepView view = table_.View(now_ms_).runs[0].steps[step];
      const bool again = std::any_of(view.matches.begin(), view.matches.end(),
                                     [&](const Auditor& a) { return a.key == worker.auditor.key; });
      if (again || lies) continue;
      const bool look = NeedsReplication(worker.trust, policy_.trust, Uniform());
      EXPECT_THAT(table_.AddMatch(run_, step, worker.auditor, look), IsOk());
      worker.trust = AfterValidStep(worker.trust);
    }
    worker.trust = AfterGoodLease(worker.trust, policy_.trust);
  }

  std::mt19937_64 random_;
  const uint64_t steps_;
  const Digest run_;
  WorkTable table_;
  SchedulerPolicy policy_;
  std::vector<Worker> workers_;
  std::vector<Held> held_;
  int64_t now_ms_ = 0;
  int64_t leases_ = 0;
};

class PopulationTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(PopulationTest, HonestWorkersConfirmEveryStep) {
  Population p(GetParam(), 2, 2, 300, 20);
  for (int i = 0; i < 6; ++i) {
    p.Add(Conduct::kHonest, absl::StrCat("operator ", i), i % 2 == 0 ? "x86-avx2" : "arm-neon",
          absl::StrCat("address ", i));
  }
  EXPECT_LT(p.Run(400), 400);
  EXPECT_EQ(p.Confirmed(), 300);
}

TEST_P(PopulationTest, NoStepStarvesBehindASingleState) {
  // The only state is the first, and a new key's quota is far less than the run.
  Population p(GetParam(), 2, 1, 150, 1000);
  for (int i = 0; i < 3; ++i) {
    p.Add(i == 2 ? Conduct::kUnreliable : Conduct::kHonest, absl::StrCat("operator ", i),
          "x86-avx2", absl::StrCat("address ", i));
  }
  EXPECT_LT(p.Run(1000), 1000);
}

TEST_P(PopulationTest, AQuorumOfOneIsLookedAtTwiceUntilTrusted) {
  Population p(GetParam(), 1, 1, 400, 10);
  for (int i = 0; i < 4; ++i) {
    p.Add(Conduct::kHonest, absl::StrCat("operator ", i), "x86-avx2", absl::StrCat("address ", i));
  }
  EXPECT_LT(p.Run(400), 400);
  size_t matches = 0;
  for (const StepView& step : p.Steps()) matches += step.matches.size();
  EXPECT_GE(matches, 400 + 10);   // some twice
  EXPECT_LE(matches, 400 + 200);  // most once
}

TEST_P(PopulationTest, AHoarderIsCappedAndHoldsNobodyUp) {
  Population p(GetParam(), 2, 1, 300, 10);
  const size_t hoarder = p.Add(Conduct::kHoards, "hoarder", "x86-avx2", "bad");
  for (int i = 0; i < 4; ++i) {
    p.Add(Conduct::kHonest, absl::StrCat("operator ", i), "x86-avx2", absl::StrCat("address ", i));
  }
  EXPECT_LT(p.Run(400), 400);
  EXPECT_LE(p.worker(hoarder).leases_most, p.policy().leases_per_key_max);
  int64_t honest = 0;
  for (size_t i = 1; i < p.workers().size(); ++i) honest += p.worker(i).steps_granted;
  EXPECT_LT(p.worker(hoarder).steps_granted * 10, honest);
}

TEST_P(PopulationTest, AHoarderWhoLetsGoInTimeGetsNoMore) {
  Population p(GetParam(), 2, 1, 300, 10);
  const size_t hoarder = p.Add(Conduct::kHandsBack, "hoarder", "x86-avx2", "bad");
  p.Run(200);
  EXPECT_LT(p.worker(hoarder).leases_granted, 20) << "in 200 minutes";
  for (int i = 0; i < 4; ++i) {
    p.Add(Conduct::kHonest, absl::StrCat("operator ", i), "x86-avx2", absl::StrCat("address ", i));
  }
  EXPECT_LT(p.Run(400), 400);
}

TEST_P(PopulationTest, AHoarderOfManyKeysIsCappedByAddressAndOperator) {
  Population p(GetParam(), 2, 1, 600, 10);
  p.policy().leases_per_operator_max = 20;
  for (int i = 0; i < 50; ++i) p.Add(Conduct::kHoards, "hoarder", "x86-avx2", "one address");
  for (int i = 0; i < 50; ++i) {
    p.Add(Conduct::kHoards, "hoarder", "x86-avx2", absl::StrCat("address ", i));
  }
  p.Run(1);
  std::vector<int64_t> live(2);
  for (size_t i = 0; i < 100; ++i) live[i / 50] += p.worker(i).leases_granted;
  EXPECT_LE(live[0], p.policy().leases_per_address_max);
  EXPECT_EQ(live[0] + live[1], p.policy().leases_per_operator_max);
  for (int i = 0; i < 4; ++i) {
    p.Add(Conduct::kHonest, absl::StrCat("operator ", i), "x86-avx2", absl::StrCat("honest ", i));
  }
  EXPECT_LT(p.Run(800), 800);
}

TEST_P(PopulationTest, AThousandKeysOfOneOperatorConfirmNothing) {
  Population p(GetParam(), 2, 1, 100, 10);
  for (int i = 0; i < 1000; ++i) {
    p.Add(Conduct::kHonest, "one", i % 2 == 0 ? "x86-avx2" : "arm-neon", absl::StrCat("a ", i));
  }
  p.Run(60);
  EXPECT_EQ(p.Confirmed(), 0);
  // Another key may replay a step on its way to one that is worth something; it is one operator
  // still.
  for (const StepView& step : p.Steps()) {
    for (const Auditor& match : step.matches) {
      EXPECT_EQ(match.operator_number, step.matches[0].operator_number);
    }
  }
  // One other is enough.
  p.Add(Conduct::kHonest, "another", "x86-avx2", "b");
  EXPECT_LT(p.Run(400), 400);
}

TEST_P(PopulationTest, FailingHostsGetLess) {
  Population p(GetParam(), 3, 1, 1500, 10);
  std::vector<size_t> good;
  std::vector<size_t> bad;
  for (int i = 0; i < 4; ++i) {
    good.push_back(
        p.Add(Conduct::kHonest, absl::StrCat("good ", i), "x86-avx2", absl::StrCat("good ", i)));
    bad.push_back(
        p.Add(Conduct::kUnreliable, absl::StrCat("bad ", i), "x86-avx2", absl::StrCat("bad ", i)));
  }
  EXPECT_LT(p.Run(2000), 2000);
  int64_t good_steps = 0;
  int64_t bad_steps = 0;
  for (const size_t i : good) good_steps += p.worker(i).steps_granted;
  for (const size_t i : bad) bad_steps += p.worker(i).steps_granted;
  EXPECT_LT(bad_steps * 2, good_steps);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PopulationTest, ::testing::Range<uint64_t>(0, 5));

// Leases until a key that answers "match" unseen is caught: geometric, with mean 1 / share.
TEST(CanaryTest, CatchesAlwaysMatchInTheExpectedNumberOfLeases) {
  constexpr int kKeys = 400;
  double leases = 0;
  for (uint64_t seed = 0; seed < kKeys; ++seed) {
    Population p(seed, 2, 1, 50, 10);
    const size_t liar = p.Add(Conduct::kAlwaysMatch, "liar", "x86-avx2", "bad");
    while (p.worker(liar).canaries_missed == 0) {
      ASSERT_LT(p.worker(liar).leases_granted, 200) << seed;
      p.Run(1);
    }
    // The last was asked for after the one that caught it, or refused.
    const Worker& worker = p.worker(liar);
    leases += static_cast<double>(worker.leases_granted);
    EXPECT_GT(worker.trust.not_before_ms, 0);
    EXPECT_EQ(QuotaSteps(worker.trust, p.policy().trust), 1);
  }
  // Mean 8; the standard deviation of the mean is 7.5 / 20.
  EXPECT_NEAR(leases / kKeys, 8, 4 * 7.5 / 20);
}

TEST(WorkTableTest, RefusesWhatItDoesNotKnow) {
  constexpr auto kNotFound = absl::StatusCode::kNotFound;
  constexpr auto kAlreadyExists = absl::StatusCode::kAlreadyExists;
  WorkTable table;
  const Digest run = Name("run");
  EXPECT_THAT(table.AddStep(run, 0, 0), StatusIs(kNotFound));
  EXPECT_THAT(table.AddState(run, 0), StatusIs(kNotFound));
  ASSERT_THAT(table.AddRun({.run = run, .trainer_operator = {}}), IsOk());
  EXPECT_THAT(table.AddRun({.run = run, .trainer_operator = {}}), StatusIs(kAlreadyExists));
  EXPECT_THAT(table.AddStep(run, 1, 0), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_THAT(table.AddStep(run, 0, 0), IsOk());
  EXPECT_THAT(table.AddMatch(run, 1, {}, false), StatusIs(kNotFound));
  EXPECT_THAT(table.AddMismatch(run, 1, {}, 0), StatusIs(kNotFound));
  EXPECT_THAT(table.DropState(run, 0), StatusIs(kNotFound));
  WorkLease lease;
  lease.lease_id = "lease";
  lease.run = run;
  lease.end_step = 2;
  EXPECT_THAT(table.AddLease(lease), StatusIs(kNotFound));
  lease.end_step = 1;
  EXPECT_THAT(table.AddLease(lease), IsOk());
  EXPECT_THAT(table.AddLease(lease), StatusIs(kAlreadyExists));
  EXPECT_THAT(table.EndStep("other", 0), StatusIs(kNotFound));
  EXPECT_THAT(table.EndStep("lease", 0), IsOk());
  EXPECT_TRUE(table.View(0).runs[0].steps[0].holders.empty());
  EXPECT_THAT(table.EndLease("lease"), IsOk());
  EXPECT_THAT(table.EndLease("lease"), StatusIs(kNotFound));
}

TEST(WorkTableTest, KnowsDisputesAndStates) {
  WorkTable table;
  const Digest run = Name("run");
  ASSERT_THAT(table.AddRun({.run = run, .trainer_operator = {}}), IsOk());
  ASSERT_THAT(table.AddStep(run, 0, 1), IsOk());
  for (const uint64_t state : {5, 0, 3, 0}) ASSERT_THAT(table.AddState(run, state), IsOk());
  EXPECT_THAT(table.View(0).runs[0].states, ::testing::ElementsAre(0, 3, 5));
  EXPECT_THAT(table.DropState(run, 3), IsOk());
  EXPECT_THAT(table.View(0).runs[0].states, ::testing::ElementsAre(0, 5));
  ASSERT_THAT(table.AddMismatch(run, 0, {}, 7), IsOk());
  EXPECT_TRUE(table.View(0).runs[0].steps[0].disputed);
  EXPECT_EQ(table.View(0).runs[0].steps[0].waiting_since_ms, 7);
  EXPECT_EQ(table.View(0).runs[0].steps[0].matched_before, 0);
  ASSERT_THAT(table.AddMatch(run, 0, {.key = 1, .operator_number = 1, .backend = 0}, false),
              IsOk());
  ASSERT_THAT(table.AddMatch(run, 0, {.key = 2, .operator_number = 1, .backend = 0}, false),
              IsOk());
  ASSERT_THAT(table.AddMismatch(run, 0, {}, 8), IsOk());
  EXPECT_EQ(table.View(0).runs[0].steps[0].matched_before, 1) << "operators, not keys";
  ASSERT_THAT(table.SetDisputed(run, 0, false, 9), IsOk());
  EXPECT_FALSE(table.View(0).runs[0].steps[0].disputed);
}

}  // namespace
}  // namespace lockstep::coordinator
