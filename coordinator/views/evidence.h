// SPDX-License-Identifier: Apache-2.0
//
// What the public is told of attestations and disputes, for gRPC and JSON alike.

#ifndef LOCKSTEP_COORDINATOR_VIEWS_EVIDENCE_H_
#define LOCKSTEP_COORDINATOR_VIEWS_EVIDENCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/evidence/attestation.h"
#include "audit/ledger/ledger.h"
#include "coordinator/core/coordinator.h"

namespace lockstep::coordinator {

struct AttestationSummary {
  uint64_t log_index = 0;
  Digest run;
  uint64_t step = 0;
  Ed25519PublicKey worker_key;
  Ed25519PublicKey operator_key;  // its operator's present one
  std::string operator_name;      // a stranger's text, as the next
  std::string hardware;
  std::string backend;  // class
  bool match = true;
  Worth worth = Worth::kAwaiting;
  int64_t received_ms = kTimeUnknown;
  int openings_given = 0;
  int openings_needed = 0;
  std::optional<audit::Difference> difference;  // of a mismatch
};

// Within Coordinator::Read; `id` is the attestation's in the run.
AttestationSummary SummarizeAttestation(const audit::Ledger& ledger, const Tallies& tallies,
                                        const audit::RunLedger& run, uint32_t id);

// What only the envelope says, besides itself.
struct AttestationDetails {
  Digest leaf_hash;
  std::string envelope;
  audit::Attestation said;
  std::vector<uint64_t> openings;  // log indices
};

// Details of attestations by log index, all of one step: nullopt for those not on the disk yet.
absl::StatusOr<std::vector<std::optional<AttestationDetails>>> ReadDetails(
    StoreView& view, const Digest& run, uint64_t step, const std::vector<uint64_t>& log_indices);

struct DisputeSummary {
  uint64_t log_index = 0;
  Digest run;
  uint64_t step = 0;
  audit::DisputeReason reason = audit::DisputeReason::kMismatch;
  audit::StepState state = audit::StepState::kDisputed;  // of the step now
  std::optional<int64_t> received_ms;
  std::string envelope;
  std::vector<std::variant<audit::EntryRef, std::string>> evidence;
  // Of a mismatch or a second history: the step's record, the other one, where they part.
  std::optional<audit::StepRecord> published;
  std::optional<audit::StepRecord> computed;
  std::optional<audit::Difference> difference;
};

// The rest of a dispute that the ledger has. NotFound: it is not on the disk yet.
absl::StatusOr<DisputeSummary> SummarizeDispute(const Coordinator& coordinator, StoreView& view,
                                                const audit::DisputeFacts& facts);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_VIEWS_EVIDENCE_H_
