// SPDX-License-Identifier: Apache-2.0
//
// The choice of work. See scheduler.h.

#include "coordinator/scheduler/scheduler.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace lockstep::coordinator {
namespace {

// Weights. A dispute goes before everything; a step that some have matched goes before an untouched
// one, so that steps get confirmed rather than all of them half so; a backend class that is wanted
// before one that is not.
constexpr double kWorthDispute = 16;
constexpr double kWorthWanted = 1;
constexpr double kWorthBegun = 0.5;
constexpr double kWorthBackend = 1;
constexpr double kWorthSameBackend = 0.25;
// Random numbers move a range's worth by up to this share.
constexpr double kSpread = 0.25;

// Askers are told to wait up to so many times the policy's least, lest they all come back at once.
constexpr double kRetrySpread = 6;

template <typename Auditors>
bool Has(const Auditors& auditors, const Auditor& auditor, bool or_backend) {
  return std::any_of(auditors.begin(), auditors.end(), [&](const Auditor& a) {
    return a.operator_number == auditor.operator_number ||
           (or_backend && a.backend == auditor.backend);
  });
}

// How many different operators and backend classes are among matches and holders.
struct Coverage {
  int32_t operators = 0;
  int32_t backends = 0;
  bool has_backend = false;  // the asker's
};

Coverage Cover(const StepView& step, const Auditor& auditor) {
  absl::InlinedVector<OperatorNumber, 8> operators;
  absl::InlinedVector<BackendNumber, 8> backends;
  Coverage coverage;
  const auto add = [&](const Auditor& a) {
    if (std::find(operators.begin(), operators.end(), a.operator_number) == operators.end()) {
      operators.push_back(a.operator_number);
    }
    if (std::find(backends.begin(), backends.end(), a.backend) == backends.end()) {
      backends.push_back(a.backend);
    }
    coverage.has_backend |= a.backend == auditor.backend;
  };
  for (const Auditor& a : step.matches) add(a);
  for (const Auditor& a : step.holders) add(a);
  coverage.operators = static_cast<int32_t>(operators.size());
  coverage.backends = static_cast<int32_t>(backends.size());
  return coverage;
}

double DisputeWorth(const RunView& run, const StepView& step, const Auditor& auditor,
                    int64_t now_ms, const SchedulerPolicy& policy) {
  // One at a time looks at a dispute, until enough have said the same.
  if (!step.holders.empty()) return 0;
  const int32_t enough = std::max<int32_t>(run.quorum_operators, 2);
  const int32_t matches = std::max(enough, step.matched_before + 1);
  if (CountOperators(step.matches) >= matches || CountOperators(step.mismatches) >= enough) {
    return 0;
  }
  const bool patient = now_ms - step.waiting_since_ms < policy.dispute_patience_ms;
  if (Has(step.matches, auditor, patient) || Has(step.mismatches, auditor, patient)) return 0;
  return kWorthDispute;
}

// Whether a replay that comes to this step can be expected to leave it with the published state.
bool CanCross(const RunView& run, const StepView& step) {
  return !step.disputed || CountOperators(step.matches) >= run.quorum_operators;
}

struct Range {
  size_t run_index = 0;
  uint64_t first = 0;
  uint64_t end = 0;
  int64_t wanted = 0;
  bool disputed = false;  // the last step is
  double worth = 0;       // by step replayed, but for a dispute's
};

// What one who asks may have of one run.
struct Limits {
  int64_t wanted = 0;
  uint64_t replayed = 0;
};

// The range from state `first`; the next state is `states[0]` and so on. Empty if what is worth
// something is better reached from a later one. A gap within is crossed as long as no state lies
// in it: whoever comes for what is behind would replay it too.
Range FindRange(const RunView& run, uint64_t first, absl::Span<const uint64_t> states,
                const std::vector<float>& worth, const Limits& limits) {
  Range range{.first = first, .end = first};
  double sum = 0;
  const uint64_t last = std::min<uint64_t>(worth.size(), first + limits.replayed);
  const uint64_t next_state = states.empty() ? worth.size() : states.front();
  for (uint64_t step = first; step < last && range.wanted < limits.wanted; ++step) {
    while (!states.empty() && states.front() < range.end) states.remove_prefix(1);
    const bool gap = step > range.end;
    if (gap && !states.empty() && states.front() <= step) break;
    const bool crossable = CanCross(run, run.steps[step]);
    // A dispute is reached from the last state before it, and so at once.
    if (!crossable && next_state <= step) break;
    if (worth[step] > 0) {
      ++range.wanted;
      range.end = step + 1;
      if (crossable) {
        sum += worth[step];
      } else {
        range.disputed = true;
        range.worth = worth[step];
      }
    }
    if (!crossable) break;
  }
  if (range.wanted > 0) range.worth += sum / static_cast<double>(range.end - first);
  return range;
}

void FindRanges(const RunView& run, size_t run_index, const std::vector<float>& worth,
                const Limits& limits, std::vector<Range>* ranges) {
  for (size_t i = 0; i < run.states.size() && run.states[i] < worth.size(); ++i) {
    Range range = FindRange(run, run.states[i], run.states.subspan(i + 1), worth, limits);
    range.run_index = run_index;
    if (range.wanted > 0) ranges->push_back(range);
  }
}

// Steps of this run that the machine replays in the time a lease may take; 0 if it is too small.
uint64_t ReplaySteps(const RunView& run, const Requester& requester,
                     const SchedulerPolicy& policy) {
  if (requester.memory_bytes < run.memory_bytes || requester.disk_bytes < run.disk_bytes ||
      !(requester.operations_per_second > 0)) {
    return 0;
  }
  if (!(run.operations_per_step > 0)) return run.steps.size();
  const double steps = static_cast<double>(policy.replay_ms_max) / 1000 *
                       requester.operations_per_second / run.operations_per_step;
  return steps >= static_cast<double>(run.steps.size()) ? run.steps.size()
                                                        : static_cast<uint64_t>(steps);
}

Decision Refuse(NoLease reason, int64_t retry_ms) {
  return {.lease = std::nullopt, .reason = reason, .retry_ms = retry_ms};
}

std::optional<Decision> RefuseByCaps(const Snapshot& snapshot, const Requester& requester,
                                     const SchedulerPolicy& policy, int64_t retry_ms) {
  const int64_t wait_ms = requester.trust.not_before_ms - snapshot.now_ms;
  if (wait_ms > 0) return Refuse(NoLease::kBackoff, wait_ms);
  if (requester.leases_of_key >= policy.leases_per_key_max) {
    return Refuse(NoLease::kTooManyLeasesOfKey, retry_ms);
  }
  if (requester.leases_of_address >= policy.leases_per_address_max) {
    return Refuse(NoLease::kTooManyLeasesOfAddress, retry_ms);
  }
  if (requester.leases_of_operator >= policy.leases_per_operator_max) {
    return Refuse(NoLease::kTooManyLeasesOfOperator, retry_ms);
  }
  if (requester.steps_of_key >= QuotaSteps(requester.trust, policy.trust)) {
    return Refuse(NoLease::kQuota, retry_ms);
  }
  return std::nullopt;
}

// The lease on a range, perhaps cut to end in a canary.
LeaseDecision MakeLease(const RunView& run, const Range& range, const std::vector<float>& worth,
                        const Requester& requester, const SchedulerPolicy& policy,
                        const Random& random) {
  LeaseDecision lease;
  lease.run_index = range.run_index;
  lease.run = run.run;
  lease.first_step = range.first;
  lease.end_step = range.end;
  lease.steps_wanted = range.wanted;
  // Never beside a dispute, whose outcome must be plain.
  if (random() < CanaryShare(requester.trust, policy.trust) && !range.disputed) {
    // Where replay stops, since after a false record the chain leads nowhere. Among the steps that
    // are asked for: of another the asker may have said before what it found.
    auto ahead = static_cast<int64_t>(random() * static_cast<double>(range.wanted));
    uint64_t step = range.first;
    for (; step + 1 < range.end; ++step) {
      if (worth[step] > 0 && --ahead < 0) break;
    }
    lease.canary_step = step;
    lease.end_step = step + 1;
    lease.steps_wanted = std::count_if(worth.begin() + static_cast<ptrdiff_t>(range.first),
                                       worth.begin() + static_cast<ptrdiff_t>(lease.end_step),
                                       [](float w) { return w > 0; });
  }
  const auto steps = static_cast<double>(lease.end_step - lease.first_step);
  const double expected_ms =
      1000 * steps * run.operations_per_step / requester.operations_per_second;
  const auto most = static_cast<double>(policy.replay_ms_max) * policy.time_slack;
  const auto slack_ms = static_cast<int64_t>(std::min(expected_ms * policy.time_slack, most));
  lease.lease_ms = std::clamp(slack_ms, policy.lease_ms_min, policy.lease_ms_max);
  lease.bound_ms = std::max(slack_ms, policy.lease_ms_min) + policy.lease_ms_max;
  return lease;
}

}  // namespace

absl::string_view NoLeaseName(NoLease reason) {
  switch (reason) {
    case NoLease::kNoWork:
      return "NO_WORK";
    case NoLease::kBackoff:
      return "BACKOFF";
    case NoLease::kQuota:
      return "QUOTA";
    case NoLease::kTooManyLeasesOfKey:
      return "TOO_MANY_LEASES_OF_KEY";
    case NoLease::kTooManyLeasesOfAddress:
      return "TOO_MANY_LEASES_OF_ADDRESS";
    case NoLease::kTooManyLeasesOfOperator:
      return "TOO_MANY_LEASES_OF_OPERATOR";
    case NoLease::kMachineTooSmall:
      return "MACHINE_TOO_SMALL";
  }
  return "NO_WORK";
}

int32_t CountOperators(absl::Span<const Auditor> auditors) {
  absl::InlinedVector<OperatorNumber, 8> seen;
  for (const Auditor& a : auditors) {
    if (std::find(seen.begin(), seen.end(), a.operator_number) == seen.end()) {
      seen.push_back(a.operator_number);
    }
  }
  return static_cast<int32_t>(seen.size());
}

int32_t OperatorsWanted(const RunView& run, const StepView& step) {
  return std::max<int32_t>(run.quorum_operators, step.second_look ? 2 : 1);
}

double StepWorth(const RunView& run, const StepView& step, const Auditor& auditor, int64_t now_ms,
                 const SchedulerPolicy& policy) {
  if (auditor.operator_number == run.trainer) return 0;
  if (Has(step.matches, auditor, false) || Has(step.holders, auditor, false)) return 0;
  const double waited_ms =
      static_cast<double>(std::max<int64_t>(now_ms - step.waiting_since_ms, 0));
  const double age = 1 + waited_ms / static_cast<double>(policy.aging_ms);
  if (step.disputed) return age * DisputeWorth(run, step, auditor, now_ms, policy);

  const Coverage coverage = Cover(step, auditor);
  const int32_t operators = OperatorsWanted(run, step) - coverage.operators;
  const int32_t backends = run.quorum_backends - coverage.backends;
  const double begun = step.matches.empty() ? 0 : kWorthBegun;
  if (backends > 0 && !coverage.has_backend) return age * (kWorthWanted + begun + kWorthBackend);
  if (operators <= 0) return 0;
  // As many places are left as backend classes are wanted: one that is there already takes a place
  // from them, and leaves the step in need of one more.
  if (operators <= backends) return age * kWorthSameBackend;
  return age * (kWorthWanted + begun);
}

Decision Schedule(const Snapshot& snapshot, const Requester& requester,
                  const SchedulerPolicy& policy, const Random& random) {
  const auto retry_ms = static_cast<int64_t>(static_cast<double>(policy.retry_ms_min) *
                                             (1 + random() * (kRetrySpread - 1)));
  if (std::optional<Decision> refusal = RefuseByCaps(snapshot, requester, policy, retry_ms)) {
    return *std::move(refusal);
  }
  Limits limits{.wanted =
                    std::min(QuotaSteps(requester.trust, policy.trust) - requester.steps_of_key,
                             policy.steps_per_lease_max)};
  std::vector<Range> ranges;
  std::vector<std::vector<float>> worths(snapshot.runs.size());
  bool fits = snapshot.runs.empty();
  for (size_t r = 0; r < snapshot.runs.size(); ++r) {
    const RunView& run = snapshot.runs[r];
    limits.replayed = ReplaySteps(run, requester, policy);
    fits |= limits.replayed > 0 || run.steps.empty();
    if (limits.replayed == 0) continue;
    worths[r].reserve(run.steps.size());
    for (const StepView& step : run.steps) {
      worths[r].push_back(
          static_cast<float>(StepWorth(run, step, requester.auditor, snapshot.now_ms, policy)));
    }
    FindRanges(run, r, worths[r], limits, &ranges);
  }
  if (ranges.empty()) {
    return Refuse(fits ? NoLease::kNoWork : NoLease::kMachineTooSmall, retry_ms);
  }
  const Range* best = nullptr;
  double best_worth = 0;
  for (const Range& range : ranges) {
    const double worth = range.worth * (1 + kSpread * random());
    if (best == nullptr || worth > best_worth) {
      best = &range;
      best_worth = worth;
    }
  }
  return {.lease = MakeLease(snapshot.runs[best->run_index], *best, worths[best->run_index],
                             requester, policy, random)};
}

}  // namespace lockstep::coordinator
