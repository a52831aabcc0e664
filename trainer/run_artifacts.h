// SPDX-License-Identifier: Apache-2.0
//
// The files that somebody needs to audit a run, by content: what it reads (corpus, tokenizer) and
// the states it can be taken up from. Which of them lie on this machine, and where; who has them
// besides is the publisher's business (publisher.h).
#ifndef LOCKSTEP_TRAINER_RUN_ARTIFACTS_H_
#define LOCKSTEP_TRAINER_RUN_ARTIFACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/evidence/checkpoint_announcement.h"
#include "audit/evidence/run_registration.h"
#include "base/sha256.h"
#include "engine/run/run_folder.h"

namespace lockstep::trainer {

struct RunArtifact {
  Digest sha256;
  uint64_t bytes = 0;
  std::string name;  // basename, for people
  std::string path;  // here; empty if it is not
};

// The tokenizer, the corpus manifest and all files of its shards. The tokenizer and the manifest
// are read and held against the run's digests; shards are believed to be what the manifest says,
// until somebody reads them.
absl::StatusOr<std::vector<RunArtifact>> InputArtifacts(const engine::RunFolder& run);

// A state that the run can be taken up from.
struct CheckpointArtifacts {
  audit::CheckpointAnnouncement announcement;
  std::vector<RunArtifact> files;  // checkpoint.json first
};
// NotFound if it is no longer there. `run` is whose steps go on from it: a segment's first state is
// its parent's.
absl::StatusOr<CheckpointArtifacts> ReadCheckpoint(const engine::RunFolder& run,
                                                   const std::string& folder);

// Folders of all states that there are now, by the step that goes on from each, ascending; a
// segment's first, its parent's, among them.
struct CheckpointPlace {
  uint64_t step = 0;
  std::string folder;
};
absl::StatusOr<std::vector<CheckpointPlace>> CheckpointPlaces(const engine::RunFolder& run);

// What the chain before step 0 commits to, from the state before step 0. nullopt if that is not
// there yet; FailedPrecondition if it is no longer.
absl::StatusOr<std::optional<audit::Genesis>> ReadGenesis(const engine::RunFolder& run);

// Puts a copy of an artifact into a static mirror, FOLDER/artifact/<sha256>, whole or not at all,
// after its digest was found right. False if it was there already. DataLoss: the file here has
// other bytes than the run says.
absl::StatusOr<bool> CopyToMirror(const RunArtifact& artifact, const std::string& folder,
                                  absl::FunctionRef<void(int64_t bytes)> copied);

}  // namespace lockstep::trainer

#endif  // LOCKSTEP_TRAINER_RUN_ARTIFACTS_H_
