// SPDX-License-Identifier: Apache-2.0
//
// Reads of the store by SQL. See sqlite_view.h.

#include "coordinator/store/sqlite_view.h"

#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace lockstep::coordinator {
namespace {

// In the order of the enums.
constexpr std::array<absl::string_view, 4> kChallengeStates = {"open", "answered", "failed",
                                                               "expired"};
constexpr std::array<absl::string_view, 4> kCanaryStates = {"open", "seen", "missed", "expired"};

// The tables' CHECKs allow no other name.
template <typename State, size_t n>
State StateOf(const std::array<absl::string_view, n>& names, absl::string_view name) {
  size_t i = 0;
  while (i + 1 < names.size() && names[i] != name) ++i;
  return static_cast<State>(i);
}

std::optional<Digest> OptionalDigest(const SqliteRow& row, int column) {
  if (row.IsNull(column)) return std::nullopt;
  return row.AsDigest(column);
}

std::optional<uint64_t> OptionalStep(const SqliteRow& row, int column) {
  if (row.IsNull(column)) return std::nullopt;
  return static_cast<uint64_t>(row.Integer(column));
}

// Steps and log indices as SQLite's signed integers; none that exists is larger.
int64_t Signed(uint64_t value) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return static_cast<int64_t>(value < kMost ? value : kMost);
}

#define LOCKSTEP_ENTRY_COLUMNS "log_index, kind, run, step, leaf_hash, envelope, received_unix_ms"
EntryRow MakeEntry(const SqliteRow& row) {
  return {
      .log_index = static_cast<uint64_t>(row.Integer(0)),
      .kind = row.Bytes(1),
      .run = OptionalDigest(row, 2),
      .step = OptionalStep(row, 3),
      .leaf_hash = row.AsDigest(4),
      .envelope = row.Bytes(5),
      .received_unix_ms = row.IsNull(6) ? std::nullopt : std::optional<int64_t>(row.Integer(6))};
}

#define LOCKSTEP_LEASE_COLUMNS                                                                  \
  "lease_id, key, operator_key, address, attempt_id, nonce, run, first_step, end_step, state, " \
  "granted_ms, heartbeat_ms, expires_ms, bound_ms, granted_unix_ms, ended_unix_ms, detail"
LeaseRow MakeLease(const SqliteRow& row) {
  return {.lease_id = row.Bytes(0),
          .key = row.AsDigest(1),
          .operator_key = row.AsDigest(2),
          .address = row.Bytes(3),
          .attempt_id = row.Bytes(4),
          .nonce = row.AsDigest(5),
          .run = row.AsDigest(6),
          .first_step = static_cast<uint64_t>(row.Integer(7)),
          .end_step = static_cast<uint64_t>(row.Integer(8)),
          .state = StateOf<LeaseState>(kLeaseStates, row.Bytes(9)),
          .granted_ms = row.Integer(10),
          .heartbeat_ms = row.Integer(11),
          .expires_ms = row.Integer(12),
          .bound_ms = row.Integer(13),
          .granted_unix_ms = row.Integer(14),
          .ended_unix_ms = row.Integer(15),
          .detail = row.Bytes(16)};
}

RequestRow MakeRequest(const SqliteRow& row) {
  return {.key = row.AsDigest(0),
          .request_id = row.Bytes(1),
          .fingerprint = row.AsDigest(2),
          .response = row.Bytes(3),
          .answered_ms = row.Integer(4)};
}

EvidenceRow MakeEvidence(const SqliteRow& row) {
  return {.evidence_id = row.Integer(0),
          .reason = row.Bytes(1),
          .run = OptionalDigest(row, 2),
          .step = OptionalStep(row, 3),
          .key = OptionalDigest(row, 4),
          .envelope = row.Bytes(5),
          .received_unix_ms = row.Integer(6)};
}

EvidenceCount MakeEvidenceCount(const SqliteRow& row) {
  return {.key = row.AsDigest(0),
          .reason = row.Bytes(1),
          .count = row.Integer(2),
          .last_id = row.Integer(3)};
}

#define LOCKSTEP_CHALLENGE_COLUMNS \
  "attestation, leaf_index, run, step, key, state, asked_ms, due_ms"
ChallengeRow MakeChallenge(const SqliteRow& row) {
  return {.attestation = row.AsDigest(0),
          .leaf_index = static_cast<uint64_t>(row.Integer(1)),
          .run = row.AsDigest(2),
          .step = static_cast<uint64_t>(row.Integer(3)),
          .key = row.AsDigest(4),
          .state = StateOf<ChallengeState>(kChallengeStates, row.Bytes(5)),
          .asked_ms = row.Integer(6),
          .due_ms = row.Integer(7)};
}

CanaryRow MakeCanary(const SqliteRow& row) {
  return {.lease_id = row.Bytes(0),
          .key = row.AsDigest(1),
          .run = row.AsDigest(2),
          .step = static_cast<uint64_t>(row.Integer(3)),
          .false_record = row.Bytes(4),
          .state = StateOf<CanaryState>(kCanaryStates, row.Bytes(5))};
}

#define LOCKSTEP_TRUST_COLUMNS                                                               \
  "key, valid_in_a_row, valid, invalid, expired, canaries, failures_in_a_row, quota_steps, " \
  "not_before_ms, undone_in_a_row"
TrustRow MakeTrust(const SqliteRow& row) {
  return {.key = row.AsDigest(0),
          .trust = {.valid_in_a_row = row.Integer(1),
                    .valid = row.Integer(2),
                    .invalid = row.Integer(3),
                    .expired = row.Integer(4),
                    .canaries = row.Integer(5),
                    .failures_in_a_row = row.Integer(6),
                    .quota_steps = row.Integer(7),
                    .not_before_ms = row.Integer(8),
                    .undone_in_a_row = row.Integer(9)}};
}

uint64_t MakeDoubt(const SqliteRow& row) { return static_cast<uint64_t>(row.Integer(0)); }

#define LOCKSTEP_ARTIFACT_COLUMNS "digest, source, by_trainer, bytes, mirrors"
ArtifactRow MakeArtifact(const SqliteRow& row) {
  return {.digest = row.AsDigest(0),
          .source = row.AsDigest(1),
          .by_trainer = row.Integer(2) != 0,
          .bytes = row.Integer(3),
          .mirrors = absl::StrSplit(row.Bytes(4), '\n', absl::SkipEmpty())};
}

EventRow MakeEvent(const SqliteRow& row) {
  return {.event_id = row.Integer(0),
          .kind = row.Bytes(1),
          .run = OptionalDigest(row, 2),
          .data = row.Bytes(3),
          .at_unix_ms = row.Integer(4)};
}

}  // namespace

absl::string_view StateName(LeaseState state) { return kLeaseStates[static_cast<size_t>(state)]; }
absl::string_view StateName(ChallengeState state) {
  return kChallengeStates[static_cast<size_t>(state)];
}
absl::string_view StateName(CanaryState state) { return kCanaryStates[static_cast<size_t>(state)]; }

template <typename Row>
absl::StatusOr<std::vector<Row>> SqliteView::All(const char* sql, Values values,
                                                 Row (*make)(const SqliteRow&)) {
  std::vector<Row> rows;
  LOCKSTEP_RETURN_IF_ERROR(
      database_.Run(sql, values, [&](const SqliteRow& row) { rows.push_back(make(row)); }));
  return rows;
}

template <typename Row>
absl::StatusOr<Row> SqliteView::One(const char* sql, Values values, Row (*make)(const SqliteRow&),
                                    absl::string_view what) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Row> rows, All(sql, values, make));
  if (rows.empty()) return absl::NotFoundError(absl::StrCat("the store has no ", what));
  return std::move(rows.front());
}

absl::StatusOr<uint64_t> SqliteView::EntryCount() {
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t last,
                            database_.Integer("SELECT ifnull(max(log_index), -1) FROM entries"));
  return static_cast<uint64_t>(last + 1);
}

absl::StatusOr<EntryRow> SqliteView::Entry(uint64_t log_index) {
  return One("SELECT " LOCKSTEP_ENTRY_COLUMNS " FROM entries WHERE log_index = ?",
             {Signed(log_index)}, &MakeEntry, absl::StrCat("entry ", log_index));
}

absl::StatusOr<EntryRow> SqliteView::EntryByLeafHash(const Digest& leaf_hash) {
  return One("SELECT " LOCKSTEP_ENTRY_COLUMNS " FROM entries WHERE leaf_hash = ?", {leaf_hash},
             &MakeEntry, absl::StrCat("entry with leaf hash ", leaf_hash.ToHex()));
}

absl::StatusOr<std::vector<EntryRow>> SqliteView::Entries(const EntryQuery& query, uint64_t first,
                                                          int64_t limit) {
  const int64_t from = Signed(first);
  if ((query.step.has_value() && query.kind.empty()) ||
      (!query.kind.empty() && !query.run.has_value())) {
    return absl::InvalidArgumentError(
        "a query for a step names its kind, and one for a kind its run");
  }
  if (!query.run.has_value()) {
    return All("SELECT " LOCKSTEP_ENTRY_COLUMNS
               " FROM entries WHERE log_index >= ? ORDER BY log_index LIMIT ?",
               {from, limit}, &MakeEntry);
  }
  if (query.kind.empty()) {
    return All("SELECT " LOCKSTEP_ENTRY_COLUMNS
               " FROM entries WHERE run = ? AND log_index >= ? ORDER BY log_index LIMIT ?",
               {*query.run, from, limit}, &MakeEntry);
  }
  const SqliteValue kind = SqliteValue::Text(query.kind);
  if (!query.step.has_value()) {
    return All("SELECT " LOCKSTEP_ENTRY_COLUMNS
               " FROM entries WHERE run = ? AND kind = ? AND log_index >= ?"
               " ORDER BY log_index LIMIT ?",
               {*query.run, kind, from, limit}, &MakeEntry);
  }
  return All("SELECT " LOCKSTEP_ENTRY_COLUMNS
             " FROM entries WHERE run = ? AND kind = ? AND step = ? AND log_index >= ?"
             " ORDER BY log_index LIMIT ?",
             {*query.run, kind, Signed(*query.step), from, limit}, &MakeEntry);
}

absl::Status SqliteView::ForEachEntry(uint64_t first,
                                      absl::FunctionRef<absl::Status(const EntryRow&)> on_entry) {
  constexpr int64_t kAtOnce = 256;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<EntryRow> rows, Entries({}, first, kAtOnce));
    for (const EntryRow& row : rows) LOCKSTEP_RETURN_IF_ERROR(on_entry(row));
    if (rows.empty()) return absl::OkStatus();
    first = rows.back().log_index + 1;
  }
}

absl::Status SqliteView::ForEachLeafHash(
    absl::FunctionRef<absl::Status(uint64_t, const Digest&)> on_leaf) {
  absl::Status status;
  LOCKSTEP_RETURN_IF_ERROR(database_.Run(
      "SELECT log_index, leaf_hash FROM entries ORDER BY log_index", {}, [&](const SqliteRow& row) {
        if (status.ok()) {
          status = on_leaf(static_cast<uint64_t>(row.Integer(0)), row.AsDigest(1));
        }
      }));
  return status;
}

absl::StatusOr<LeaseRow> SqliteView::Lease(absl::string_view lease_id) {
  return One("SELECT " LOCKSTEP_LEASE_COLUMNS " FROM leases WHERE lease_id = ?",
             {SqliteValue::Text(lease_id)}, &MakeLease, "such lease");
}

absl::StatusOr<std::vector<LeaseRow>> SqliteView::LiveLeases() {
  return All("SELECT " LOCKSTEP_LEASE_COLUMNS " FROM leases WHERE state = 'live' ORDER BY lease_id",
             {}, &MakeLease);
}

absl::StatusOr<std::vector<LeaseRow>> SqliteView::EndedLeases(const Digest& run, int64_t unix_ms,
                                                              absl::string_view lease_id,
                                                              int64_t limit) {
  return All("SELECT " LOCKSTEP_LEASE_COLUMNS
             " FROM leases WHERE run = ? AND state <> 'live' AND ended_unix_ms <= ?"
             " AND (ended_unix_ms < ? OR lease_id > ?)"
             " ORDER BY ended_unix_ms DESC, lease_id LIMIT ?",
             {run, unix_ms, unix_ms, SqliteValue::Text(lease_id), limit}, &MakeLease);
}

absl::StatusOr<RequestRow> SqliteView::Request(const Digest& key, absl::string_view request_id) {
  return One(
      "SELECT key, request_id, fingerprint, response, answered_ms FROM requests"
      " WHERE key = ? AND request_id = ?",
      {key, SqliteValue::Text(request_id)}, &MakeRequest, "such request");
}

absl::StatusOr<std::vector<EvidenceRow>> SqliteView::Evidence(int64_t after, int64_t limit) {
  return All(
      "SELECT evidence_id, reason, run, step, key, envelope, received_unix_ms FROM evidence"
      " WHERE evidence_id > ? ORDER BY evidence_id LIMIT ?",
      {after, limit}, &MakeEvidence);
}

absl::StatusOr<std::vector<EvidenceCount>> SqliteView::CountEvidence() {
  return All(
      "SELECT key, reason, count(*), max(evidence_id) FROM evidence WHERE key IS NOT NULL"
      " GROUP BY key, reason ORDER BY key, reason",
      {}, &MakeEvidenceCount);
}

absl::StatusOr<int64_t> SqliteView::CountEvidence(const Digest& key, absl::string_view reason) {
  int64_t count = 0;
  LOCKSTEP_RETURN_IF_ERROR(database_.Run(
      "SELECT count(*) FROM evidence WHERE key = ? AND reason = ?",
      {key, SqliteValue::Text(reason)}, [&](const SqliteRow& row) { count = row.Integer(0); }));
  return count;
}

absl::StatusOr<std::vector<ChallengeRow>> SqliteView::Challenges(const Digest& attestation) {
  return All("SELECT " LOCKSTEP_CHALLENGE_COLUMNS
             " FROM challenges WHERE attestation = ? ORDER BY leaf_index",
             {attestation}, &MakeChallenge);
}

absl::StatusOr<std::vector<ChallengeRow>> SqliteView::OpenChallenges(int64_t now_ms) {
  return All("SELECT " LOCKSTEP_CHALLENGE_COLUMNS
             " FROM challenges WHERE state = 'open' AND due_ms <= ?"
             " ORDER BY due_ms, attestation, leaf_index",
             {now_ms}, &MakeChallenge);
}

absl::StatusOr<CanaryRow> SqliteView::Canary(absl::string_view lease_id) {
  return One(
      "SELECT lease_id, key, run, step, false_record, state FROM canaries WHERE lease_id = ?",
      {SqliteValue::Text(lease_id)}, &MakeCanary, "canary in such a lease");
}

absl::StatusOr<std::vector<uint64_t>> SqliteView::Doubts() {
  return All("SELECT log_index FROM doubts ORDER BY log_index", {}, &MakeDoubt);
}

absl::StatusOr<KeyTrust> SqliteView::Trust(const Digest& key) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<TrustRow> rows,
      All("SELECT " LOCKSTEP_TRUST_COLUMNS " FROM trust WHERE key = ?", {key}, &MakeTrust));
  return rows.empty() ? KeyTrust{} : rows.front().trust;
}

absl::StatusOr<std::vector<TrustRow>> SqliteView::AllTrust() {
  return All("SELECT " LOCKSTEP_TRUST_COLUMNS " FROM trust ORDER BY key", {}, &MakeTrust);
}

absl::StatusOr<ArtifactRow> SqliteView::Artifact(const Digest& digest, const Digest& source) {
  return One("SELECT " LOCKSTEP_ARTIFACT_COLUMNS
             " FROM artifact_words WHERE digest = ? AND source = ?",
             {digest, source}, &MakeArtifact, absl::StrCat("artifact ", digest.ToHex()));
}

absl::StatusOr<std::vector<ArtifactRow>> SqliteView::ArtifactByTrainers(const Digest& digest) {
  return All("SELECT " LOCKSTEP_ARTIFACT_COLUMNS
             " FROM artifact_words WHERE digest = ? AND by_trainer = 1 ORDER BY source",
             {digest}, &MakeArtifact);
}

absl::StatusOr<std::vector<EventRow>> SqliteView::Events(int64_t after, int64_t limit) {
  return All(
      "SELECT event_id, kind, run, data, at_unix_ms FROM events"
      " WHERE event_id > ? ORDER BY event_id LIMIT ?",
      {after, limit}, &MakeEvent);
}

absl::StatusOr<int64_t> SqliteView::FirstEventId() {
  return database_.Integer("SELECT ifnull(min(event_id), 0) FROM events");
}

absl::StatusOr<int64_t> SqliteView::ServiceMs() {
  return database_.Integer("SELECT value FROM state WHERE name = 'service_ms'");
}

absl::StatusOr<uint64_t> SqliteView::LogSize() {
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t size,
                            database_.Integer("SELECT value FROM state WHERE name = 'log_size'"));
  return static_cast<uint64_t>(size);
}

}  // namespace lockstep::coordinator
