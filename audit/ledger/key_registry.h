// SPDX-License-Identifier: Apache-2.0
//
// Who is who in a log: operators, their workers' keys, trainers' keys, and from which entry to
// which each key was good. A part of the ledger, which feeds it key events in their order.
#ifndef LOCKSTEP_AUDIT_LEDGER_KEY_REGISTRY_H_
#define LOCKSTEP_AUDIT_LEDGER_KEY_REGISTRY_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "audit/evidence/key_event.h"
#include "audit/evidence/log_entry.h"
#include "base/ed25519.h"
#include "base/sha256.h"

namespace lockstep::audit {

// How an entry's signatures are taken.
enum class Signatures {
  kVerify,
  // Believed by their key id: for entries that were checked before they were kept, read back from
  // where nobody else writes.
  kTrust
};

inline constexpr uint32_t kNoId = std::numeric_limits<uint32_t>::max();
inline constexpr uint64_t kNeverEnded = std::numeric_limits<uint64_t>::max();

enum class KeyRole : uint8_t { kOperator, kWorker, kTrainer };

// Indices are those of log entries.
struct KeyFacts {
  Ed25519PublicKey key;
  KeyRole role = KeyRole::kTrainer;
  uint32_t operator_id = kNoId;  // none: a trainer that no operator vouches for
  uint32_t first_id = kNoId;     // the key that this one is in the place of, by rotation; or itself
  uint64_t since = 0;
  uint64_t until = kNeverEnded;  // the entry that ended it: rotated away, or revoked
  std::string hardware;          // of a worker; a stranger's text
};
struct OperatorFacts {
  uint32_t key_id = kNoId;  // the present one
  Ed25519PublicKey revocation_key;
  std::string name;     // a stranger's text, as the next
  std::string contact;  // may be empty
  uint64_t since = 0;
  uint64_t until = kNeverEnded;  // revoked; its workers end with it
};

class KeyRegistry {
 public:
  // Ids are places in these, in the order of the log; they never change.
  const std::vector<KeyFacts>& keys() const { return keys_; }
  const std::vector<OperatorFacts>& operators() const { return operators_; }

  // A key by itself, or by its Id(); kNoId for a stranger.
  uint32_t Find(const Ed25519PublicKey& key) const { return FindById(key.Id()); }
  uint32_t FindById(const Digest& id) const;
  // Whether it is good at the log's end: neither it nor its operator has ended.
  bool IsGood(uint32_t key_id) const;

  // Log indices of the rotations that lead from a key to the present one, in order.
  std::vector<uint64_t> RotationsFrom(const Ed25519PublicKey& key) const;

  // A refusal (refusal.h) unless the event may happen and is signed by those it must be.
  absl::Status Check(const KeyEvent& event, const LogEntry& entry, Signatures signatures) const;
  // An event that Check is content with. Returns the id of the key that it is about: for a
  // rotation the new one.
  uint32_t Apply(uint64_t index, const KeyEvent& event);

  // A trainer's key, of a run that is registered. Its id, a new one if need be.
  uint32_t AddTrainer(uint64_t index, const Ed25519PublicKey& key);

 private:
  // Events by kind, checked and applied.
  absl::Status CheckEvent(const OperatorEvent& event, const LogEntry& entry, Signatures how) const;
  absl::Status CheckEvent(const WorkerEvent& event, const LogEntry& entry, Signatures how) const;
  absl::Status CheckEvent(const RotateEvent& event, const LogEntry& entry, Signatures how) const;
  absl::Status CheckEvent(const RevokeEvent& event, const LogEntry& entry, Signatures how) const;
  uint32_t ApplyEvent(uint64_t index, const OperatorEvent& event);
  uint32_t ApplyEvent(uint64_t index, const WorkerEvent& event);
  uint32_t ApplyEvent(uint64_t index, const RotateEvent& event);
  uint32_t ApplyEvent(uint64_t index, const RevokeEvent& event);

  // OK if nobody has the key, or a trainer without an operator.
  absl::Status CheckFree(const Ed25519PublicKey& key) const;
  absl::Status CheckGood(uint32_t key_id, const Ed25519PublicKey& key) const;
  uint32_t Add(uint64_t index, const Ed25519PublicKey& key);

  std::vector<KeyFacts> keys_;
  std::vector<OperatorFacts> operators_;
  absl::flat_hash_map<Digest, uint32_t> by_id_;
};

// A refusal unless the key's signature is among the entry's.
absl::Status RequireSignature(const LogEntry& entry, const Ed25519PublicKey& key, Signatures how);
// A refusal unless the entry has so many.
absl::Status RequireSignatures(const LogEntry& entry, size_t count);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LEDGER_KEY_REGISTRY_H_
