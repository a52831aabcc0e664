// SPDX-License-Identifier: Apache-2.0
//
// What the public is told of runs and their steps, as plain values: for gRPC (service/) and JSON
// (api/) alike. Each is read under the coordinator's lock for a short while.

#ifndef LOCKSTEP_COORDINATOR_VIEWS_RUNS_H_
#define LOCKSTEP_COORDINATOR_VIEWS_RUNS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/ledger/ledger.h"
#include "coordinator/core/coordinator.h"

namespace lockstep::coordinator {

// NotFound with the reason RUN_UNKNOWN or STEP_UNKNOWN.
absl::Status RunUnknown();
absl::Status StepUnknown();

struct RunSummary {
  Digest run;
  std::string name;  // a stranger's text
  Ed25519PublicKey trainer_key;
  std::optional<Ed25519PublicKey> trainer_operator;  // who vouches for it, by the present key
  audit::Quorum quorum;
  uint64_t steps = 0;
  uint64_t steps_planned = 0;  // 0: not known
  uint64_t first_step = 0;
  Digest chain;
  std::array<uint64_t, audit::kStepStates> counts{};
  uint64_t log_index = 0;
  int64_t registered_ms = kTimeUnknown;
  std::optional<Digest> parent;
  uint64_t tokens = 0;
  std::optional<audit::StepRecord> last;
  uint64_t operators = 0;                                  // with a match that counts
  std::vector<std::pair<std::string, uint64_t>> backends;  // matches that count; by name
  Credit attestations;
  uint64_t disputes = 0;
  uint64_t confirmed_last_hour = 0;
  uint64_t records_last_hour = 0;
  int64_t last_record_ms = kTimeUnknown;
};

absl::StatusOr<RunSummary> SummarizeRun(const Coordinator& coordinator, const Digest& run);

// Steps until the batch phases end; 0 if the schedule does not tell.
uint64_t StepsPlanned(const audit::RunManifest& manifest);

struct StepSummary {
  audit::StepRecord record;
  audit::StepState state = audit::StepState::kUnaudited;
  audit::StepTally tally;
  uint64_t attestations = 0;
  uint64_t log_index = 0;
  int64_t received_ms = kTimeUnknown;
};

// Within Coordinator::Read. `offset`: from the run's first step; `state`: by Coverage, since the
// ledger knows no leases.
StepSummary SummarizeStep(const audit::Ledger& ledger, const Tallies& tallies,
                          const audit::RunLedger& run, uint64_t offset, audit::StepState state);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_VIEWS_RUNS_H_
