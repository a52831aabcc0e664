// SPDX-License-Identifier: Apache-2.0
//
// Whether an attestation counts by the run's own quorum, as the ledger counts it.

#ifndef LOCKSTEP_COORDINATOR_CORE_COUNTS_H_
#define LOCKSTEP_COORDINATOR_CORE_COUNTS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "audit/ledger/ledger.h"

namespace lockstep::coordinator {

// Why it does not; empty if it does.
inline absl::string_view WhyNotCounted(const audit::Ledger& ledger, const audit::RunLedger& run,
                                       const audit::AttestationFacts& facts) {
  if (facts.standing == audit::Standing::kMismatch) return "it says mismatch";
  if (facts.standing == audit::Standing::kVoid) return "its opening was wrong";
  const auto& keys = ledger.keys().keys();
  if (keys[facts.key_id].operator_id == keys[run.trainer_key_id()].operator_id) {
    return "it is by the trainer's own operator";
  }
  const uint64_t step = run.first_step() + facts.step_offset;
  if (facts.openings < run.OpeningsNeeded(step, run.registration().quorum)) {
    return "it has not opened what was asked for";
  }
  return "";
}

inline bool Counts(const audit::Ledger& ledger, const audit::RunLedger& run,
                   const audit::AttestationFacts& facts) {
  return WhyNotCounted(ledger, run, facts).empty();
}

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_CORE_COUNTS_H_
