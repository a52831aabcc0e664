// SPDX-License-Identifier: Apache-2.0
//
// Chunk after chunk against the leaves.
#include "engine/state/locate_damage.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "audit/checkpoint_manifest.h"
#include "audit/state_tree.h"
#include "audit/step_leaves.h"
#include "base/status.h"
#include "engine/model/parameters.h"
#include "engine/state/checkpoint.h"
#include "engine/state/safetensors.h"

namespace lockstep::engine {
namespace {

// In one file, whose leaves are given; nullopt if there is none. The header is as the file has it:
// a tensor's bytes are looked for by its place among them.
absl::StatusOr<std::optional<std::string>> InFile(const ParameterLayout& layout,
                                                  const std::string& path,
                                                  const std::vector<Digest>& leaves) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  const std::vector<audit::TensorInfo>& tensors = layout.table().tensors();
  if (file.header().entries.size() != tensors.size()) {
    return absl::NotFoundError(absl::StrCat(path, ": has not the tensors of the run's model"));
  }
  std::vector<char> bytes;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const SafetensorsEntry& entry = file.header().entries[t];
    const int64_t element_bytes = BytesOf(entry.type);
    for (int64_t chunk = 0; chunk < audit::ChunksOf(tensors[t].elements); ++chunk) {
      const uint64_t begin = entry.begin + chunk * audit::kChunkElements * element_bytes;
      const uint64_t end =
          std::min<uint64_t>(begin + audit::kChunkElements * element_bytes, entry.end);
      bytes.resize(end > begin ? end - begin : 0);
      LOCKSTEP_RETURN_IF_ERROR(file.Read(begin, bytes));
      const Digest found = audit::ChunkLeafHash(static_cast<int64_t>(t), chunk,
                                                AsBytes({bytes.data(), bytes.size()}));
      if (found == leaves[tensors[t].first_chunk + chunk]) continue;
      return absl::StrCat(path, ": tensor \"", tensors[t].name, "\", chunk ", chunk);
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::string> LocateDamage(const RunFolder& run, const std::string& checkpoint) {
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointManifest manifest,
                            ReadCheckpointManifest(checkpoint));
  if (manifest.record() == nullptr) {
    return absl::NotFoundError("the state before step 0 has no leaves");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::StepLeaves leaves,
                            run.ReadLeaves(manifest.record()->step));
  LOCKSTEP_RETURN_IF_ERROR(audit::CheckLeaves(leaves, *manifest.record()));
  const ParameterLayout layout(run.manifest().model);
  if (leaves.parameters.size() != static_cast<size_t>(layout.table().chunks())) {
    return absl::NotFoundError("the leaves are of another model");
  }
  const std::vector<Digest>* const of_files[] = {&leaves.first_moment, &leaves.parameters,
                                                 &leaves.second_moment};
  for (size_t i = 0; i < std::size(of_files); ++i) {
    const std::string path = absl::StrCat(checkpoint, "/", audit::kCheckpointFiles[i]);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> place,
                              InFile(layout, path, *of_files[i]));
    if (place) return *place;
  }
  return absl::NotFoundError("all chunks have their leaves");
}

}  // namespace lockstep::engine
