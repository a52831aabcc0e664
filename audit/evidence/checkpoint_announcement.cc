// SPDX-License-Identifier: Apache-2.0
//
// Checkpoint announcements as canonical JSON.
#include "audit/evidence/checkpoint_announcement.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "audit/evidence/payload_fields.h"
#include "base/canonical_json.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {
namespace {

constexpr int64_t kFileBytesMax = int64_t{1} << 50;

std::vector<CheckpointFile> ReadFiles(JsonReader& reader) {
  std::vector<CheckpointFile> files;
  const nlohmann::json& items = reader.Array("files", std::size(kCheckpointFiles));
  if (reader.ok() && items.size() != std::size(kCheckpointFiles)) {
    reader.Fail("files", absl::StrCat(std::size(kCheckpointFiles), " files"),
                absl::StrCat(items.size()));
  }
  for (const nlohmann::json& item : items) {
    JsonReader file(item, absl::StrCat(reader.where(), ".files[", files.size(), "]"));
    const char* const name = kCheckpointFiles[files.size()];
    ReadConstant(file, "name", name);
    files.push_back({.name = name,
                     .bytes = file.Integer("bytes", 1, kFileBytesMax),
                     .sha256 = file.Sha256Digest("sha256")});
    reader.Join(file.Finish());
  }
  return files;
}

}  // namespace

std::string EncodeCheckpointAnnouncement(const CheckpointAnnouncement& announcement) {
  nlohmann::json files = nlohmann::json::array();
  for (const CheckpointFile& file : announcement.files) {
    files.push_back({{"bytes", file.bytes}, {"name", file.name}, {"sha256", file.sha256.ToHex()}});
  }
  return EncodePayload({{"chain", announcement.chain.ToHex()},
                        {"files", std::move(files)},
                        {"manifest", announcement.manifest.ToHex()},
                        {"nextStep", announcement.next_step},
                        {"run", announcement.run_id.ToHex()}});
}

absl::StatusOr<CheckpointAnnouncement> ParseCheckpointAnnouncement(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(text),
                            "checkpoint announcement");
  JsonReader reader(json, "checkpoint announcement");
  CheckpointAnnouncement announcement;
  announcement.run_id = reader.Sha256Digest("run");
  announcement.next_step = ReadStep(reader, "nextStep");
  announcement.chain = reader.Sha256Digest("chain");
  announcement.manifest = reader.Sha256Digest("manifest");
  announcement.files = ReadFiles(reader);
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return announcement;
}

}  // namespace lockstep::audit
