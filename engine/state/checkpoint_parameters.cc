// SPDX-License-Identifier: Apache-2.0
//
// Parameters, a piece at a time.
#include "engine/state/checkpoint_parameters.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/merkle.h"
#include "base/status.h"
#include "engine/state/checkpoint_tensors.h"
#include "engine/state/safetensors.h"

namespace lockstep::engine {
namespace {

constexpr char kFile[] = "parameters.safetensors";

}  // namespace

absl::StatusOr<audit::CheckpointManifest> ReadParameters(Backend& backend,
                                                         const audit::RunManifest& run,
                                                         const ParameterLayout& layout,
                                                         const std::string& folder, PieceSink sink,
                                                         BytesHook read) {
  LOCKSTEP_ASSIGN_OR_RETURN(audit::CheckpointManifest manifest, ReadCheckpointManifest(folder));
  LOCKSTEP_RETURN_IF_ERROR(audit::CheckpointIsOfRun(manifest, run), folder);
  const bool f32 = run.parameter_storage == audit::ParameterStorage::kF32;
  const TensorType type = f32 ? TensorType::kF32 : TensorType::kBf16;
  const int64_t element_bytes = BytesOf(type);
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsFile file,
                            SafetensorsFile::Open(absl::StrCat(folder, "/", kFile)));
  LOCKSTEP_RETURN_IF_ERROR(CheckHeader(file, layout.table(), type));

  const int64_t elements_max = std::min(kPieceElements, layout.elements_max());
  LOCKSTEP_ASSIGN_OR_RETURN(const Buffer stored,
                            Buffer::Create(backend, elements_max * element_bytes));
  Buffer rounded;
  if (f32) {
    LOCKSTEP_ASSIGN_OR_RETURN(rounded, Buffer::Create(backend, elements_max * sizeof(BFloat16)));
  }
  std::vector<char> host;
  std::vector<Digest> leaves(layout.table().chunks());
  for (const Piece& piece : layout.Pieces(/*with_statistics=*/false)) {
    host.resize(piece.count * element_bytes);
    LOCKSTEP_RETURN_IF_ERROR(ReadPiece(file, piece, host));
    backend.CopyIn(stored.data(), host.data(), host.size());
    HashChunks(backend, layout, piece, stored.data(), element_bytes, leaves);
    if (f32) {
      backend.Run(kernels::ConvertBf16Args{
          .out = rounded.as<BFloat16>(), .x = stored.as<float>(), .count = piece.count});
    }
    LOCKSTEP_RETURN_IF_ERROR(sink(piece, (f32 ? rounded : stored).as<BFloat16>()));
    read(static_cast<int64_t>(host.size()));
  }
  const Digest expected = manifest.roots().parameters;
  const Digest found = MerkleRoot(leaves);
  if (found != expected) {
    return absl::DataLossError(
        absl::StrCat(file.path(), ": expected the root of parameters ", expected.ToHex(),
                     " that the checkpoint's step record commits to; found ", found.ToHex()));
  }
  return manifest;
}

absl::StatusOr<RunFolder> FindRunOfCheckpoint(const std::string& checkpoint) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path path = fs::canonical(checkpoint, error);
  if (error) return absl::NotFoundError(absl::StrCat(checkpoint, ": ", error.message()));
  const fs::path run = path.parent_path().parent_path();
  if (!fs::exists(run / "run.json", error)) {
    return absl::NotFoundError(absl::StrCat(
        checkpoint, ": expected it to lie in a run, as RUN/checkpoints/STEP; found no run.json in ",
        run.string(), "; --run names the run"));
  }
  return RunFolder::Open(run.string());
}

}  // namespace lockstep::engine
