// SPDX-License-Identifier: Apache-2.0
//
// Fields that the payloads of log entries share, as they stand in JSON. For the files of this
// folder.
#ifndef LOCKSTEP_AUDIT_EVIDENCE_PAYLOAD_FIELDS_H_
#define LOCKSTEP_AUDIT_EVIDENCE_PAYLOAD_FIELDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/canonical_json.h"
#include "base/ed25519.h"
#include "base/sha256.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {

// Steps, from 0; far more than any run has.
inline constexpr int64_t kStepMax = int64_t{1} << 48;

// The canonical text of a payload of ours (checked: it has one).
std::string EncodePayload(const nlohmann::json& json);

// 64 lower-case digits of a key that may be registered (base/ed25519.h).
Ed25519PublicKey ReadPublicKey(JsonReader& reader, const char* key);
// Standard base64, padded, of at most bytes_max bytes.
std::string ReadBase64(JsonReader& reader, const char* key, size_t bytes_max);
// An array of digests in hexadecimal.
std::vector<Digest> ReadDigests(JsonReader& reader, const char* key, size_t items_max);
nlohmann::json WriteDigests(const std::vector<Digest>& digests);
uint64_t ReadStep(JsonReader& reader, const char* key);
// Fails unless the string is this one.
void ReadConstant(JsonReader& reader, const char* key, absl::string_view expected);
// Text for people, of a stranger: 1 to bytes_max bytes without control characters.
std::string ReadLine(JsonReader& reader, const char* key, size_t bytes_max);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_EVIDENCE_PAYLOAD_FIELDS_H_
