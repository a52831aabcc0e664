// SPDX-License-Identifier: Apache-2.0
//
// What is asked of the coordinator and what it answers, as plain values: the words of
// proto/lockstep/v1 without its messages. Errors carry one of the reasons named there
// (rpc::ReasonOf).

#ifndef LOCKSTEP_COORDINATOR_CORE_REQUESTS_H_
#define LOCKSTEP_COORDINATOR_CORE_REQUESTS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/evidence/checkpoint_announcement.h"
#include "audit/evidence/quorum.h"
#include "audit/ledger/run_ledger.h"
#include "base/ed25519.h"
#include "base/sha256.h"
#include "coordinator/store/rows.h"

namespace lockstep::coordinator {

// Who stands behind a signed request, after its signature was verified.
struct Caller {
  Ed25519PublicKey key;
  std::string address;     // of the peer, without a port
  std::string request_id;  // 32 hexadecimal digits, as the next
  std::string attempt_id;
  int64_t time_unix_ms = 0;  // the coordinator's time, as the caller knows it
  Digest fingerprint;        // of method and payload
};

// A file by content, and where it is besides here.
struct ArtifactSource {
  Digest digest;
  int64_t bytes = 0;
  std::vector<std::string> mirrors;
};

struct Progress {
  uint64_t next_step = 0;                  // the first without a record
  Digest chain;                            // before it
  std::vector<uint64_t> checkpoints = {};  // steps before which a state was announced, ascending
};

// A refused record's error has next_step in its metadata too.
struct PublishAnswer {
  uint64_t next_step = 0;
  audit::EntryRef last;
};

struct Capabilities {
  std::string backend_class;
  int64_t memory_bytes = 0;
  int64_t disk_bytes = 0;
  double tokens_per_second = 0;  // 0: not known
  std::vector<Digest> runs;      // wanted; empty: any
};

struct LeaseGrant {
  LeaseRow lease;            // replayed from first_step on, where there is a state
  uint64_t begin_step = 0;   // the first that the key has not attested before
  int64_t heartbeat_ms = 0;  // to be heard at least this often
  int64_t lifetime_ms = 0;   // of a lease just granted
  // The state before lease.first_step; nullopt: the run's initial one.
  std::optional<audit::CheckpointAnnouncement> start = std::nullopt;
  Digest start_source = {};                        // whose it is, as ArtifactRow::source
  std::optional<CanaryRow> canary = std::nullopt;  // what to serve in the place of a record
};

struct AcquireAnswer {
  std::optional<LeaseGrant> lease = std::nullopt;
  std::string no_work_reason = {};  // without a lease, as the next
  int64_t retry_after_ms = 0;
};

enum class ReleaseReason { kFinished, kCanceled, kInconclusive };

struct AttestationAnswer {
  // Without: the step was a canary, and the answer to it is in no log.
  std::optional<audit::EntryRef> entry = std::nullopt;
  std::optional<Ed25519Signature> challenge = std::nullopt;  // of a match that has leaves to open
};

struct OfferAnswer {
  audit::EntryRef entry;
  std::vector<Digest> upload;  // that nobody is known to have
};

// For whom a key's uploads count: its operator, by the name that the coordinator has for it, or the
// trainer itself.
struct Uploader {
  Digest owner;
  bool trains = false;  // a run's records are signed by the key now
};

// A live lease, to somebody who looks at a step.
struct StepLease {
  uint32_t key_id = audit::kNoId;  // KeyRegistry
  std::string backend;             // empty: not known since the coordinator was started
  int64_t granted_unix_ms = 0;
};

struct Coverage {
  uint64_t first_step = 0;
  std::vector<audit::StepState> states;
  std::array<uint64_t, audit::kStepStates> counts{};
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_CORE_REQUESTS_H_
