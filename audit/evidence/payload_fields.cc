// SPDX-License-Identifier: Apache-2.0
//
// Shared fields, read and written.
#include "audit/evidence/payload_fields.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/logging.h"

namespace lockstep::audit {

std::string EncodePayload(const nlohmann::json& json) {
  absl::StatusOr<std::string> text = CanonicalJson(json);
  LOCKSTEP_CHECK(text.ok(), "{}", text.status());
  return *std::move(text);
}

Ed25519PublicKey ReadPublicKey(JsonReader& reader, const char* key) {
  const std::string text = reader.String(key, 64);
  if (!reader.ok()) return {};
  const absl::StatusOr<Ed25519PublicKey> public_key = Ed25519PublicKey::FromHex(text);
  if (public_key.ok()) return *public_key;
  reader.Fail(key, "an Ed25519 public key", public_key.status().message());
  return {};
}

std::string ReadBase64(JsonReader& reader, const char* key, size_t bytes_max) {
  const std::string text = reader.String(key, (bytes_max + 2) / 3 * 4);
  if (!reader.ok()) return "";
  absl::StatusOr<std::string> bytes = Base64Decode(text);
  if (bytes.ok() && bytes->size() <= bytes_max && Base64Encode(AsBytes(*bytes)) == text) {
    return *std::move(bytes);
  }
  reader.Fail(key, "standard base64, padded", "something else");
  return "";
}

std::vector<Digest> ReadDigests(JsonReader& reader, const char* key, size_t items_max) {
  std::vector<Digest> digests;
  for (const nlohmann::json& item : reader.Array(key, items_max)) {
    const auto* const text = item.get_ptr<const nlohmann::json::string_t*>();
    const absl::StatusOr<Digest> digest = Digest::FromHex(text == nullptr ? "" : *text);
    if (!digest.ok() || digest->ToHex() != *text) {
      reader.Fail(key, "64 lower-case hexadecimal digits each", "something else");
      return {};
    }
    digests.push_back(*digest);
  }
  return digests;
}

nlohmann::json WriteDigests(const std::vector<Digest>& digests) {
  nlohmann::json json = nlohmann::json::array();
  for (const Digest& digest : digests) json.push_back(digest.ToHex());
  return json;
}

uint64_t ReadStep(JsonReader& reader, const char* key) {
  return static_cast<uint64_t>(reader.Integer(key, 0, kStepMax));
}

void ReadConstant(JsonReader& reader, const char* key, absl::string_view expected) {
  const std::string found = reader.String(key, 256);
  if (reader.ok() && found != expected) {
    reader.Fail(key, absl::StrCat("\"", expected, "\""), absl::StrCat("\"", found, "\""));
  }
}

std::string ReadLine(JsonReader& reader, const char* key, size_t bytes_max) {
  std::string text = reader.String(key, bytes_max);
  if (!reader.ok()) return "";
  const bool plain = std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte < 0x20 || byte == 0x7f;
  });
  if (plain && !text.empty()) return text;
  reader.Fail(key, "text without control characters", text.empty() ? "none" : "some");
  return "";
}

}  // namespace lockstep::audit
