// SPDX-License-Identifier: Apache-2.0
//
// Who audits what next: a pure function of a snapshot, the one who asks, and random numbers that
// are passed in. No clock, no store, no network; the same arguments give the same lease.
//
// What a step is worth to somebody who asks (README.md, "What a step is worth"):
//   nothing   if it is decided, or the asker's operator has attested it, holds it, or trains the
//   run much      if it is disputed, and the asker is of another operator and another backend class
//   than
//             all who attested it; after dispute_patience_ms, another operator is enough
//   something while it needs more operators, or a second look; more if it also needs another
//             backend class and the asker brings one; and more the longer it has waited
// A lease starts at an available state and takes in steps until it has as many that are worth
// something as the asker may hold, or until the time is up, or a dispute, behind which the
// published state may be out of reach. Among all such ranges, the one worth most for each step
// replayed is taken; random numbers decide between equals and spread the askers.

#ifndef LOCKSTEP_COORDINATOR_SCHEDULER_SCHEDULER_H_
#define LOCKSTEP_COORDINATOR_SCHEDULER_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/sha256.h"
#include "coordinator/scheduler/trust.h"

namespace lockstep::coordinator {

// Small numbers for what the service knows by key, address or name; equal numbers are equal things.
using KeyNumber = uint32_t;
using OperatorNumber = uint32_t;
using BackendNumber = uint16_t;

// Who attested a step, or holds a lease on it.
struct Auditor {
  KeyNumber key = 0;
  OperatorNumber operator_number = 0;
  BackendNumber backend = 0;

  bool operator==(const Auditor&) const = default;
};

// A published step.
struct StepView {
  absl::InlinedVector<Auditor, 2> matches;     // counted ones (audit's quorum rules)
  absl::InlinedVector<Auditor, 1> mismatches;  // by registered keys
  absl::InlinedVector<Auditor, 2> holders;     // of live leases
  bool disputed = false;
  // Asks for one operator more than a quorum of one: the only match is by a key that is to be
  // checked (NeedsReplication, drawn when the match came).
  bool second_look = false;
  int64_t waiting_since_ms = 0;  // since it was published, or became disputed
  // Operators that had matched it when the last mismatch came. What they said says nothing of it:
  // the dispute waits for one more.
  int32_t matched_before = 0;
};

struct RunView {
  Digest run;
  OperatorNumber trainer = 0;
  int32_t quorum_operators = 1;
  int32_t quorum_backends = 1;
  absl::Span<const StepView> steps;   // all that are published, from step 0
  absl::Span<const uint64_t> states;  // steps at which one can start, in order
  int64_t memory_bytes = 0;           // that a replay needs, besides the machine's other work
  int64_t disk_bytes = 0;
  double operations_per_step = 0;  // floating-point
};

struct Snapshot {
  int64_t now_ms = 0;  // service time
  absl::Span<const RunView> runs;
};

// A worker that asks, and what the snapshot says of it.
struct Requester {
  Auditor auditor;
  KeyTrust trust;
  int64_t memory_bytes = 0;
  int64_t disk_bytes = 0;
  double operations_per_second = 0;
  // Live leases, and the steps in those of this key that are worth something.
  int64_t leases_of_key = 0;
  int64_t leases_of_address = 0;
  int64_t leases_of_operator = 0;
  int64_t steps_of_key = 0;
};

struct SchedulerPolicy {
  TrustPolicy trust;
  int64_t leases_per_key_max = 2;
  int64_t leases_per_address_max = 8;
  int64_t leases_per_operator_max = 64;
  int64_t steps_per_lease_max = 256;      // worth something
  int64_t replay_ms_max = 2 * 3'600'000;  // that a lease should take its holder
  double time_slack = 3;                  // a lease lives this often the time expected
  int64_t lease_ms_min = 60'000;          // without a heartbeat
  int64_t lease_ms_max = 15 * 60'000;
  int64_t dispute_patience_ms = 3'600'000;
  int64_t aging_ms = 6 * 3'600'000;  // waited this long, a step is worth twice as much
  int64_t retry_ms_min = 5'000;      // before who got no work asks again; up to six times that
};

// Uniform in [0, 1).
using Random = std::function<double()>;

struct LeaseDecision {
  size_t run_index = 0;  // in Snapshot::runs
  Digest run;
  uint64_t first_step = 0;  // an available state
  uint64_t end_step = 0;
  int64_t steps_wanted = 0;  // of these, worth something
  int64_t lease_ms = 0;      // until it runs out without a heartbeat
  int64_t bound_ms = 0;      // until it runs out in any case
  // The step, the lease's last, whose record is to be served falsified.
  std::optional<uint64_t> canary_step;

  bool operator==(const LeaseDecision&) const = default;
};

// Why there is no lease, by the names of the wire (google.rpc.ErrorInfo reason).
enum class NoLease {
  kNoWork,
  kBackoff,
  kQuota,
  kTooManyLeasesOfKey,
  kTooManyLeasesOfAddress,
  kTooManyLeasesOfOperator,
  kMachineTooSmall
};
absl::string_view NoLeaseName(NoLease reason);  // "NO_WORK", ...

struct Decision {
  std::optional<LeaseDecision> lease;
  NoLease reason = NoLease::kNoWork;  // without a lease
  int64_t retry_ms = 0;               // when to ask again
};

// In time linear in the steps published. `random` is called at most once a state and thrice
// besides.
Decision Schedule(const Snapshot& snapshot, const Requester& requester,
                  const SchedulerPolicy& policy, const Random& random);

// What the step is worth to the asker, at least 0. For Schedule, and for tests.
double StepWorth(const RunView& run, const StepView& step, const Auditor& auditor, int64_t now_ms,
                 const SchedulerPolicy& policy);

// How many different operators these are of.
int32_t CountOperators(absl::Span<const Auditor> auditors);

// Operators that the step asks for: the run's quorum, or a second one for a second look.
int32_t OperatorsWanted(const RunView& run, const StepView& step);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_SCHEDULER_SCHEDULER_H_
