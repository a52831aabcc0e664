// SPDX-License-Identifier: Apache-2.0
//
// Evaluations as canonical JSON, and their sums.
#include "audit/evidence/evaluation.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "audit/evidence/payload_fields.h"
#include "base/canonical_json.h"
#include "base/coding.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {
namespace {

constexpr int64_t kCountMax = int64_t{1} << 50;

std::vector<HeldOutFile> ReadFiles(JsonReader& reader) {
  std::vector<HeldOutFile> files;
  const nlohmann::json& items = reader.Array("heldOut", kHeldOutFilesMax);
  if (reader.ok() && items.empty()) reader.Fail("heldOut", "a file or more", "none");
  for (const nlohmann::json& item : items) {
    JsonReader file(item, absl::StrCat(reader.where(), ".heldOut[", files.size(), "]"));
    files.push_back({.name = ReadLine(file, "name", 64),
                     .sha256 = file.Sha256Digest("sha256"),
                     .documents = file.Integer("documents", 1, kCountMax),
                     .bytes = file.Integer("bytes", 1, kCountMax),
                     .tokens = file.Integer("tokens", 1, kCountMax),
                     .nats_per_token = file.Number("natsPerToken", 0, kNatsPerTokenMax)});
    reader.Join(file.Finish());
  }
  return files;
}

double Nats(const Evaluation& evaluation) {
  double nats = 0;
  for (const HeldOutFile& file : evaluation.files) {
    nats += file.nats_per_token * static_cast<double>(file.tokens);
  }
  return nats;
}

double Sum(const Evaluation& evaluation, int64_t HeldOutFile::*count) {
  int64_t sum = 0;
  for (const HeldOutFile& file : evaluation.files) sum += file.*count;
  return static_cast<double>(sum);
}

}  // namespace

double NatsPerToken(const Evaluation& evaluation) {
  return Nats(evaluation) / Sum(evaluation, &HeldOutFile::tokens);
}

double BitsPerByte(const Evaluation& evaluation) {
  return Nats(evaluation) / std::log(2.0) / Sum(evaluation, &HeldOutFile::bytes);
}

Digest TextsOf(const Evaluation& evaluation) {
  ByteWriter writer;
  writer.WriteU64(static_cast<uint64_t>(evaluation.limit));
  for (const HeldOutFile& file : evaluation.files) writer.WriteFixed(file.sha256.bytes);
  return Sha256(AsBytes(writer.bytes()));
}

std::string EncodeEvaluation(const Evaluation& evaluation) {
  nlohmann::json files = nlohmann::json::array();
  for (const HeldOutFile& file : evaluation.files) {
    files.push_back({{"bytes", file.bytes},
                     {"documents", file.documents},
                     {"name", file.name},
                     {"natsPerToken", file.nats_per_token},
                     {"sha256", file.sha256.ToHex()},
                     {"tokens", file.tokens}});
  }
  return EncodePayload({{"chain", evaluation.chain.ToHex()},
                        {"heldOut", std::move(files)},
                        {"limit", evaluation.limit},
                        {"nextStep", evaluation.next_step},
                        {"run", evaluation.run_id.ToHex()}});
}

absl::StatusOr<Evaluation> ParseEvaluation(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(text), "evaluation");
  JsonReader reader(json, "evaluation");
  Evaluation evaluation;
  evaluation.run_id = reader.Sha256Digest("run");
  evaluation.next_step = ReadStep(reader, "nextStep");
  evaluation.chain = reader.Sha256Digest("chain");
  evaluation.limit = reader.Integer("limit", 0, kCountMax);
  evaluation.files = ReadFiles(reader);
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return evaluation;
}

}  // namespace lockstep::audit
