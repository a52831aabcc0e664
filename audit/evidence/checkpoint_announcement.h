// SPDX-License-Identifier: Apache-2.0
//
// That there is a state to start from: a checkpoint of a run, by the digests of its files. Signed
// by the trainer, or by a worker who reached that state. Its source needs no trust: whoever loads
// it hashes it against the chain. Format: docs/attestation.md.
#ifndef LOCKSTEP_AUDIT_EVIDENCE_CHECKPOINT_ANNOUNCEMENT_H_
#define LOCKSTEP_AUDIT_EVIDENCE_CHECKPOINT_ANNOUNCEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/checkpoint_manifest.h"
#include "base/sha256.h"

namespace lockstep::audit {

inline constexpr char kCheckpointPayloadType[] = "application/vnd.lockstep.checkpoint.v1+json";

struct CheckpointAnnouncement {
  Digest run_id;
  uint64_t next_step = 0;             // the step that goes on from the state
  Digest chain;                       // before that step
  Digest manifest;                    // SHA-256 of checkpoint.json (audit/checkpoint_manifest.h)
  std::vector<CheckpointFile> files;  // as that lists them
  bool operator==(const CheckpointAnnouncement&) const = default;
};

std::string EncodeCheckpointAnnouncement(const CheckpointAnnouncement& announcement);

// Accepts exactly what EncodeCheckpointAnnouncement writes of a valid one. Untrusted input;
// DataLoss.
absl::StatusOr<CheckpointAnnouncement> ParseCheckpointAnnouncement(absl::string_view text);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_EVIDENCE_CHECKPOINT_ANNOUNCEMENT_H_
