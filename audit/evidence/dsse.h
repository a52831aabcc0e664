// SPDX-License-Identifier: Apache-2.0
//
// DSSE v1 envelopes (github.com/secure-systems-lab/dsse): bytes, what kind they are, and signatures
// over both. Everything in the log is one. This file knows no kinds; log_entry.h does.
#ifndef LOCKSTEP_AUDIT_EVIDENCE_DSSE_H_
#define LOCKSTEP_AUDIT_EVIDENCE_DSSE_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/bytes.h"
#include "base/ed25519.h"

namespace lockstep::audit {

struct DsseSignature {
  std::string key_id;  // a hint which key to try, and nothing more; may be empty
  std::string bytes;
  bool operator==(const DsseSignature&) const = default;
};

struct DsseEnvelope {
  std::string payload_type;
  std::string payload;
  std::vector<DsseSignature> signatures;
  bool operator==(const DsseEnvelope&) const = default;
};

inline constexpr size_t kDsseSignaturesMax = 16;

// What is signed: "DSSEv1", the lengths, the type and the payload (protocol.md, PAE).
std::string DssePae(absl::string_view payload_type, absl::string_view payload);

// The payload with a signature of each key; `keyid` is the hexadecimal Id() of the key.
DsseEnvelope SignDsse(std::string payload_type, std::string payload,
                      std::span<const Ed25519PrivateKey* const> keys);

// The envelope as canonical JSON, standard base64.
std::string EncodeDsse(const DsseEnvelope& envelope);

// The bytes of EncodeDsse(envelope), without making it: of one whose type and key ids are of plain
// ASCII that JSON does not escape.
size_t DsseBytes(const DsseEnvelope& envelope);

// Any JSON of the form that envelope.md gives: either alphabet of base64, padded or not, and other
// members are passed over. Untrusted input. DataLoss for anything else; for a member twice, since
// readers differ about which one counts; for no signature, or more than kDsseSignaturesMax; for an
// empty payload type. Nothing is verified here.
absl::StatusOr<DsseEnvelope> ParseDsse(absl::string_view json);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_EVIDENCE_DSSE_H_
