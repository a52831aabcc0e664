// SPDX-License-Identifier: Apache-2.0
//
// Envelopes as JSON: read by events, so that a member that comes twice is seen and nothing that is
// passed over is kept.
#include "audit/evidence/dsse.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/canonical_json.h"
#include "base/encoding.h"
#include "base/logging.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {
namespace {

constexpr int kDepthMax = 16;

// Which member a string belongs to. Depth 1 is the envelope, 2 its array of signatures, 3 one of
// them; anything else there is passed over.
class EnvelopeReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  absl::StatusOr<DsseEnvelope> Take() {
    if (!status_.ok()) return status_;
    if (!payload_ || !payload_type_ || !in_signatures_seen_) {
      return Error("expected \"payload\", \"payloadType\" and \"signatures\"; not all are there");
    }
    if (payload_type_->empty()) return Error("expected a payload type; found an empty one");
    DsseEnvelope envelope;
    LOCKSTEP_ASSIGN_OR_RETURN(envelope.payload, Decode("payload", *payload_));
    envelope.payload_type = *std::move(payload_type_);
    if (signatures_.empty()) return Error("expected signatures; found none");
    for (Signature& signature : signatures_) {
      if (!signature.bytes) return Error("expected \"sig\" in each signature");
      DsseSignature& decoded = envelope.signatures.emplace_back();
      decoded.key_id = std::move(signature.key_id).value_or("");
      LOCKSTEP_ASSIGN_OR_RETURN(decoded.bytes, Decode("sig", *signature.bytes));
    }
    return envelope;
  }

  bool null() override { return Scalar(); }
  bool boolean(bool /*value*/) override { return Scalar(); }
  bool number_integer(number_integer_t /*value*/) override { return Scalar(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return Scalar(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    return Scalar();
  }
  bool binary(binary_t& /*value*/) override { return Scalar(); }
  bool string(string_t& value) override {
    std::optional<std::string>* const member = Member();
    if (member == nullptr) return Scalar();
    if (*member) return Fail(absl::StrCat("the member \"", key_, "\" comes twice"));
    *member = std::move(value);
    key_.clear();
    return true;
  }
  bool start_object(size_t /*elements*/) override {
    if (!Open()) return false;
    if (depth_ == 3 && in_signatures_) {
      if (signatures_.size() == kDsseSignaturesMax) {
        return Fail(absl::StrCat("expected at most ", kDsseSignaturesMax, " signatures"));
      }
      signatures_.emplace_back();
    } else if (depth_ == 1) {
      is_object_ = true;
    }
    key_.clear();
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t /*elements*/) override {
    const bool signatures = depth_ == 1 && key_ == "signatures";
    if (signatures && in_signatures_seen_) return Fail("the member \"signatures\" comes twice");
    if (depth_ == 2 && in_signatures_) return Fail("expected objects as signatures");
    if (!Open()) return false;
    if (signatures) in_signatures_ = in_signatures_seen_ = true;
    key_.clear();
    return true;
  }
  bool end_array() override {
    if (depth_ == 2) in_signatures_ = false;
    return Close();
  }
  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return Fail(absl::StrCat("expected JSON; byte ", position, " is not"));
  }

 private:
  struct Signature {
    std::optional<std::string> key_id;
    std::optional<std::string> bytes;
  };

  static absl::Status Error(absl::string_view message) {
    return absl::DataLossError(absl::StrCat("DSSE envelope: ", message));
  }
  bool Fail(absl::string_view message) {
    if (status_.ok()) status_ = Error(message);
    return false;
  }
  static absl::StatusOr<std::string> Decode(absl::string_view member, absl::string_view text) {
    absl::StatusOr<std::string> bytes = Base64Decode(text);
    if (bytes.ok()) return bytes;
    return Error(absl::StrCat(member, ": ", bytes.status().message()));
  }

  // Where the value that comes next goes, if it is one of ours and a string.
  std::optional<std::string>* Member() {
    if (depth_ == 1 && is_object_) {
      if (key_ == "payload") return &payload_;
      if (key_ == "payloadType") return &payload_type_;
    } else if (depth_ == 3 && in_signatures_ && !signatures_.empty()) {
      if (key_ == "keyid") return &signatures_.back().key_id;
      if (key_ == "sig") return &signatures_.back().bytes;
    }
    return nullptr;
  }
  // A value that is not a string of ours.
  bool Scalar() {
    if (Member() != nullptr) return Fail(absl::StrCat("expected a string as \"", key_, "\""));
    if (depth_ == 0) return Fail("expected an object");
    if (depth_ == 2 && in_signatures_) return Fail("expected objects as signatures");
    if (depth_ == 1 && key_ == "signatures") return Fail("expected an array as \"signatures\"");
    key_.clear();
    return true;
  }
  bool Open() {
    if (Member() != nullptr) return Fail(absl::StrCat("expected a string as \"", key_, "\""));
    if (++depth_ > kDepthMax) return Fail(absl::StrCat("nested more than ", kDepthMax, " deep"));
    return true;
  }
  bool Close() {
    --depth_;
    key_.clear();
    return true;
  }

  int depth_ = 0;
  bool is_object_ = false;
  bool in_signatures_ = false;
  bool in_signatures_seen_ = false;
  std::string key_;
  std::optional<std::string> payload_;
  std::optional<std::string> payload_type_;
  std::vector<Signature> signatures_;
  absl::Status status_;
};

}  // namespace

std::string DssePae(absl::string_view payload_type, absl::string_view payload) {
  return absl::StrCat("DSSEv1 ", payload_type.size(), " ", payload_type, " ", payload.size(), " ",
                      payload);
}

DsseEnvelope SignDsse(std::string payload_type, std::string payload,
                      std::span<const Ed25519PrivateKey* const> keys) {
  const std::string pae = DssePae(payload_type, payload);
  DsseEnvelope envelope = {
      .payload_type = std::move(payload_type), .payload = std::move(payload), .signatures = {}};
  for (const Ed25519PrivateKey* key : keys) {
    envelope.signatures.push_back(
        {.key_id = key->public_key().Id().ToHex(), .bytes = ToString(key->Sign(AsBytes(pae)))});
  }
  return envelope;
}

std::string EncodeDsse(const DsseEnvelope& envelope) {
  nlohmann::json json = {{"payload", Base64Encode(AsBytes(envelope.payload))},
                         {"payloadType", envelope.payload_type},
                         {"signatures", nlohmann::json::array()}};
  for (const DsseSignature& signature : envelope.signatures) {
    json["signatures"].push_back(
        {{"keyid", signature.key_id}, {"sig", Base64Encode(AsBytes(signature.bytes))}});
  }
  absl::StatusOr<std::string> text = CanonicalJson(json);
  LOCKSTEP_CHECK(text.ok(), "{}", text.status());
  return *std::move(text);
}

size_t DsseBytes(const DsseEnvelope& envelope) {
  constexpr absl::string_view kFrame = R"({"payload":"","payloadType":"","signatures":[]})";
  constexpr absl::string_view kSignature = R"({"keyid":"","sig":""},)";
  const auto base64 = [](size_t bytes) { return (bytes + 2) / 3 * 4; };
  size_t bytes = kFrame.size() + base64(envelope.payload.size()) + envelope.payload_type.size();
  for (const DsseSignature& signature : envelope.signatures) {
    bytes += kSignature.size() + signature.key_id.size() + base64(signature.bytes.size());
  }
  return envelope.signatures.empty() ? bytes : bytes - 1;  // no comma behind the last
}

absl::StatusOr<DsseEnvelope> ParseDsse(absl::string_view json) {
  // JSON has none, and the parser takes one for the text's end.
  if (absl::StrContains(json, '\0')) {
    return absl::DataLossError("DSSE envelope: expected JSON; found a byte 0");
  }
  EnvelopeReader reader;
  nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  return reader.Take();
}

}  // namespace lockstep::audit
