// SPDX-License-Identifier: Apache-2.0
//
// What it takes for a step to be called confirmed, and what a step is called. A run names its
// quorum when it is registered; a verifier may hold the same evidence to its own
// (audit/ledger/ledger.h).
#ifndef LOCKSTEP_AUDIT_EVIDENCE_QUORUM_H_
#define LOCKSTEP_AUDIT_EVIDENCE_QUORUM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep::audit {

inline constexpr int kQuorumOperatorsMax = 100;
inline constexpr int kQuorumBackendsMax = 8;
inline constexpr int kQuorumOpeningsMax = 8;

struct Quorum {
  int operators = 2;  // distinct, from 1
  int backends = 1;   // distinct classes, from 1
  int openings = 1;   // transcript leaves that an attestation must open before it counts, from 0
  bool operator==(const Quorum&) const = default;
};

// What the public is told of a step. One byte each, as it travels to the dashboard.
enum class StepState : uint8_t {
  kUnaudited = 0,    // no counted match
  kClaimed = 1,      // unaudited, and a lease lies on it: known to the coordinator alone
  kProvisional = 2,  // a counted match, and no quorum
  kConfirmed = 3,    // a quorum of counted matches
  // A mismatch by a registered key, or a second record by the trainer. Stays, whatever else comes:
  // which of the two is right is for bisection to show.
  kDisputed = 4,
};
inline constexpr int kStepStates = 5;
absl::string_view StepStateName(StepState state);  // "unaudited", ...

// What counts towards a quorum in the attestations of one step.
struct StepTally {
  int operators = 0;          // distinct, with a counted match
  int backends = 0;           // distinct classes among counted matches
  int matches = 0;            // counted
  int awaiting_openings = 0;  // matches that have not opened what was asked for
  int mismatches = 0;
  int voided = 0;  // matches whose opening was wrong
  bool second_history = false;
  bool operator==(const StepTally&) const = default;
};

StepState StateOf(const StepTally& tally, const Quorum& quorum);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_EVIDENCE_QUORUM_H_
