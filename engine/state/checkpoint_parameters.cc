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
#include "engine/state/safetensors.h"

namespace lockstep::engine {
namespace {

constexpr char kFile[] = "parameters.safetensors";

// The entry must be the layout's tensor of that place.
absl::Status CheckEntry(const SafetensorsFile& file, const audit::TensorInfo& expected,
                        TensorType type, size_t place) {
  const SafetensorsEntry& found = file.header().entries[place];
  if (found.name == expected.name && found.type == type && found.shape == expected.shape) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(file.path(), ": expected tensor ", place, " to be \"",
                                          expected.name,
                                          "\" in the type and shape of the run's model; found \"",
                                          found.name, "\" or another type or shape"));
}

absl::Status CheckEntries(const SafetensorsFile& file, const ParameterLayout& layout,
                          TensorType type) {
  const size_t found = file.header().entries.size();
  if (found != static_cast<size_t>(layout.tensors())) {
    return absl::DataLossError(
        absl::StrCat(file.path(), ": expected ", layout.tensors(), " tensors; found ", found));
  }
  for (size_t t = 0; t < found; ++t) {
    LOCKSTEP_RETURN_IF_ERROR(CheckEntry(file, layout.table().tensors()[t], type, t));
  }
  return absl::OkStatus();
}

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
  LOCKSTEP_RETURN_IF_ERROR(CheckEntries(file, layout, type));

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
    const uint64_t begin = file.header().entries[piece.tensor].begin + piece.first * element_bytes;
    LOCKSTEP_RETURN_IF_ERROR(file.Read(begin, host));
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
