// SPDX-License-Identifier: Apache-2.0
//
// What the store holds, as plain values: one struct for each table of store/migrations.cc, with the
// same words. Keys are the 32 bytes of an Ed25519 public key, held as a Digest. Times in ms: `_ms`
// is service time (service_time.h), `_unix_ms` the time of day.

#ifndef LOCKSTEP_COORDINATOR_STORE_ROWS_H_
#define LOCKSTEP_COORDINATOR_STORE_ROWS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/sha256.h"
#include "coordinator/scheduler/trust.h"

namespace lockstep::coordinator {

inline constexpr size_t kEntryBytesMax = 65'535;  // the log's own limit

// An entry of the log, or one about to be appended.
struct EntryRow {
  uint64_t log_index = 0;
  std::string kind;  // "run", "record", "attestation", ...: audit/evidence/log_entry.h
  std::optional<Digest> run;
  std::optional<uint64_t> step;
  Digest leaf_hash;      // MerkleLeafHash(envelope); no two entries have the same
  std::string envelope;  // 1 to kEntryBytesMax bytes
  // When it was taken, by this coordinator's clock: the log does not say. None for entries from
  // before that was kept.
  std::optional<int64_t> received_unix_ms = std::nullopt;

  bool operator==(const EntryRow&) const = default;
};

// What became of a lease. Of the network's five verdicts, match and mismatch are what a replay
// found, step by step, and stand in the log (audit/verdict.h); the three others are leases without:
// kInconclusive, something kept the replay from a verdict; kCanceled, its machine's owner wanted it
// back; kExpired, it ran out.
enum class LeaseState { kLive, kDone, kCanceled, kInconclusive, kExpired };
inline constexpr std::array<absl::string_view, 5> kLeaseStates = {"live", "done", "canceled",
                                                                  "inconclusive", "expired"};

struct LeaseRow {
  std::string lease_id;
  Digest key;
  Digest operator_key;
  std::string address;     // of the peer, for caps
  std::string attempt_id;  // the worker's, new for each start of its process
  Digest nonce;
  Digest run;
  uint64_t first_step = 0;
  uint64_t end_step = 0;  // one past the last
  LeaseState state = LeaseState::kLive;
  int64_t granted_ms = 0;
  int64_t heartbeat_ms = 0;  // the last one
  int64_t expires_ms = 0;    // without another heartbeat
  int64_t bound_ms = 0;      // whatever the heartbeats
  int64_t granted_unix_ms = 0;
  int64_t ended_unix_ms = 0;  // 0 while it lives
  std::string detail = {};    // what its holder said of the end: a stranger's text, for people

  bool operator==(const LeaseRow&) const = default;
};

// The answer to a request that may come again.
struct RequestRow {
  Digest key;  // who asks
  std::string request_id;
  Digest fingerprint;  // of the request: the same id with another request is a mistake
  std::string response;
  int64_t answered_ms = 0;

  bool operator==(const RequestRow&) const = default;
};

// What came and is not in the log: too late, from a foreign lease, a second history, ...
struct EvidenceRow {
  int64_t evidence_id = 0;
  std::string reason;
  std::optional<Digest> run;
  std::optional<uint64_t> step;
  std::optional<Digest> key;
  std::string envelope;
  int64_t received_unix_ms = 0;

  bool operator==(const EvidenceRow&) const = default;
};

enum class ChallengeState { kOpen, kAnswered, kFailed, kExpired };

// How often a key's reports were refused for a reason.
struct EvidenceCount {
  Digest key;
  std::string reason;
  int64_t count = 0;
  int64_t last_id = 0;  // the newest one's

  bool operator==(const EvidenceCount&) const = default;
};

// A transcript leaf that an attestation's signer is asked to open.
struct ChallengeRow {
  Digest attestation;  // leaf hash of its entry
  uint64_t leaf_index = 0;
  Digest run;
  uint64_t step = 0;
  Digest key;
  ChallengeState state = ChallengeState::kOpen;
  int64_t asked_ms = 0;
  int64_t due_ms = 0;

  bool operator==(const ChallengeRow&) const = default;
};

enum class CanaryState { kOpen, kSeen, kMissed, kExpired };

// A step of a lease whose published record was replaced by a false one. Known here only, and in no
// log: kSeen is the mismatch that an honest replay answers, kMissed a "match" unseen.
struct CanaryRow {
  std::string lease_id;
  Digest key;
  Digest run;
  uint64_t step = 0;
  std::string false_record;  // StepRecord bytes as served to this lease
  CanaryState state = CanaryState::kOpen;

  bool operator==(const CanaryRow&) const = default;
};

struct TrustRow {
  Digest key;
  KeyTrust trust;

  bool operator==(const TrustRow&) const = default;
};

// What one source says of a file: whose words are whose stays known, since a stranger may say
// anything of any digest.
struct ArtifactRow {
  Digest digest;
  Digest source;            // the run whose trainer says so, or a worker's key
  bool by_trainer = false;  // which of the two
  int64_t bytes = 0;
  std::vector<std::string> mirrors = {};  // other places than here, in this order

  bool operator==(const ArtifactRow&) const = default;
};

// For server-sent events; event_id is their Last-Event-ID.
struct EventRow {
  int64_t event_id = 0;
  std::string kind;
  std::optional<Digest> run;
  std::string data;  // JSON
  int64_t at_unix_ms = 0;

  bool operator==(const EventRow&) const = default;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_STORE_ROWS_H_
