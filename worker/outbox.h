// SPDX-License-Identifier: Apache-2.0
//
// What the worker has signed and a coordinator has not acknowledged, on disk: an attestation is
// here before anyone hears of it, with the transcript leaves that it may be asked to open, and
// leaves when it and its openings are in the log. Nothing signed is lost by a kill, and a step that
// the log has an attestation of is known here for ever. Sending is outbox_sender.h's.
//
//   pending/00000012.json              to be sent, in this order
//   receipts/<run>-<step>-<log>.json   acknowledged: the attestation, and the log's promise to hold
//                                      it (audit/ledger/receipt.h), as `lockstep verify` reads it
//   refused/<run>-<step>-<log>-<lease>.json   never to be taken, with the reason
//
// <log>: the first 16 digits of the SHA-256 of the log's origin. Files appear whole, and are on the
// disk before a call returns.
#ifndef LOCKSTEP_WORKER_OUTBOX_H_
#define LOCKSTEP_WORKER_OUTBOX_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "audit/log/log_proof.h"
#include "audit/transcript.h"
#include "base/ed25519.h"
#include "base/sha256.h"

namespace lockstep::worker {

struct OutboxItem {
  std::string origin;  // of the log that it is for
  Digest run_id;
  uint64_t step = 0;
  std::string lease_id;  // as the coordinator gave it
  std::string envelope;  // of the attestation: a log entry
  // Whether the record that it is about has the trainer's signature: then it belongs into the log.
  bool trainer_signed = true;
  // For its openings.
  Digest nonce;
  int openings = 0;  // that the run's quorum asks for
  std::vector<audit::TranscriptLeaf> leaves;
  // Once the attestation is in the log, and until its openings are.
  std::optional<Ed25519Signature> challenge = std::nullopt;
  bool operator==(const OutboxItem&) const = default;
};

// Any thread may call.
class Outbox {
 public:
  // Makes the folder if need be. One process at a time: the daemon's lock sees to it. What of a
  // file in pending/ cannot be read is an error here, and no reason to drop it.
  static absl::StatusOr<std::unique_ptr<Outbox>> Open(const std::string& folder);

  // AlreadyExists if an attestation of this step of this run waits for this log or is in it. (One
  // that was refused is neither: under another lease the step may be attested again.)
  absl::Status Add(const OutboxItem& item);
  bool Knows(absl::string_view origin, const Digest& run_id, uint64_t step) const;

  // Numbers of the items that are to be sent, oldest first: all, or those for one log. Without a
  // look at the disk.
  std::vector<uint64_t> Pending() const;
  std::vector<uint64_t> Pending(absl::string_view origin) const;
  absl::StatusOr<OutboxItem> Read(uint64_t number) const;
  // Keeps the challenge (nullopt: none is needed) and the attestation with its proof as a receipt.
  absl::Status Acknowledge(uint64_t number, const audit::LogProof& proof,
                           const std::optional<Ed25519Signature>& challenge);
  // Nothing of it is left to send; its receipt stays.
  absl::Status Finish(uint64_t number);
  // It was about a record that was made up, and nothing of it stays: under another lease the step
  // may be attested, for the first time.
  absl::Status Drop(uint64_t number);
  // It will never be taken; it stays in refused/ with the reason.
  absl::Status Refuse(uint64_t number, absl::string_view reason);

  size_t refused() const;  // ever

 private:
  struct Waiting {
    std::string key;  // as in known_
    std::string origin;
  };

  explicit Outbox(std::string folder) : folder_(std::move(folder)) {}
  absl::Status RemoveTemporaries() const;
  absl::Status Scan();
  std::string PathOf(uint64_t number) const;
  absl::Status Remove(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  mutable absl::Mutex mutex_;
  std::map<uint64_t, Waiting> pending_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> known_ ABSL_GUARDED_BY(mutex_);  // "<run>-<step>-<log>"
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  size_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_OUTBOX_H_
