// SPDX-License-Identifier: Apache-2.0
//
// Key events, each with what it takes and what it does.
#include "audit/ledger/key_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "audit/ledger/refusal.h"
#include "base/status.h"

namespace lockstep::audit {

absl::Status RequireSignature(const LogEntry& entry, const Ed25519PublicKey& key, Signatures how) {
  const std::vector<Digest>& ids = entry.signer_ids();
  const bool is_signed = how == Signatures::kTrust
                             ? std::find(ids.begin(), ids.end(), key.Id()) != ids.end()
                             : entry.IsSignedBy(key);
  if (is_signed) return absl::OkStatus();
  return Refuse(Refusal::kWrongSignature,
                absl::StrCat("expected a valid signature of the key ", key.ToHex()));
}

absl::Status RequireSignatures(const LogEntry& entry, size_t count) {
  if (entry.signer_ids().size() == count) return absl::OkStatus();
  return Refuse(Refusal::kMalformed,
                absl::StrCat("expected ", count, " signatures; found ", entry.signer_ids().size()));
}

uint32_t KeyRegistry::FindById(const Digest& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? kNoId : found->second;
}

bool KeyRegistry::IsGood(uint32_t key_id) const {
  const KeyFacts& key = keys_[key_id];
  return key.until == kNeverEnded &&
         (key.operator_id == kNoId || operators_[key.operator_id].until == kNeverEnded);
}

std::vector<uint64_t> KeyRegistry::RotationsFrom(const Ed25519PublicKey& key) const {
  std::vector<uint64_t> rotations;
  uint32_t id = Find(key);
  while (id != kNoId && keys_[id].until != kNeverEnded) {
    // The entry that ended it and brought another is a rotation; a revocation brings none.
    const uint64_t ended = keys_[id].until;
    const auto next = std::find_if(keys_.begin(), keys_.end(),
                                   [&](const KeyFacts& facts) { return facts.since == ended; });
    if (next == keys_.end()) break;
    rotations.push_back(ended);
    id = static_cast<uint32_t>(next - keys_.begin());
  }
  return rotations;
}

absl::Status KeyRegistry::CheckFree(const Ed25519PublicKey& key) const {
  const uint32_t id = Find(key);
  if (id == kNoId) return absl::OkStatus();
  if (keys_[id].role == KeyRole::kTrainer && keys_[id].operator_id == kNoId) {
    return CheckGood(id, key);
  }
  return Refuse(Refusal::kDuplicate, absl::StrCat("the key ", key.ToHex(), " is registered"));
}

absl::Status KeyRegistry::CheckGood(uint32_t key_id, const Ed25519PublicKey& key) const {
  if (key_id == kNoId) {
    return Refuse(Refusal::kUnknownKey, absl::StrCat("nobody registered the key ", key.ToHex()));
  }
  if (IsGood(key_id)) return absl::OkStatus();
  return Refuse(Refusal::kRevokedKey, absl::StrCat("the key ", key.ToHex(),
                                                   ", or its operator, was revoked or replaced"));
}

absl::Status KeyRegistry::Check(const KeyEvent& event, const LogEntry& entry,
                                Signatures signatures) const {
  return std::visit([&](const auto& e) { return CheckEvent(e, entry, signatures); }, event);
}

uint32_t KeyRegistry::Apply(uint64_t index, const KeyEvent& event) {
  return std::visit([&](const auto& e) { return ApplyEvent(index, e); }, event);
}

absl::Status KeyRegistry::CheckEvent(const OperatorEvent& event, const LogEntry& entry,
                                     Signatures how) const {
  LOCKSTEP_RETURN_IF_ERROR(RequireSignatures(entry, 1));
  LOCKSTEP_RETURN_IF_ERROR(CheckFree(event.operator_key));
  return RequireSignature(entry, event.operator_key, how);
}

absl::Status KeyRegistry::CheckEvent(const WorkerEvent& event, const LogEntry& entry,
                                     Signatures how) const {
  LOCKSTEP_RETURN_IF_ERROR(RequireSignatures(entry, 2));
  const uint32_t operator_key = Find(event.operator_key);
  LOCKSTEP_RETURN_IF_ERROR(CheckGood(operator_key, event.operator_key));
  if (keys_[operator_key].role != KeyRole::kOperator) {
    return Refuse(Refusal::kWrongRole,
                  absl::StrCat("the key ", event.operator_key.ToHex(), " is not an operator's"));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckFree(event.worker_key));
  LOCKSTEP_RETURN_IF_ERROR(RequireSignature(entry, event.operator_key, how));
  return RequireSignature(entry, event.worker_key, how);
}

absl::Status KeyRegistry::CheckEvent(const RotateEvent& event, const LogEntry& entry,
                                     Signatures how) const {
  LOCKSTEP_RETURN_IF_ERROR(RequireSignatures(entry, 2));
  LOCKSTEP_RETURN_IF_ERROR(CheckGood(Find(event.old_key), event.old_key));
  if (Find(event.new_key) != kNoId) {
    return Refuse(Refusal::kDuplicate,
                  absl::StrCat("the key ", event.new_key.ToHex(), " is registered"));
  }
  LOCKSTEP_RETURN_IF_ERROR(RequireSignature(entry, event.old_key, how));
  return RequireSignature(entry, event.new_key, how);
}

absl::Status KeyRegistry::CheckEvent(const RevokeEvent& event, const LogEntry& entry,
                                     Signatures how) const {
  LOCKSTEP_RETURN_IF_ERROR(RequireSignatures(entry, 1));
  const uint32_t id = Find(event.key);
  LOCKSTEP_RETURN_IF_ERROR(CheckGood(id, event.key));
  const Digest& signer = entry.signer_ids()[0];
  const Ed25519PublicKey* by = &event.key;
  if (const uint32_t operator_id = keys_[id].operator_id; operator_id != kNoId) {
    const OperatorFacts& facts = operators_[operator_id];
    if (signer == facts.revocation_key.Id()) by = &facts.revocation_key;
    if (signer == keys_[facts.key_id].key.Id()) by = &keys_[facts.key_id].key;
  }
  if (signer != by->Id()) {
    return Refuse(Refusal::kWrongRole,
                  absl::StrCat("the key ", event.key.ToHex(),
                               " is revoked by itself, its operator or the revocation key"));
  }
  return RequireSignature(entry, *by, how);
}

uint32_t KeyRegistry::Add(uint64_t index, const Ed25519PublicKey& key) {
  const auto [at, added] = by_id_.try_emplace(key.Id(), static_cast<uint32_t>(keys_.size()));
  if (added) keys_.push_back({.key = key, .first_id = at->second, .since = index, .hardware = ""});
  return at->second;
}

uint32_t KeyRegistry::AddTrainer(uint64_t index, const Ed25519PublicKey& key) {
  return Add(index, key);
}

uint32_t KeyRegistry::ApplyEvent(uint64_t index, const OperatorEvent& event) {
  const uint32_t id = Add(index, event.operator_key);
  keys_[id].role = KeyRole::kOperator;
  keys_[id].operator_id = static_cast<uint32_t>(operators_.size());
  operators_.push_back({.key_id = id,
                        .revocation_key = event.revocation_key,
                        .name = event.name,
                        .contact = event.contact,
                        .since = index});
  return id;
}

uint32_t KeyRegistry::ApplyEvent(uint64_t index, const WorkerEvent& event) {
  const uint32_t id = Add(index, event.worker_key);
  keys_[id].role = KeyRole::kWorker;
  keys_[id].operator_id = keys_[Find(event.operator_key)].operator_id;
  keys_[id].hardware = event.hardware;
  return id;
}

uint32_t KeyRegistry::ApplyEvent(uint64_t index, const RotateEvent& event) {
  const uint32_t old_id = Find(event.old_key);
  const uint32_t id = Add(index, event.new_key);
  keys_[id].role = keys_[old_id].role;
  keys_[id].operator_id = keys_[old_id].operator_id;
  keys_[id].first_id = keys_[old_id].first_id;
  keys_[id].hardware = keys_[old_id].hardware;
  keys_[old_id].until = index;
  if (keys_[id].role == KeyRole::kOperator) operators_[keys_[id].operator_id].key_id = id;
  return id;
}

uint32_t KeyRegistry::ApplyEvent(uint64_t index, const RevokeEvent& event) {
  const uint32_t id = Find(event.key);
  keys_[id].until = index;
  if (keys_[id].role == KeyRole::kOperator) operators_[keys_[id].operator_id].until = index;
  return id;
}

}  // namespace lockstep::audit
