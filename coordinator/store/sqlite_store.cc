// SPDX-License-Identifier: Apache-2.0
//
// The pool of readers, and the writes of the store by SQL. See sqlite_store.h.

#include "coordinator/store/sqlite_store.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/logging.h"
#include "base/merkle.h"
#include "base/status.h"
#include "coordinator/store/migrations.h"
#include "coordinator/store/sqlite_view.h"

namespace lockstep::coordinator {
namespace {

// Readers kept when nobody reads.
constexpr size_t kReadersIdleMax = 8;

// Each second, so many rows are dropped at most.
constexpr int64_t kDroppedAtOnce = 1'000;
#define LOCKSTEP_ENDED_LEASES                                          \
  "SELECT lease_id FROM leases WHERE state <> 'live' AND bound_ms < ?" \
  " ORDER BY bound_ms, lease_id LIMIT ?"

SqliteValue Value(const std::optional<Digest>& digest) {
  return digest.has_value() ? SqliteValue(*digest) : SqliteValue(std::nullopt);
}
SqliteValue Value(const std::optional<int64_t>& integer) {
  return integer.has_value() ? SqliteValue(*integer) : SqliteValue(std::nullopt);
}

// Steps, sizes and indices as SQLite's signed integers.
absl::StatusOr<int64_t> Signed(uint64_t value, absl::string_view what) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", value, " is more than the store holds, 2^63 - 1"));
  }
  return static_cast<int64_t>(value);
}

class SqliteTransaction final : public StoreTransaction {
 public:
  explicit SqliteTransaction(SqliteDatabase& database) : database_(database), view_(database) {}

  ~SqliteTransaction() override {
    if (!committed_ && database_.InTransaction()) database_.Execute("ROLLBACK").IgnoreError();
  }

  absl::Status Begin() {
    LOCKSTEP_RETURN_IF_ERROR(database_.Execute("BEGIN IMMEDIATE"));
    LOCKSTEP_ASSIGN_OR_RETURN(entries_, view_.EntryCount());
    return absl::OkStatus();
  }

  StoreView& view() override { return view_; }

  absl::StatusOr<uint64_t> AppendEntry(const EntryRow& entry) override {
    if (entry.envelope.empty() || entry.envelope.size() > kEntryBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat("an entry has ", entry.envelope.size(),
                                                     " bytes, expected 1 to ", kEntryBytesMax));
    }
    SqliteValue step = std::nullopt;
    if (entry.step.has_value()) {
      LOCKSTEP_ASSIGN_OR_RETURN(step, Signed(*entry.step, "step"));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t log_index, Signed(entries_, "log index"));
    const Digest leaf_hash = MerkleLeafHash(AsBytes(entry.envelope));
    LOCKSTEP_RETURN_IF_ERROR(
        database_.Run("INSERT INTO entries"
                      " (log_index, kind, run, step, leaf_hash, envelope, received_unix_ms)"
                      " VALUES (?, ?, ?, ?, ?, ?, ?)",
                      {log_index, SqliteValue::Text(entry.kind), Value(entry.run), step, leaf_hash,
                       SqliteValue::Bytes(entry.envelope), Value(entry.received_unix_ms)}));
    return entries_++;
  }

  absl::Status PutLease(const LeaseRow& lease) override {
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t first, Signed(lease.first_step, "step"));
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t end, Signed(lease.end_step, "step"));
    return database_.Run(
        "INSERT INTO leases (lease_id, key, operator_key, address, attempt_id, nonce, run,"
        " first_step, end_step, state, granted_ms, heartbeat_ms, expires_ms, bound_ms,"
        " granted_unix_ms, ended_unix_ms, detail)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (lease_id) DO UPDATE SET key = excluded.key,"
        " operator_key = excluded.operator_key, address = excluded.address,"
        " attempt_id = excluded.attempt_id, nonce = excluded.nonce, run = excluded.run,"
        " first_step = excluded.first_step, end_step = excluded.end_step, state = excluded.state,"
        " granted_ms = excluded.granted_ms, heartbeat_ms = excluded.heartbeat_ms,"
        " expires_ms = excluded.expires_ms, bound_ms = excluded.bound_ms,"
        " granted_unix_ms = excluded.granted_unix_ms,"
        " ended_unix_ms = excluded.ended_unix_ms, detail = excluded.detail",
        {SqliteValue::Text(lease.lease_id), lease.key, lease.operator_key,
         SqliteValue::Text(lease.address), SqliteValue::Text(lease.attempt_id), lease.nonce,
         lease.run, first, end, SqliteValue::Text(StateName(lease.state)), lease.granted_ms,
         lease.heartbeat_ms, lease.expires_ms, lease.bound_ms, lease.granted_unix_ms,
         lease.ended_unix_ms, SqliteValue::Text(lease.detail)});
  }

  absl::Status PutRequest(const RequestRow& request) override {
    return database_.Run(
        "INSERT OR REPLACE INTO requests (key, request_id, fingerprint, response, answered_ms)"
        " VALUES (?, ?, ?, ?, ?)",
        {request.key, SqliteValue::Text(request.request_id), request.fingerprint,
         SqliteValue::Bytes(request.response), request.answered_ms});
  }

  absl::Status DropRequests(int64_t answered_before_ms) override {
    return database_.Run("DELETE FROM requests WHERE answered_ms < ?", {answered_before_ms});
  }

  absl::StatusOr<int64_t> AddEvidence(const EvidenceRow& evidence) override {
    SqliteValue step = std::nullopt;
    if (evidence.step.has_value()) {
      LOCKSTEP_ASSIGN_OR_RETURN(step, Signed(*evidence.step, "step"));
    }
    const Digest digest = Sha256(AsBytes(evidence.envelope));
    const SqliteValue reason = SqliteValue::Text(evidence.reason);
    LOCKSTEP_RETURN_IF_ERROR(database_.Run(
        "INSERT INTO evidence (reason, run, step, key, digest, envelope, received_unix_ms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (digest, reason) DO NOTHING",
        {reason, Value(evidence.run), step, Value(evidence.key), digest,
         SqliteValue::Bytes(evidence.envelope), evidence.received_unix_ms}));
    int64_t id = 0;
    LOCKSTEP_RETURN_IF_ERROR(
        database_.Run("SELECT evidence_id FROM evidence WHERE digest = ? AND reason = ?",
                      {digest, reason}, [&](const SqliteRow& row) { id = row.Integer(0); }));
    return id;
  }

  absl::Status DropEvidence(int64_t keep) override {
    return database_.Run(
        "DELETE FROM evidence WHERE evidence_id <= (SELECT max(evidence_id) FROM evidence) - ?",
        {keep});
  }

  absl::Status DropEnded(int64_t before_ms) override {
    LOCKSTEP_RETURN_IF_ERROR(
        database_.Run("DELETE FROM canaries WHERE lease_id IN (" LOCKSTEP_ENDED_LEASES ")",
                      {before_ms, kDroppedAtOnce}));
    LOCKSTEP_RETURN_IF_ERROR(
        database_.Run("DELETE FROM leases WHERE lease_id IN (" LOCKSTEP_ENDED_LEASES ")",
                      {before_ms, kDroppedAtOnce}));
    return database_.Run(
        "DELETE FROM challenges WHERE (attestation, leaf_index) IN (SELECT attestation, leaf_index"
        " FROM challenges WHERE state <> 'open' AND due_ms < ? ORDER BY due_ms LIMIT ?)",
        {before_ms, kDroppedAtOnce});
  }

  absl::Status PutChallenge(const ChallengeRow& challenge) override {
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t leaf, Signed(challenge.leaf_index, "leaf"));
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t step, Signed(challenge.step, "step"));
    return database_.Run(
        "INSERT OR REPLACE INTO challenges"
        " (attestation, leaf_index, run, step, key, state, asked_ms, due_ms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        {challenge.attestation, leaf, challenge.run, step, challenge.key,
         SqliteValue::Text(StateName(challenge.state)), challenge.asked_ms, challenge.due_ms});
  }

  absl::Status PutCanary(const CanaryRow& canary) override {
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t step, Signed(canary.step, "step"));
    return database_.Run(
        "INSERT OR REPLACE INTO canaries (lease_id, key, run, step, false_record, state)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        {SqliteValue::Text(canary.lease_id), canary.key, canary.run, step,
         SqliteValue::Bytes(canary.false_record), SqliteValue::Text(StateName(canary.state))});
  }

  absl::Status PutDoubt(uint64_t log_index) override {
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t index, Signed(log_index, "log index"));
    return database_.Run("INSERT OR IGNORE INTO doubts (log_index) VALUES (?)", {index});
  }

  absl::Status PutTrust(const Digest& key, const KeyTrust& trust) override {
    return database_.Run(
        "INSERT OR REPLACE INTO trust (key, valid_in_a_row, valid, invalid, expired, canaries,"
        " failures_in_a_row, quota_steps, not_before_ms, undone_in_a_row)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        {key, trust.valid_in_a_row, trust.valid, trust.invalid, trust.expired, trust.canaries,
         trust.failures_in_a_row, trust.quota_steps, trust.not_before_ms, trust.undone_in_a_row});
  }

  absl::Status PutArtifact(const ArtifactRow& artifact) override {
    return database_.Run(
        "INSERT OR REPLACE INTO artifact_words (digest, source, by_trainer, bytes, mirrors)"
        " VALUES (?, ?, ?, ?, ?)",
        {artifact.digest, artifact.source, int64_t{artifact.by_trainer}, artifact.bytes,
         SqliteValue::Text(absl::StrJoin(artifact.mirrors, "\n"))});
  }

  absl::StatusOr<int64_t> AddEvent(const EventRow& event) override {
    LOCKSTEP_RETURN_IF_ERROR(
        database_.Run("INSERT INTO events (kind, run, data, at_unix_ms) VALUES (?, ?, ?, ?)",
                      {SqliteValue::Text(event.kind), Value(event.run),
                       SqliteValue::Text(event.data), event.at_unix_ms}));
    return database_.LastInsertId();
  }

  absl::Status DropEvents(int64_t keep) override {
    return database_.Run(
        "DELETE FROM events WHERE event_id <= (SELECT max(event_id) FROM events) - ?", {keep});
  }

  absl::Status SetServiceMs(int64_t ms) override {
    return database_.Run("UPDATE state SET value = max(value, ?) WHERE name = 'service_ms'", {ms});
  }

  absl::Status SetLogSize(uint64_t size) override {
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t value, Signed(size, "log size"));
    return database_.Run("UPDATE state SET value = ? WHERE name = 'log_size'", {value});
  }

  absl::Status Nested(absl::FunctionRef<absl::Status()> work) override {
    const uint64_t entries = entries_;
    LOCKSTEP_RETURN_IF_ERROR(database_.Execute("SAVEPOINT nested"));
    absl::Status status = work();
    if (status.ok()) return database_.Execute("RELEASE nested");
    entries_ = entries;
    // After some errors SQLite has undone everything by itself; health() says so.
    if (database_.InTransaction()) {
      const absl::Status undone = database_.Execute("ROLLBACK TO nested; RELEASE nested");
      if (!undone.ok() && undo_failed_.ok()) undo_failed_ = undone;
    }
    return status;
  }

  absl::Status health() const override {
    LOCKSTEP_RETURN_IF_ERROR(database_.health());
    LOCKSTEP_RETURN_IF_ERROR(undo_failed_);
    if (!committed_ && !database_.InTransaction()) {
      return absl::InternalError(absl::StrCat(database_.path(), ": the transaction was undone"));
    }
    return absl::OkStatus();
  }

  absl::Status Commit() override {
    LOCKSTEP_RETURN_IF_ERROR(health());
    LOCKSTEP_RETURN_IF_ERROR(database_.Execute("COMMIT"));
    committed_ = true;
    return absl::OkStatus();
  }

 private:
  SqliteDatabase& database_;
  SqliteView view_;
  uint64_t entries_ = 0;
  absl::Status undo_failed_;
  bool committed_ = false;
};

}  // namespace

// A view that has a pooled connection to itself.
class SqliteStore::Reader final : public SqliteView {
 public:
  Reader(SqliteStore& store, std::unique_ptr<SqliteDatabase> database)
      : SqliteView(*database), store_(store), database_(std::move(database)) {}
  ~Reader() override {
    if (database_->Execute("COMMIT").ok()) store_.GiveBack(std::move(database_));
  }

 private:
  SqliteStore& store_;
  std::unique_ptr<SqliteDatabase> database_;
};

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& path,
                                                               int busy_ms) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> writer,
                            SqliteDatabase::Open(path, SqliteAccess::kWrite, busy_ms));
  LOCKSTEP_RETURN_IF_ERROR(writer->Migrate(kStoreApplicationId, StoreMigrations()));
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(writer), busy_ms));
}

absl::StatusOr<std::unique_ptr<SqliteDatabase>> SqliteStore::TakeReader() {
  {
    const absl::MutexLock lock(&mutex_);
    if (!readers_.empty()) {
      std::unique_ptr<SqliteDatabase> reader = std::move(readers_.back());
      readers_.pop_back();
      return reader;
    }
  }
  return SqliteDatabase::Open(writer_->path(), SqliteAccess::kRead, busy_ms_);
}

void SqliteStore::GiveBack(std::unique_ptr<SqliteDatabase> reader) {
  const absl::MutexLock lock(&mutex_);
  if (readers_.size() < kReadersIdleMax && reader->health().ok()) {
    readers_.push_back(std::move(reader));
  }
}

absl::StatusOr<std::unique_ptr<StoreView>> SqliteStore::Read() {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> reader, TakeReader());
  LOCKSTEP_RETURN_IF_ERROR(reader->Execute("BEGIN"));
  // The snapshot is that of the first read, and a caller means the one of now.
  LOCKSTEP_RETURN_IF_ERROR(
      reader->Integer("SELECT value FROM state WHERE name = 'log_size'").status());
  return std::make_unique<Reader>(*this, std::move(reader));
}

absl::StatusOr<std::unique_ptr<StoreTransaction>> SqliteStore::Write() {
  LOCKSTEP_CHECK(!writer_->InTransaction(), "two transactions write at a time");
  LOCKSTEP_RETURN_IF_ERROR(writer_->health());
  auto transaction = std::make_unique<SqliteTransaction>(*writer_);
  LOCKSTEP_RETURN_IF_ERROR(transaction->Begin());
  return transaction;
}

absl::Status SqliteStore::Backup(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> reader, TakeReader());
  absl::Status status = reader->Backup(path);
  GiveBack(std::move(reader));
  return status;
}

}  // namespace lockstep::coordinator
