// SPDX-License-Identifier: Apache-2.0
//
// The snapshot that the scheduler looks at, kept up to date one event at a time, so that none has
// to be made for each asker. A view and nothing more: whoever keeps it builds it anew at each
// start, from the ledger and the store's live leases. It does not decide what counts.

#ifndef LOCKSTEP_COORDINATOR_SCHEDULER_WORK_TABLE_H_
#define LOCKSTEP_COORDINATOR_SCHEDULER_WORK_TABLE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"
#include "coordinator/scheduler/scheduler.h"

namespace lockstep::coordinator {

// What is known of a run when it is registered.
struct WorkRun {
  Digest run;
  Digest trainer_operator;
  int32_t quorum_operators = 1;
  int32_t quorum_backends = 1;
  int64_t memory_bytes = 0;
  int64_t disk_bytes = 0;
  double operations_per_step = 0;
};

// A lease as the table needs it: of `wanted` steps among [first_step, end_step).
struct WorkLease {
  std::string lease_id;
  Digest run;
  uint64_t first_step = 0;
  uint64_t end_step = 0;
  int64_t steps_wanted = 0;
  Auditor auditor;
  std::string address;
};

// By one thread at a time. Unknown runs, steps and leases are NotFound, and change nothing.
class WorkTable {
 public:
  // The numbers for who is new are made.
  Auditor NumberAuditor(const Digest& key, const Digest& operator_name, absl::string_view backend);

  absl::Status AddRun(const WorkRun& run);
  // The trainer has said since whose it is.
  absl::Status SetTrainer(const Digest& run, const Digest& trainer_operator);
  // The next step of a run, which is `step`; InvalidArgument if it is another.
  absl::Status AddStep(const Digest& run, uint64_t step, int64_t now_ms);
  // One can start at `step`; not yet published steps are allowed.
  absl::Status AddState(const Digest& run, uint64_t step);
  absl::Status DropState(const Digest& run, uint64_t step);

  // `second_look`: NeedsReplication of the key, drawn now.
  absl::Status AddMatch(const Digest& run, uint64_t step, const Auditor& auditor, bool second_look);
  // Makes the step disputed.
  absl::Status AddMismatch(const Digest& run, uint64_t step, const Auditor& auditor,
                           int64_t now_ms);
  absl::Status SetDisputed(const Digest& run, uint64_t step, bool disputed, int64_t now_ms);

  // AlreadyExists if there is such a lease.
  absl::Status AddLease(const WorkLease& lease);
  // It no longer holds `step`, which was attested.
  absl::Status EndStep(absl::string_view lease_id, uint64_t step);
  absl::Status EndLease(absl::string_view lease_id);

  // Until the table changes. Steps, states and runs are not copied.
  Snapshot View(int64_t now_ms) const;

  // The live leases of an asker filled in.
  void CountLeases(absl::string_view address, Requester* requester) const;

 private:
  struct Run {
    std::vector<StepView> steps;
    std::vector<uint64_t> states;
  };
  struct Counts {
    int64_t leases = 0;
    int64_t steps = 0;
  };

  absl::StatusOr<size_t> FindRun(const Digest& run) const;
  absl::StatusOr<StepView*> FindStep(const Digest& run, uint64_t step);
  void Refresh(size_t index);
  static void RemoveHolder(const Auditor& auditor, StepView* step);

  std::deque<Run> runs_;
  std::vector<RunView> views_;  // of runs_, by the same index
  absl::flat_hash_map<Digest, size_t> run_index_;
  absl::flat_hash_map<Digest, KeyNumber> keys_;
  absl::flat_hash_map<Digest, OperatorNumber> operators_;
  absl::flat_hash_map<std::string, BackendNumber> backends_;
  absl::flat_hash_map<std::string, WorkLease> leases_;
  absl::flat_hash_map<KeyNumber, Counts> by_key_;
  absl::flat_hash_map<OperatorNumber, Counts> by_operator_;
  absl::flat_hash_map<std::string, Counts> by_address_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_SCHEDULER_WORK_TABLE_H_
