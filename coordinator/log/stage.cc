// SPDX-License-Identifier: Apache-2.0
//
// The stage file. See stage.h.

#include "coordinator/log/stage.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/coding.h"
#include "base/status.h"

namespace lockstep::coordinator {
namespace {

constexpr absl::string_view kMagic = "LkStage1";
constexpr size_t kPathBytesMax = 256;
constexpr size_t kFileBytesMax = size_t{256} * (2 + 65'535);  // a full entry bundle

bool StaysBeneath(absl::string_view path) {
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return !absl::StrContains(path, '\0');
}

absl::Status DamagedStage(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("stage of the log: ", what));
}

absl::StatusOr<Stage> DecodeFields(ByteReader& reader) {
  Stage stage;
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan magic, reader.ReadFixed("magic", kMagic.size()));
  if (AsChars(magic) != kMagic) return DamagedStage("it does not begin with LkStage1");
  LOCKSTEP_ASSIGN_OR_RETURN(stage.size_before, reader.ReadU64("size before"));
  LOCKSTEP_ASSIGN_OR_RETURN(stage.size, reader.ReadU64("size"));
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan root, reader.ReadFixed("root", 32));
  LOCKSTEP_ASSIGN_OR_RETURN(stage.root, Digest::FromBytes(root));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t files, reader.ReadU32("files"));
  for (uint32_t i = 0; i < files; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan path,
                              reader.ReadLengthPrefixed("path", kPathBytesMax));
    LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan bytes,
                              reader.ReadLengthPrefixed("bytes", kFileBytesMax));
    if (!StaysBeneath(AsChars(path))) return DamagedStage("a path leads elsewhere");
    stage.files.push_back({.path = ToString(path), .bytes = ToString(bytes)});
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.ExpectEnd());
  return stage;
}

}  // namespace

std::string EncodeStage(const Stage& stage) {
  ByteWriter writer;
  writer.WriteFixed(AsBytes(kMagic));
  writer.WriteU64(stage.size_before);
  writer.WriteU64(stage.size);
  writer.WriteFixed(stage.root.bytes);
  writer.WriteU32(static_cast<uint32_t>(stage.files.size()));
  for (const LogFile& file : stage.files) {
    writer.WriteLengthPrefixed(AsBytes(file.path));
    writer.WriteLengthPrefixed(AsBytes(file.bytes));
  }
  writer.WriteFixed(Sha256(AsBytes(writer.bytes())).bytes);
  return writer.Take();
}

absl::StatusOr<Stage> DecodeStage(ByteSpan bytes) {
  constexpr size_t kDigestBytes = 32;
  if (bytes.size() < kDigestBytes) return DamagedStage("it is too short");
  const ByteSpan body = bytes.first(bytes.size() - kDigestBytes);
  const Digest digest = Sha256(body);
  if (AsChars(bytes.last(kDigestBytes)) != AsChars(digest.bytes)) {
    return DamagedStage("its digest is wrong");
  }
  ByteReader reader(body);
  absl::StatusOr<Stage> stage = DecodeFields(reader);
  if (!stage.ok()) return DamagedStage(stage.status().message());
  return stage;
}

std::string StageName(uint64_t size, const Digest& root) {
  return absl::StrCat(size, "-", root.ToHex());
}

}  // namespace lockstep::coordinator
