// SPDX-License-Identifier: Apache-2.0
//
// See runs.h.

#include "coordinator/views/runs.h"

#include <algorithm>

#include "base/status.h"
#include "coordinator/core/reasons.h"

namespace lockstep::coordinator {

absl::Status RunUnknown() {
  return Refused(absl::StatusCode::kNotFound, "RUN_UNKNOWN", "the run is not registered");
}

absl::Status StepUnknown() {
  return Refused(absl::StatusCode::kNotFound, "STEP_UNKNOWN", "the step has no record");
}

uint64_t StepsPlanned(const audit::RunManifest& manifest) {
  int64_t tokens = manifest.parent ? manifest.parent->tokens : 0;
  uint64_t steps = 0;
  for (const audit::BatchPhaseConfig& phase : manifest.batch) {
    const int64_t per_step = phase.windows_per_step * manifest.model.seq_len;
    if (per_step <= 0 || tokens >= phase.until_tokens) continue;
    const int64_t here = (phase.until_tokens - tokens + per_step - 1) / per_step;
    steps += static_cast<uint64_t>(here);
    tokens += here * per_step;
  }
  return steps;
}

absl::StatusOr<RunSummary> SummarizeRun(const Coordinator& coordinator, const Digest& run_id) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Coverage coverage, coordinator.CoverageOf(run_id));
  RunSummary made;
  made.counts = coverage.counts;
  const int64_t now_ms = coordinator.UnixMs();
  coordinator.Read([&](const audit::Ledger& ledger, const Tallies& all) {
    const audit::RunLedger& run = *ledger.FindRun(run_id);
    const RunTallies& tallies = all.run(all.PlaceOf(run_id));
    const audit::RunManifest& manifest = run.registration().manifest;
    const auto& keys = ledger.keys().keys();
    const audit::KeyFacts& trainer = keys[run.trainer_key_id()];
    made.run = run_id;
    made.name = manifest.name;
    made.trainer_key = trainer.key;
    if (trainer.operator_id != audit::kNoId) {
      made.trainer_operator = keys[ledger.keys().operators()[trainer.operator_id].key_id].key;
    }
    made.quorum = run.registration().quorum;
    // As the counts are, which were read a moment before.
    made.steps = coverage.states.size();
    made.steps_planned = StepsPlanned(manifest);
    made.first_step = run.first_step();
    made.chain = run.chain();
    made.log_index = run.entry().log_index;
    made.registered_ms = tallies.registered_ms;
    if (manifest.parent) {
      made.parent = manifest.parent->run_id;
      made.tokens = static_cast<uint64_t>(manifest.parent->tokens);
    }
    if (made.steps > 0) {
      const audit::StepRecord& last = run.records()[made.steps - 1];
      made.last = last;
      made.chain = ChainAfter(last);
      made.tokens = last.tokens_before + last.tokens;
      made.last_record_ms = tallies.records_ms[made.steps - 1];
    }
    made.operators = tallies.matches_by_operator.size();
    for (size_t i = 0; i < tallies.matches_by_backend.size(); ++i) {
      if (tallies.matches_by_backend[i] == 0) continue;
      made.backends.emplace_back(ledger.backends()[i], tallies.matches_by_backend[i]);
    }
    made.attestations = tallies.all;
    made.disputes = tallies.disputes;
    made.confirmed_last_hour = tallies.confirmed.Sum(now_ms);
    made.records_last_hour = tallies.records.Sum(now_ms);
  });
  std::sort(made.backends.begin(), made.backends.end());
  return made;
}

StepSummary SummarizeStep(const audit::Ledger& ledger, const Tallies& tallies,
                          const audit::RunLedger& run, uint64_t offset, audit::StepState state) {
  audit::VerifierPolicy policy;
  policy.quorum = run.registration().quorum;
  const uint64_t step = run.first_step() + offset;
  StepSummary made;
  made.record = run.records()[offset];
  made.state = state;
  made.tally = ledger.TallyOf(run, step, policy);
  made.attestations = run.AttestationsOf(step).size();
  made.log_index = run.record_entries()[offset].log_index;
  made.received_ms = tallies.run(tallies.PlaceOf(run.run_id())).records_ms[offset];
  return made;
}

}  // namespace lockstep::coordinator
