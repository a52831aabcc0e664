// SPDX-License-Identifier: Apache-2.0
//
// Coding of the progress file.
#include "engine/corpus/ingest_state.h"

#include "base/canonical_json.h"
#include "base/coding.h"
#include "base/status.h"
#include "engine/corpus/document_store_format.h"

namespace lockstep::engine {
namespace {

constexpr int64_t kCountMax = int64_t{1} << 50;
constexpr size_t kPartsMax = 1'000'000;

}  // namespace

void IngestState::AddInput(absl::string_view name, int64_t bytes, const Digest& file_digest) {
  ByteWriter writer;
  writer.WriteFixed(input_digest.bytes);
  writer.WriteFixed(Sha256(AsBytes(name)).bytes);
  writer.WriteU64(static_cast<uint64_t>(bytes));
  writer.WriteFixed(file_digest.bytes);
  input_digest = Sha256(AsBytes(writer.bytes()));
}

std::string EncodeIngestState(const IngestState& state) {
  const nlohmann::json json = {{"config", state.config.ToHex()},
                               {"format", "lockstep-ingest-progress"},
                               {"input_digest", state.input_digest.ToHex()},
                               {"input_listing", state.input_listing.ToHex()},
                               {"input_times", state.input_times.ToHex()},
                               {"parts", EncodeParts(state.parts)},
                               {"position",
                                {{"bytes", state.position.bytes},
                                 {"file", state.position.file},
                                 {"records", state.position.records}}},
                               {"report", state.report.ToJson()},
                               {"version", 1}};
  return json.dump();
}

absl::StatusOr<IngestState> ParseIngestState(absl::string_view bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(bytes));
  JsonReader reader(json, "progress");
  if (const std::string format = reader.String("format", 64);
      reader.ok() && format != "lockstep-ingest-progress") {
    reader.Fail("format", "lockstep-ingest-progress", "another");
  }
  reader.Integer("version", 1, 1);
  IngestState state;
  state.config = reader.Sha256Digest("config");
  state.input_digest = reader.Sha256Digest("input_digest");
  state.input_listing = reader.Sha256Digest("input_listing");
  state.input_times = reader.Sha256Digest("input_times");
  JsonReader position(reader.Object("position"), "progress.position");
  state.position = {.file = position.Integer("file", 0, kCountMax),
                    .records = position.Integer("records", 0, kCountMax),
                    .bytes = position.Integer("bytes", 0, kCountMax)};
  reader.Join(position.Finish());
  LOCKSTEP_ASSIGN_OR_RETURN(state.parts, ParseParts(reader.Array("parts", kPartsMax)), "progress");
  const nlohmann::json& report = reader.Object("report");
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  LOCKSTEP_ASSIGN_OR_RETURN(state.report, IngestReport::FromJson(report), "progress");
  return state;
}

}  // namespace lockstep::engine
