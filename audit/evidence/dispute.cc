// SPDX-License-Identifier: Apache-2.0
//
// Disputes as canonical JSON.
#include "audit/evidence/dispute.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "audit/evidence/payload_fields.h"
#include "base/canonical_json.h"
#include "base/encoding.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {
namespace {

constexpr DisputeReason kReasons[] = {DisputeReason::kMismatch, DisputeReason::kSecondHistory,
                                      DisputeReason::kBadOpening};
constexpr size_t kEnvelopeBytesMax = 65535;

DisputeReason ReadReason(JsonReader& reader) {
  const std::string word = reader.String("reason", 32);
  for (const DisputeReason reason : kReasons) {
    if (word == DisputeReasonName(reason)) return reason;
  }
  if (reader.ok()) reader.Fail("reason", "a known reason", absl::StrCat("\"", word, "\""));
  return DisputeReason::kMismatch;
}

std::vector<Evidence> ReadEvidence(JsonReader& reader) {
  std::vector<Evidence> evidence;
  const nlohmann::json& items = reader.Array("evidence", kDisputeEvidenceMax);
  if (reader.ok() && items.empty()) reader.Fail("evidence", "some", "none");
  for (const nlohmann::json& item : items) {
    JsonReader one(item, absl::StrCat(reader.where(), ".evidence[", evidence.size(), "]"));
    if (one.Has("envelope")) {
      evidence.emplace_back(ReadBase64(one, "envelope", kEnvelopeBytesMax));
    } else {
      evidence.emplace_back(one.Sha256Digest("entry"));
    }
    reader.Join(one.Finish());
  }
  return evidence;
}

}  // namespace

absl::string_view DisputeReasonName(DisputeReason reason) {
  switch (reason) {
    case DisputeReason::kMismatch:
      return "mismatch";
    case DisputeReason::kSecondHistory:
      return "second-history";
    case DisputeReason::kBadOpening:
      return "bad-opening";
  }
  return "unknown";
}

std::string EncodeDispute(const Dispute& dispute) {
  nlohmann::json evidence = nlohmann::json::array();
  for (const Evidence& item : dispute.evidence) {
    if (const Digest* entry = std::get_if<Digest>(&item); entry != nullptr) {
      evidence.push_back({{"entry", entry->ToHex()}});
    } else {
      evidence.push_back({{"envelope", Base64Encode(AsBytes(std::get<std::string>(item)))}});
    }
  }
  return EncodePayload({{"evidence", std::move(evidence)},
                        {"reason", std::string(DisputeReasonName(dispute.reason))},
                        {"run", dispute.run_id.ToHex()},
                        {"step", dispute.step}});
}

absl::StatusOr<Dispute> ParseDispute(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(text), "dispute");
  JsonReader reader(json, "dispute");
  Dispute dispute;
  dispute.run_id = reader.Sha256Digest("run");
  dispute.step = ReadStep(reader, "step");
  dispute.reason = ReadReason(reader);
  dispute.evidence = ReadEvidence(reader);
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return dispute;
}

}  // namespace lockstep::audit
