// SPDX-License-Identifier: Apache-2.0
//
// What `lockstep verify` does: reads a log from its first entry to its last, and says what it is
// worth to somebody who trusts no server. Needs neither engine nor network. What a match proves and
// what it does not: docs/attestation.md.
#ifndef LOCKSTEP_AUDIT_LEDGER_VERIFY_LOG_H_
#define LOCKSTEP_AUDIT_LEDGER_VERIFY_LOG_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "audit/evidence/log_entry.h"
#include "audit/evidence/quorum.h"
#include "audit/evidence/run_registration.h"
#include "audit/ledger/ledger.h"
#include "audit/ledger/log_source.h"
#include "audit/ledger/receipt.h"
#include "audit/ledger/refusal.h"
#include "audit/log/log_checkpoint.h"
#include "audit/log/signed_note.h"
#include "base/thread_pool.h"

namespace lockstep::audit {

// A head of the log that was seen before, as a signed note.
struct KnownHead {
  std::string name;  // for messages
  std::string note;
  // From a collection that may hold other logs' too: one that names another log is passed over.
  bool may_be_of_another_log = false;
};

// An entry that the log has promised to hold.
struct KnownReceipt {
  std::string name;
  Receipt receipt;
  bool may_be_of_another_log = false;
};

struct VerifyOptions {
  // The log that is meant. Without it, the key that the source itself names: then the log's
  // signatures show that it is of one piece, and not whose it is.
  std::optional<NoteKey> log_key;
  // What the steps of a run are held to. Without it, each run by its own quorum, and all operators.
  std::function<VerifierPolicy(const RunRegistration& run)> policy = nullptr;
  std::vector<KnownHead> known_checkpoints;
  std::vector<KnownReceipt> receipts;
};

// Something that should not be in a log, or should be and is not.
struct Finding {
  enum class Kind : uint8_t {
    kSignature,        // the log's key has not signed this head
    kRoot,             // the entries are not those that it signed for
    kRefusedEntry,     // an entry that the ledger does not take; it counts for nothing
    kKnownCheckpoint,  // the log does not contain a head that it signed before
    kReceipt,          // an entry that it promised to hold is not there
    kTile,             // a tile of hashes is not of these entries (hash_tiles.h, not VerifyLog)
    kNewer             // a head or receipt is of a later log than this one: get a newer copy
  };
  Kind kind = Kind::kRefusedEntry;
  std::string message;
};

// A step in question, and what lies under it.
struct DisputedStep {
  uint64_t step = 0;
  Digest published;                 // SHA-256 of the published record
  std::vector<Digest> others;       // of each other record: replayed, or the trainer's second
  std::vector<uint64_t> evidence;   // log indices of the entries that hold them
  std::vector<std::string> places;  // where a replay first differed, a stranger's words
};

struct RunReport {
  Digest run_id;
  std::string name;
  Ed25519PublicKey trainer_key;
  uint64_t first_step = 0;
  uint64_t steps = 0;                          // with a record: the chain is continuous over them
  Digest chain;                                // after the last: what stands for the whole run
  Quorum quorum;                               // that the states below are by
  std::array<uint64_t, kStepStates> states{};  // steps, by StepState
  std::vector<StepState> step_states;          // [steps]
  // Attestations, by what they are worth under the policy.
  uint64_t matches = 0;
  uint64_t awaiting_openings = 0;
  uint64_t mismatches = 0;
  uint64_t voided = 0;
  uint64_t attestations = 0;           // all
  std::vector<DisputedStep> disputed;  // the first kDisputedListed
};
inline constexpr size_t kDisputedListed = 1000;
inline constexpr size_t kRefusedListed = 1000;

struct LogReport {
  NoteKey log_key;
  bool log_key_given = false;
  LogCheckpoint checkpoint;
  std::array<uint64_t, kEntryKinds> entries{};  // accepted, by EntryKind
  uint64_t refused = 0;
  // Known heads and receipts: that the log was held to, and that are of other logs.
  uint64_t promises = 0;
  uint64_t promises_of_other_logs = 0;
  uint64_t operators = 0;
  uint64_t worker_keys = 0;
  uint64_t ended_keys = 0;  // rotated away or revoked
  // Of refused entries the first kRefusedListed, after all others: whoever fills a log with such
  // entries hides nothing else.
  std::vector<Finding> findings;
  std::vector<RunReport> runs;     // in the order of the log
  std::unique_ptr<Ledger> ledger;  // for any further question

  // Nothing was found amiss with the log itself. Disputed steps are results, and not this.
  bool IsSound() const { return findings.empty(); }
};

// Reads the source to its end. The status is of the source: DataLoss if it is no log, or one in
// pieces; InvalidArgument if no key is given and the source names none. What is wrong with a log
// that can be read is a finding. Signatures are verified on the pool's threads.
absl::StatusOr<LogReport> VerifyLog(LogSource& source, const VerifyOptions& options,
                                    ThreadPool& pool);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LEDGER_VERIFY_LOG_H_
