// SPDX-License-Identifier: Apache-2.0
//
// What an attestation is worth by the run's own quorum, as the ledger counts it.

#ifndef LOCKSTEP_COORDINATOR_CORE_COUNTS_H_
#define LOCKSTEP_COORDINATOR_CORE_COUNTS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "audit/ledger/ledger.h"

namespace lockstep::coordinator {

enum class Worth : uint8_t {
  kCounts,    // a match that counts
  kAwaiting,  // a match that has not opened what was asked for
  kOwnRun,    // a match by the trainer's own operator: never counts
  kMismatch,
  kVoid  // a match whose opening was wrong
};
inline constexpr int kWorths = 5;

inline Worth WorthOf(const audit::Ledger& ledger, const audit::RunLedger& run,
                     const audit::AttestationFacts& facts) {
  if (facts.standing == audit::Standing::kMismatch) return Worth::kMismatch;
  if (facts.standing == audit::Standing::kVoid) return Worth::kVoid;
  const auto& keys = ledger.keys().keys();
  if (keys[facts.key_id].operator_id == keys[run.trainer_key_id()].operator_id) {
    return Worth::kOwnRun;
  }
  const uint64_t step = run.first_step() + facts.step_offset;
  return facts.openings < run.OpeningsNeeded(step, run.registration().quorum) ? Worth::kAwaiting
                                                                              : Worth::kCounts;
}

// Why it does not count, for people; empty if it does.
inline absl::string_view WhyNotCounted(Worth worth) {
  switch (worth) {
    case Worth::kCounts:
      return "";
    case Worth::kAwaiting:
      return "it has not opened what was asked for";
    case Worth::kOwnRun:
      return "it is by the trainer's own operator";
    case Worth::kMismatch:
      return "it says mismatch";
    case Worth::kVoid:
      return "its opening was wrong";
  }
  return "";
}

inline bool Counts(const audit::Ledger& ledger, const audit::RunLedger& run,
                   const audit::AttestationFacts& facts) {
  return WorthOf(ledger, run, facts) == Worth::kCounts;
}

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_CORE_COUNTS_H_
