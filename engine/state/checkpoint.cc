// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints, a piece at a time in both directions.
#include "engine/state/checkpoint.h"

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/merkle.h"
#include "base/status.h"
#include "engine/state/checkpoint_tensors.h"
#include "engine/state/safetensors.h"

namespace lockstep::engine {
namespace {

struct PartFile {
  StatePart part;
  const char* name;
};
// As audit::kCheckpointFiles lists them.
constexpr PartFile kParts[] = {{StatePart::kFirstMoment, "first_moment.safetensors"},
                               {StatePart::kParameters, "parameters.safetensors"},
                               {StatePart::kSecondMoment, "second_moment.safetensors"}};

TensorType TypeOf(const TrainState& state, StatePart part) {
  return state.ElementBytes(part) == 2 ? TensorType::kBf16 : TensorType::kF32;
}

absl::StatusOr<audit::CheckpointFile> WritePart(Backend& backend, TrainState& state,
                                                const PartFile& part, const std::string& folder,
                                                BytesHook written) {
  const std::string path = absl::StrCat(folder, "/", part.name);
  LOCKSTEP_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Create(path));
  Sha256Hasher hasher;
  audit::CheckpointFile entry;
  entry.name = part.name;
  const auto append = [&](ByteSpan bytes) {
    hasher.Update(bytes);
    entry.bytes += static_cast<int64_t>(bytes.size());
    written(static_cast<int64_t>(bytes.size()));
    return file.Append(bytes);
  };
  SafetensorsHeader header = HeaderOf(state.layout().table(), TypeOf(state, part.part));
  LOCKSTEP_RETURN_IF_ERROR(append(AsBytes(EncodeSafetensorsHeader(header))));
  std::vector<uint8_t> host;
  for (const Piece& piece : state.layout().Pieces(/*with_statistics=*/false)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const void* const data, state.Load(part.part, piece));
    host.resize(piece.count * state.ElementBytes(part.part));
    backend.CopyOut(host.data(), data, host.size());
    LOCKSTEP_RETURN_IF_ERROR(append(host));
  }
  LOCKSTEP_RETURN_IF_ERROR(file.Commit());
  entry.sha256 = hasher.Finish();
  return entry;
}

absl::Status ReadPart(Backend& backend, TrainState& state, const PartFile& part,
                      const std::string& folder, BytesHook read) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsFile file,
                            SafetensorsFile::Open(absl::StrCat(folder, "/", part.name)));
  LOCKSTEP_RETURN_IF_ERROR(CheckHeader(file, state.layout().table(), TypeOf(state, part.part)));
  std::vector<char> host;
  for (const Piece& piece : state.layout().Pieces(/*with_statistics=*/false)) {
    host.resize(piece.count * state.ElementBytes(part.part));
    LOCKSTEP_RETURN_IF_ERROR(ReadPiece(file, piece, host));
    LOCKSTEP_ASSIGN_OR_RETURN(void* const data, state.Load(part.part, piece));
    backend.CopyIn(data, host.data(), host.size());
    state.HashPiece(part.part, piece, data);
    LOCKSTEP_RETURN_IF_ERROR(state.Store(part.part, piece));
    read(static_cast<int64_t>(host.size()));
  }
  return absl::OkStatus();
}

absl::Status CheckRoot(absl::string_view part, const Digest& expected, const Digest& found) {
  if (expected == found) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(part, ": expected the root ", expected.ToHex(),
                                          " that its step record commits to; found ",
                                          found.ToHex()));
}

absl::Status CheckRoots(const TrainState& state, const audit::InitialState& expected) {
  const StateRoots found = state.Roots();
  LOCKSTEP_RETURN_IF_ERROR(CheckRoot("parameters", expected.parameters, found.parameters));
  LOCKSTEP_RETURN_IF_ERROR(CheckRoot("first moment", expected.first_moment, found.first_moment));
  return CheckRoot("second moment", expected.second_moment, found.second_moment);
}

}  // namespace

absl::Status SaveCheckpoint(Backend& backend, const audit::RunManifest& run, TrainState& state,
                            const audit::StepRecord* last, const std::string& folder,
                            BytesHook written) {
  LOCKSTEP_ASSIGN_OR_RETURN(DurableDirectory directory, DurableDirectory::Create(folder));
  audit::CheckpointManifest manifest;
  manifest.run_id = audit::RunIdOf(run);
  if (last != nullptr) {
    manifest.origin = *last;
  } else {
    const StateRoots roots = state.Roots();
    manifest.origin = audit::InitialState{.parameters = roots.parameters,
                                          .first_moment = roots.first_moment,
                                          .second_moment = roots.second_moment};
  }
  manifest.cursor = EncodeCursor(state.cursor);
  for (const PartFile& part : kParts) {
    LOCKSTEP_ASSIGN_OR_RETURN(manifest.files.emplace_back(),
                              WritePart(backend, state, part, directory.temporary(), written),
                              folder);
  }
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFileDurably(absl::StrCat(directory.temporary(), "/", audit::kCheckpointManifestFile),
                       AsBytes(audit::EncodeCheckpointManifest(manifest))));
  return directory.Commit();
}

absl::StatusOr<audit::CheckpointManifest> ReadCheckpointManifest(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", audit::kCheckpointManifestFile);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(path, audit::kCheckpointManifestBytesMax));
  LOCKSTEP_ASSIGN_OR_RETURN(audit::CheckpointManifest manifest,
                            audit::ParseCheckpointManifest(text), path);
  std::set<std::string> expected = {audit::kCheckpointManifestFile};
  for (const audit::CheckpointFile& file : manifest.files) expected.insert(file.name);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    if (!expected.contains(name)) {
      return absl::DataLossError(absl::StrCat(
          folder, ": expected nothing but the files of a checkpoint; found \"", name, "\""));
    }
  }
  for (const audit::CheckpointFile& file : manifest.files) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t bytes, FileBytes(absl::StrCat(folder, "/", file.name)));
    if (bytes == file.bytes) continue;
    return absl::DataLossError(
        absl::StrCat(folder, "/", file.name, ": expected ", file.bytes, " bytes; found ", bytes));
  }
  return manifest;
}

absl::Status LoadCheckpoint(Backend& backend, const audit::RunManifest& run,
                            const std::string& folder, TrainState& state, BytesHook read) {
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointManifest manifest,
                            ReadCheckpointManifest(folder));
  LOCKSTEP_RETURN_IF_ERROR(audit::CheckpointIsOfRun(manifest, run), folder);
  LOCKSTEP_ASSIGN_OR_RETURN(state.cursor, DecodeCursor(AsBytes(manifest.cursor)), folder);
  for (const PartFile& part : kParts) {
    LOCKSTEP_RETURN_IF_ERROR(ReadPart(backend, state, part, folder, read));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckRoots(state, manifest.roots()), folder);
  state.step = manifest.next_step();
  state.tokens = manifest.tokens();
  state.updates = manifest.updates();
  state.spike = manifest.spike();
  state.chain = manifest.chain();
  return absl::OkStatus();
}

absl::StatusOr<CheckpointReport> VerifyCheckpoint(Backend& backend, const audit::RunManifest& run,
                                                  const std::string& folder, BytesHook read) {
  CheckpointReport report;
  LOCKSTEP_ASSIGN_OR_RETURN(report.manifest, ReadCheckpointManifest(folder));
  for (const audit::CheckpointFile& file : report.manifest.files) {
    const std::string path = absl::StrCat(folder, "/", file.name);
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest digest, FileDigest(path, read));
    if (digest != file.sha256) {
      return absl::DataLossError(absl::StrCat(path, ": expected SHA-256 ", file.sha256.ToHex(),
                                              "; found ", digest.ToHex()));
    }
    report.bytes += file.bytes;
  }
  const ParameterLayout layout(run.model);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<TrainState> state,
                            TrainState::Create(backend, run, layout, ""));
  LOCKSTEP_RETURN_IF_ERROR(LoadCheckpoint(backend, run, folder, *state, read));
  report.tensors = 3 * layout.tensors();
  return report;
}

}  // namespace lockstep::engine
