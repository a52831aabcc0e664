// SPDX-License-Identifier: Apache-2.0
//
// A receipt: that an entry is in a log, for whoever kept the log's key (c2sp.org/tlog-proof). What
// a worker gets for its attestation, and what shows a log that later leaves it out.
#ifndef LOCKSTEP_AUDIT_LOG_LOG_PROOF_H_
#define LOCKSTEP_AUDIT_LOG_LOG_PROOF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/log/log_checkpoint.h"
#include "audit/log/signed_note.h"
#include "base/sha256.h"

namespace lockstep::audit {

struct LogProof {
  std::optional<std::string> extra;  // not authenticated; ours have none
  uint64_t index = 0;
  std::vector<Digest> hashes;  // from the leaf's sibling up
  std::string checkpoint;      // the log's signed note, as it is
  bool operator==(const LogProof&) const = default;
};

inline constexpr size_t kLogProofBytesMax = 131072;

std::string EncodeLogProof(const LogProof& proof);

// Untrusted input; DataLoss. Nothing is verified, and the checkpoint is not looked into.
absl::StatusOr<LogProof> ParseLogProof(absl::string_view text);

// The log's head, which `key` has signed and under which the entry with this leaf hash is at
// proof.index. Errors as OpenLogCheckpoint's, and InvalidArgument for a proof that shows something
// else.
absl::StatusOr<LogCheckpoint> VerifyLogProof(const LogProof& proof, const Digest& leaf_hash,
                                             const NoteKey& key);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LOG_LOG_PROOF_H_
