// SPDX-License-Identifier: Apache-2.0
//
// What lies beside the tensors of a checkpoint: whose state it is, the evidence for it, the small
// parts of the state, and the digests of the files that hold the large ones. Canonical JSON; format
// and rules: docs/checkpoint.md. Reading tensors, and hashing them against the roots that are
// claimed here, is the engine's (engine/state).
#ifndef LOCKSTEP_AUDIT_CHECKPOINT_MANIFEST_H_
#define LOCKSTEP_AUDIT_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/run_manifest.h"
#include "audit/step_record.h"
#include "base/sha256.h"

namespace lockstep::audit {

inline constexpr char kCheckpointManifestFile[] = "checkpoint.json";
// The files of a checkpoint besides its manifest, in the order in which they are listed. A
// checkpoint has these and no others.
inline constexpr const char* kCheckpointFiles[] = {
    "first_moment.safetensors", "parameters.safetensors", "second_moment.safetensors"};

inline constexpr size_t kCheckpointManifestBytesMax = size_t{1} << 20;
inline constexpr size_t kCursorBytesMax = size_t{1} << 17;

// The roots over the state before the first step, to which the genesis chain commits.
struct InitialState {
  Digest parameters;
  Digest first_moment;
  Digest second_moment;
  bool operator==(const InitialState&) const = default;
};

struct CheckpointFile {
  std::string name;  // one of kCheckpointFiles
  int64_t bytes = 0;
  Digest sha256;
  bool operator==(const CheckpointFile&) const = default;
};

struct CheckpointManifest {
  Digest run_id;
  // The record of the step that made the state, or the roots before step 0.
  std::variant<InitialState, StepRecord> origin;
  // Of the data stream, encoded (docs/data_stream.md).
  std::string cursor;
  std::vector<CheckpointFile> files;
  bool operator==(const CheckpointManifest&) const = default;

  // Null for the state before step 0.
  const StepRecord* record() const { return std::get_if<StepRecord>(&origin); }
  // The rest of the state follows from the origin.
  InitialState roots() const;
  uint64_t next_step() const { return record() == nullptr ? 0 : record()->step + 1; }
  uint64_t tokens() const;  // consumed
  uint64_t updates() const { return record() == nullptr ? 0 : record()->updates; }
  SpikeState spike() const { return record() == nullptr ? SpikeState{} : record()->spike; }
  Digest chain() const;  // after the origin
};

// The canonical text of a valid manifest.
std::string EncodeCheckpointManifest(const CheckpointManifest& manifest);

// Accepts what EncodeCheckpointManifest writes of a valid manifest: above all, the chain that the
// text claims is the origin's, and the origin's cursor digest is the cursor's. Untrusted input;
// DataLoss names the field, what was expected and what was found.
absl::StatusOr<CheckpointManifest> ParseCheckpointManifest(absl::string_view text);

// That the run may go on from this state: it is one of its own, or the very state of its parent
// that it names. FailedPrecondition says which it is instead.
absl::Status CheckpointIsOfRun(const CheckpointManifest& checkpoint, const RunManifest& run);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_CHECKPOINT_MANIFEST_H_
