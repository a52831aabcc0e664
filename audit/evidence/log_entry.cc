// SPDX-License-Identifier: Apache-2.0
//
// Kinds and payload types, both ways.
#include "audit/evidence/log_entry.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "audit/evidence/dsse.h"
#include "base/merkle.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

absl::StatusOr<PublishedRecord> ParsePublishedRecord(absl::string_view payload) {
  constexpr size_t kBytes = 32 + kStepRecordBytes;
  if (payload.size() != kBytes) {
    return absl::DataLossError(
        absl::StrCat("published record: expected ", kBytes, " bytes; found ", payload.size()));
  }
  PublishedRecord published;
  std::copy_n(payload.begin(), 32, published.run_id.bytes.begin());
  LOCKSTEP_ASSIGN_OR_RETURN(published.record, DecodeStepRecord(AsBytes(payload.substr(32))),
                            "published record");
  return published;
}

std::string EncodePublishedRecord(const PublishedRecord& published) {
  return absl::StrCat(AsChars(published.run_id.bytes), EncodeStepRecord(published.record));
}

template <typename T>
absl::StatusOr<EntryPayload> ToPayload(absl::StatusOr<T> parsed) {
  if (!parsed.ok()) return std::move(parsed).status();
  return EntryPayload(*std::move(parsed));
}

absl::StatusOr<EntryPayload> ParsePayload(absl::string_view type, absl::string_view payload) {
  if (type == kAttestationPayloadType) return ToPayload(ParseAttestation(payload));
  if (type == kRecordPayloadType) return ToPayload(ParsePublishedRecord(payload));
  if (type == kOpeningPayloadType) return ToPayload(ParseOpening(payload));
  if (type == kRunRegistrationPayloadType) return ToPayload(ParseRunRegistration(payload));
  if (type == kCheckpointPayloadType) return ToPayload(ParseCheckpointAnnouncement(payload));
  if (type == kKeyEventPayloadType) return ToPayload(ParseKeyEvent(payload));
  if (type == kDisputePayloadType) return ToPayload(ParseDispute(payload));
  if (type == kEvaluationPayloadType) return ToPayload(ParseEvaluation(payload));
  return absl::DataLossError(
      absl::StrCat("log entry: expected a payload type of the log; found \"", type, "\""));
}

struct Encoder {
  std::pair<const char*, std::string> operator()(const RunRegistration& p) const {
    return {kRunRegistrationPayloadType, EncodeRunRegistration(p)};
  }
  std::pair<const char*, std::string> operator()(const PublishedRecord& p) const {
    return {kRecordPayloadType, EncodePublishedRecord(p)};
  }
  std::pair<const char*, std::string> operator()(const CheckpointAnnouncement& p) const {
    return {kCheckpointPayloadType, EncodeCheckpointAnnouncement(p)};
  }
  std::pair<const char*, std::string> operator()(const KeyEvent& p) const {
    return {kKeyEventPayloadType, EncodeKeyEvent(p)};
  }
  std::pair<const char*, std::string> operator()(const Attestation& p) const {
    return {kAttestationPayloadType, EncodeAttestation(p)};
  }
  std::pair<const char*, std::string> operator()(const Opening& p) const {
    return {kOpeningPayloadType, EncodeOpening(p)};
  }
  std::pair<const char*, std::string> operator()(const Dispute& p) const {
    return {kDisputePayloadType, EncodeDispute(p)};
  }
  std::pair<const char*, std::string> operator()(const Evaluation& p) const {
    return {kEvaluationPayloadType, EncodeEvaluation(p)};
  }
};

}  // namespace

absl::string_view EntryKindName(EntryKind kind) {
  constexpr absl::string_view kNames[kEntryKinds] = {
      "run", "record", "checkpoint", "key", "attestation", "opening", "dispute", "evaluation"};
  return kNames[static_cast<size_t>(kind)];
}

absl::StatusOr<LogEntry> LogEntry::Parse(absl::string_view bytes) {
  if (bytes.size() > kLogEntryBytesMax) {
    return absl::DataLossError(absl::StrCat("log entry: expected at most ", kLogEntryBytesMax,
                                            " bytes; found ", bytes.size()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(DsseEnvelope envelope, ParseDsse(bytes), "log entry");
  LogEntry entry;
  entry.canonical_bytes_ = DsseBytes(envelope);
  LOCKSTEP_ASSIGN_OR_RETURN(entry.payload_, ParsePayload(envelope.payload_type, envelope.payload));
  for (DsseSignature& signature : envelope.signatures) {
    const absl::StatusOr<Digest> id = Digest::FromHex(signature.key_id);
    if (!id.ok() || signature.bytes.size() != kEd25519SignatureBytes) {
      return absl::DataLossError(
          "log entry: expected signatures of 64 bytes with the SHA-256 of their key as keyid; "
          "found another");
    }
    if (std::find(entry.signer_ids_.begin(), entry.signer_ids_.end(), *id) !=
        entry.signer_ids_.end()) {
      return absl::DataLossError("log entry: expected one signature a key; found two");
    }
    entry.signer_ids_.push_back(*id);
    entry.signatures_.push_back(std::move(signature.bytes));
  }
  entry.leaf_hash_ = MerkleLeafHash(AsBytes(bytes));
  entry.pae_ = DssePae(envelope.payload_type, envelope.payload);
  return entry;
}

bool LogEntry::IsSignedBy(const Ed25519PublicKey& key) const {
  return std::find(signed_by_.begin(), signed_by_.end(), key) != signed_by_.end() || Verify(key);
}

void LogEntry::MarkSignedBy(const Ed25519PublicKey& key) {
  if (Verify(key)) signed_by_.push_back(key);
}

bool LogEntry::IsChallengedBy(const Ed25519PublicKey& log_key) const {
  const auto* opening = std::get_if<Opening>(&payload_);
  if (opening == nullptr) return false;
  return (challenged_by_.has_value() && *challenged_by_ == log_key) ||
         VerifyChallenge(log_key, opening->attestation, opening->challenge);
}

void LogEntry::MarkChallengedBy(const Ed25519PublicKey& log_key) {
  if (IsChallengedBy(log_key)) challenged_by_ = log_key;
}

bool LogEntry::Verify(const Ed25519PublicKey& key) const {
  const Digest id = key.Id();
  const auto found = std::find(signer_ids_.begin(), signer_ids_.end(), id);
  if (found == signer_ids_.end()) return false;
  return VerifyEd25519(key, AsBytes(pae_), AsBytes(signatures_[found - signer_ids_.begin()]));
}

absl::StatusOr<std::string> MakeLogEntry(const EntryPayload& payload,
                                         std::span<const Ed25519PrivateKey* const> keys) {
  auto [type, text] = std::visit(Encoder(), payload);
  std::string bytes = EncodeDsse(SignDsse(type, std::move(text), keys));
  if (bytes.size() <= kLogEntryBytesMax) return bytes;
  return absl::ResourceExhaustedError(absl::StrCat("log entry: ", bytes.size(),
                                                   " bytes, more than the ", kLogEntryBytesMax,
                                                   " that an entry of the log may have"));
}

}  // namespace lockstep::audit
