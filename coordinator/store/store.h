// SPDX-License-Identifier: Apache-2.0
//
// What the coordinator remembers besides the log, as an interface: SqliteStore is one process's,
// and a server for several coordinators could be another. The log (coordinator/log) is the public
// truth; the store has its entries to hand by run and step, and what is nobody else's business.
//
// Who may do what: any thread may read, each view in a snapshot of its own and for a short time.
// One transaction writes at a time: that is group_commit's, and nobody else calls Write.

#ifndef LOCKSTEP_COORDINATOR_STORE_STORE_H_
#define LOCKSTEP_COORDINATOR_STORE_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"
#include "coordinator/store/rows.h"

namespace lockstep::coordinator {

// Which entries; those of every run, kind or step where not said.
struct EntryQuery {
  std::optional<Digest> run;
  std::string kind;              // empty for every kind; a kind or step needs the run
  std::optional<uint64_t> step;  // needs the kind
};

// Reads of one snapshot, by one thread at a time. What is not there is NotFound. Lists are in the
// order of their key and have at most `limit` rows, those after `after`.
class StoreView {
 public:
  virtual ~StoreView() = default;

  // Entries that the store has: the next one's log index.
  virtual absl::StatusOr<uint64_t> EntryCount() = 0;
  virtual absl::StatusOr<EntryRow> Entry(uint64_t log_index) = 0;
  virtual absl::StatusOr<EntryRow> EntryByLeafHash(const Digest& leaf_hash) = 0;
  // Entries from log index `first` on, with their envelopes.
  virtual absl::StatusOr<std::vector<EntryRow>> Entries(const EntryQuery& query, uint64_t first,
                                                        int64_t limit) = 0;
  // Every entry in order, one at a time; stops at an error of `on_entry` and returns it.
  virtual absl::Status ForEachEntry(uint64_t first,
                                    absl::FunctionRef<absl::Status(const EntryRow&)> on_entry) = 0;
  // As that, without reading the envelopes.
  virtual absl::Status ForEachLeafHash(
      absl::FunctionRef<absl::Status(uint64_t log_index, const Digest& leaf_hash)> on_leaf) = 0;

  virtual absl::StatusOr<LeaseRow> Lease(absl::string_view lease_id) = 0;
  virtual absl::StatusOr<std::vector<LeaseRow>> LiveLeases() = 0;
  // Of a run, the newest first: those that ended before `unix_ms`, or then and have a lease id
  // behind `lease_id`.
  virtual absl::StatusOr<std::vector<LeaseRow>> EndedLeases(const Digest& run, int64_t unix_ms,
                                                            absl::string_view lease_id,
                                                            int64_t limit) = 0;

  virtual absl::StatusOr<RequestRow> Request(const Digest& key, absl::string_view request_id) = 0;

  virtual absl::StatusOr<std::vector<EvidenceRow>> Evidence(int64_t after, int64_t limit) = 0;
  // Of all evidence that names a key, by key and reason. Reads the whole table.
  virtual absl::StatusOr<std::vector<EvidenceCount>> CountEvidence() = 0;
  // Rows of a key with a reason.
  virtual absl::StatusOr<int64_t> CountEvidence(const Digest& key, absl::string_view reason) = 0;

  virtual absl::StatusOr<std::vector<ChallengeRow>> Challenges(const Digest& attestation) = 0;
  // Open ones that are due by now, the oldest first.
  virtual absl::StatusOr<std::vector<ChallengeRow>> OpenChallenges(int64_t now_ms) = 0;

  virtual absl::StatusOr<CanaryRow> Canary(absl::string_view lease_id) = 0;

  // States that somebody could not start from, by the log index of their announcement.
  virtual absl::StatusOr<std::vector<uint64_t>> Doubts() = 0;

  // A key's trust; a new key's where nothing is known.
  virtual absl::StatusOr<KeyTrust> Trust(const Digest& key) = 0;
  virtual absl::StatusOr<std::vector<TrustRow>> AllTrust() = 0;

  virtual absl::StatusOr<ArtifactRow> Artifact(const Digest& digest, const Digest& source) = 0;
  // What trainers say of it, in the order of their runs.
  virtual absl::StatusOr<std::vector<ArtifactRow>> ArtifactByTrainers(const Digest& digest) = 0;

  // Events after `after`, oldest first. FirstEventId tells whether some have been dropped since.
  virtual absl::StatusOr<std::vector<EventRow>> Events(int64_t after, int64_t limit) = 0;
  virtual absl::StatusOr<int64_t> FirstEventId() = 0;

  // The service time of the last transaction (service_time.h).
  virtual absl::StatusOr<int64_t> ServiceMs() = 0;
  // Entries that the log was known to have when the last transaction was written.
  virtual absl::StatusOr<uint64_t> LogSize() = 0;
};

// Writes, all or none. Not for several threads at once.
class StoreTransaction {
 public:
  // Without Commit, nothing was written.
  virtual ~StoreTransaction() = default;

  // Sees what this transaction wrote.
  virtual StoreView& view() = 0;

  // Appends an entry at the next log index, which it returns. Of `entry`, log_index and leaf_hash
  // are not looked at. AlreadyExists if an entry has these very bytes; InvalidArgument if they are
  // none or more than kEntryBytesMax.
  virtual absl::StatusOr<uint64_t> AppendEntry(const EntryRow& entry) = 0;

  // Put: inserts, or replaces the row with the same key.
  virtual absl::Status PutLease(const LeaseRow& lease) = 0;
  virtual absl::Status PutRequest(const RequestRow& request) = 0;
  virtual absl::Status DropRequests(int64_t answered_before_ms) = 0;
  // The id; the same envelope for the same reason is kept once, under its first id.
  virtual absl::StatusOr<int64_t> AddEvidence(const EvidenceRow& evidence) = 0;
  // All but the newest `keep`.
  virtual absl::Status DropEvidence(int64_t keep) = 0;
  // Leases that have ended, with their canaries, and challenges that are not open, whose bound or
  // due time was before then; some at a time.
  virtual absl::Status DropEnded(int64_t before_ms) = 0;
  virtual absl::Status PutChallenge(const ChallengeRow& challenge) = 0;
  virtual absl::Status PutCanary(const CanaryRow& canary) = 0;
  virtual absl::Status PutDoubt(uint64_t log_index) = 0;
  virtual absl::Status PutTrust(const Digest& key, const KeyTrust& trust) = 0;
  // In the place of what the source said of it before.
  virtual absl::Status PutArtifact(const ArtifactRow& artifact) = 0;
  virtual absl::StatusOr<int64_t> AddEvent(const EventRow& event) = 0;
  // All but the newest `keep`.
  virtual absl::Status DropEvents(int64_t keep) = 0;
  virtual absl::Status SetServiceMs(int64_t ms) = 0;
  virtual absl::Status SetLogSize(uint64_t size) = 0;

  // Runs `work`; if it gives an error, what it wrote is undone, and what was written before stays.
  // Not within another.
  virtual absl::Status Nested(absl::FunctionRef<absl::Status()> work) = 0;

  // OK unless something happened after which this store must not be written on (a full disk, an
  // error of input or output, damage).
  virtual absl::Status health() const = 0;

  // On the disk when OK. Otherwise it is not known whether it is: do not go on, start anew. Called
  // once, as the last thing.
  virtual absl::Status Commit() = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual absl::StatusOr<std::unique_ptr<StoreView>> Read() = 0;
  // Unavailable if somebody else holds the store, and nothing has happened. The one before must be
  // gone.
  virtual absl::StatusOr<std::unique_ptr<StoreTransaction>> Write() = 0;
  // A copy in one snapshot, as `path`, which must not exist; on the disk when OK. Any thread, while
  // others write.
  virtual absl::Status Backup(const std::string& path) = 0;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_STORE_STORE_H_
