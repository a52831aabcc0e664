// SPDX-License-Identifier: Apache-2.0
//
// The manifest's text and rules.
#include "audit/checkpoint_manifest.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/canonical_json.h"
#include "base/encoding.h"
#include "base/logging.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {
namespace {

constexpr char kFormat[] = "lockstep-checkpoint";
constexpr int64_t kVersion = 1;
constexpr int64_t kFileBytesMax = int64_t{1} << 50;

std::string ReadHex(JsonReader& reader, const char* key, size_t bytes_max) {
  const std::string text = reader.String(key, 2 * bytes_max);
  if (!reader.ok()) return "";
  absl::StatusOr<std::string> bytes = HexDecode(text);
  if (bytes.ok() && HexEncode(AsBytes(*bytes)) == text) return *std::move(bytes);
  reader.Fail(key, "lower-case hexadecimal digits, two a byte", "something else");
  return "";
}

InitialState ReadInitial(JsonReader& reader) {
  JsonReader roots(reader.Object("initial"), absl::StrCat(reader.where(), ".initial"));
  const InitialState initial = {.parameters = roots.Sha256Digest("parameters"),
                                .first_moment = roots.Sha256Digest("first_moment"),
                                .second_moment = roots.Sha256Digest("second_moment")};
  reader.Join(roots.Finish());
  return initial;
}

StepRecord ReadRecord(JsonReader& reader) {
  const std::string bytes = ReadHex(reader, "record", kStepRecordBytes);
  if (!reader.ok()) return {};
  absl::StatusOr<StepRecord> record = DecodeStepRecord(AsBytes(bytes));
  if (record.ok()) return *std::move(record);
  reader.Fail("record", "a step record", record.status().message());
  return {};
}

std::vector<CheckpointFile> ReadFiles(JsonReader& reader) {
  std::vector<CheckpointFile> files;
  const nlohmann::json& items = reader.Array("files", std::size(kCheckpointFiles));
  if (reader.ok() && items.size() != std::size(kCheckpointFiles)) {
    reader.Fail("files", absl::StrCat(std::size(kCheckpointFiles), " files"),
                absl::StrCat(items.size()));
  }
  for (const nlohmann::json& item : items) {
    JsonReader file(item, absl::StrCat(reader.where(), ".files[", files.size(), "]"));
    const std::string name = file.String("name", 64);
    const char* const expected = kCheckpointFiles[files.size()];
    if (file.ok() && name != expected) {
      file.Fail("name", absl::StrCat("\"", expected, "\""), absl::StrCat("\"", name, "\""));
    }
    files.push_back({.name = name,
                     .bytes = file.Integer("bytes", 1, kFileBytesMax),
                     .sha256 = file.Sha256Digest("sha256")});
    reader.Join(file.Finish());
  }
  return files;
}

// The claims of the text that follow from other parts of it.
void CheckClaims(const CheckpointManifest& manifest, const Digest& chain, JsonReader& reader) {
  if (!reader.ok()) return;
  const Digest cursor = Sha256(AsBytes(manifest.cursor));
  if (const StepRecord* record = manifest.record(); record != nullptr && cursor != record->cursor) {
    reader.Fail("cursor",
                absl::StrCat("bytes whose SHA-256 is the record's, ", record->cursor.ToHex()),
                cursor.ToHex());
  }
  if (chain != manifest.chain()) {
    reader.Fail("chain",
                absl::StrCat("what follows from the ",
                             manifest.record() == nullptr ? "initial roots" : "record", ", ",
                             manifest.chain().ToHex()),
                chain.ToHex());
  }
}

std::string Describe(const Digest& run_id, uint64_t step, const Digest& chain) {
  return absl::StrCat("run ", run_id.ToHex(), " before step ", step, ", chain ", chain.ToHex());
}

}  // namespace

InitialState CheckpointManifest::roots() const {
  if (record() == nullptr) return std::get<InitialState>(origin);
  return {.parameters = record()->parameters,
          .first_moment = record()->first_moment,
          .second_moment = record()->second_moment};
}

uint64_t CheckpointManifest::tokens() const {
  return record() == nullptr ? 0 : record()->tokens_before + record()->tokens;
}

Digest CheckpointManifest::chain() const {
  if (record() != nullptr) return ChainAfter(*record());
  const InitialState initial = roots();
  return GenesisChain(run_id, initial.parameters, initial.first_moment, initial.second_moment,
                      Sha256(AsBytes(cursor)));
}

std::string EncodeCheckpointManifest(const CheckpointManifest& manifest) {
  nlohmann::json json = {{"chain", manifest.chain().ToHex()},
                         {"cursor", HexEncode(AsBytes(manifest.cursor))},
                         {"format", kFormat},
                         {"run_id", manifest.run_id.ToHex()},
                         {"version", kVersion}};
  if (const StepRecord* record = manifest.record(); record != nullptr) {
    json["record"] = HexEncode(AsBytes(EncodeStepRecord(*record)));
  } else {
    const InitialState roots = manifest.roots();
    json["initial"] = {{"first_moment", roots.first_moment.ToHex()},
                       {"parameters", roots.parameters.ToHex()},
                       {"second_moment", roots.second_moment.ToHex()}};
  }
  json["files"] = nlohmann::json::array();
  for (const CheckpointFile& file : manifest.files) {
    json["files"].push_back(
        {{"bytes", file.bytes}, {"name", file.name}, {"sha256", file.sha256.ToHex()}});
  }
  absl::StatusOr<std::string> text = CanonicalJson(json);
  LOCKSTEP_CHECK(text.ok(), "{}", text.status());
  return *std::move(text);
}

absl::StatusOr<CheckpointManifest> ParseCheckpointManifest(absl::string_view text) {
  if (text.size() > kCheckpointManifestBytesMax) {
    return absl::DataLossError(absl::StrCat("checkpoint manifest: expected at most ",
                                            kCheckpointManifestBytesMax, " bytes; found ",
                                            text.size()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(text),
                            "checkpoint manifest");
  JsonReader reader(json, "checkpoint manifest");
  if (const std::string format = reader.String("format", 64); reader.ok() && format != kFormat) {
    reader.Fail("format", absl::StrCat("\"", kFormat, "\""), absl::StrCat("\"", format, "\""));
  }
  reader.Integer("version", kVersion, kVersion);
  CheckpointManifest manifest;
  manifest.run_id = reader.Sha256Digest("run_id");
  const Digest chain = reader.Sha256Digest("chain");
  manifest.cursor = ReadHex(reader, "cursor", kCursorBytesMax);
  if (reader.Has("initial")) {
    manifest.origin = ReadInitial(reader);
  } else {
    manifest.origin = ReadRecord(reader);
  }
  manifest.files = ReadFiles(reader);
  CheckClaims(manifest, chain, reader);
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return manifest;
}

absl::Status CheckpointIsOfRun(const CheckpointManifest& checkpoint, const RunManifest& run) {
  const Digest run_id = RunIdOf(run);
  if (checkpoint.run_id == run_id) return absl::OkStatus();
  std::string expected = absl::StrCat("run ", run_id.ToHex());
  if (run.parent.has_value()) {
    const ParentSegment& parent = *run.parent;
    if (checkpoint.run_id == parent.run_id && checkpoint.chain() == parent.chain &&
        checkpoint.next_step() == static_cast<uint64_t>(parent.step)) {
      return absl::OkStatus();
    }
    absl::StrAppend(&expected, ", or of its parent, ",
                    Describe(parent.run_id, static_cast<uint64_t>(parent.step), parent.chain));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("checkpoint: expected a state of ", expected, "; found one of ",
                   Describe(checkpoint.run_id, checkpoint.next_step(), checkpoint.chain())));
}

}  // namespace lockstep::audit
