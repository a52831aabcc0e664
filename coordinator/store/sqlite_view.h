// SPDX-License-Identifier: Apache-2.0
//
// The reads of store.h on one SQLite connection, with the names of the states in SQL. For
// sqlite_store.cc.

#ifndef LOCKSTEP_COORDINATOR_STORE_SQLITE_VIEW_H_
#define LOCKSTEP_COORDINATOR_STORE_SQLITE_VIEW_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/store/sqlite.h"
#include "coordinator/store/store.h"

namespace lockstep::coordinator {

absl::string_view StateName(LeaseState state);
absl::string_view StateName(ChallengeState state);
absl::string_view StateName(CanaryState state);

// Reads in whatever transaction the connection has; `database` must outlive it.
class SqliteView : public StoreView {
 public:
  explicit SqliteView(SqliteDatabase& database) : database_(database) {}

  absl::StatusOr<uint64_t> EntryCount() override;
  absl::StatusOr<EntryRow> Entry(uint64_t log_index) override;
  absl::StatusOr<EntryRow> EntryByLeafHash(const Digest& leaf_hash) override;
  absl::StatusOr<std::vector<EntryRow>> Entries(const EntryQuery& query, uint64_t first,
                                                int64_t limit) override;
  absl::Status ForEachEntry(uint64_t first,
                            absl::FunctionRef<absl::Status(const EntryRow&)> on_entry) override;
  absl::Status ForEachLeafHash(
      absl::FunctionRef<absl::Status(uint64_t, const Digest&)> on_leaf) override;
  absl::StatusOr<LeaseRow> Lease(absl::string_view lease_id) override;
  absl::StatusOr<std::vector<LeaseRow>> LiveLeases() override;
  absl::StatusOr<std::vector<LeaseRow>> EndedLeases(const Digest& run, int64_t unix_ms,
                                                    absl::string_view lease_id,
                                                    int64_t limit) override;
  absl::StatusOr<RequestRow> Request(const Digest& key, absl::string_view request_id) override;
  absl::StatusOr<std::vector<EvidenceRow>> Evidence(int64_t after, int64_t limit) override;
  absl::StatusOr<std::vector<EvidenceCount>> CountEvidence() override;
  absl::StatusOr<int64_t> CountEvidence(const Digest& key, absl::string_view reason) override;
  absl::StatusOr<std::vector<ChallengeRow>> Challenges(const Digest& attestation) override;
  absl::StatusOr<std::vector<ChallengeRow>> OpenChallenges(int64_t now_ms) override;
  absl::StatusOr<CanaryRow> Canary(absl::string_view lease_id) override;
  absl::StatusOr<std::vector<uint64_t>> Doubts() override;
  absl::StatusOr<KeyTrust> Trust(const Digest& key) override;
  absl::StatusOr<std::vector<TrustRow>> AllTrust() override;
  absl::StatusOr<ArtifactRow> Artifact(const Digest& digest, const Digest& source) override;
  absl::StatusOr<std::vector<ArtifactRow>> ArtifactByTrainers(const Digest& digest) override;
  absl::StatusOr<std::vector<EventRow>> Events(int64_t after, int64_t limit) override;
  absl::StatusOr<int64_t> FirstEventId() override;
  absl::StatusOr<int64_t> ServiceMs() override;
  absl::StatusOr<uint64_t> LogSize() override;

 private:
  using Values = absl::Span<const SqliteValue>;

  // Every row that `sql` gives, made by `make`; or the only one, NotFound with `what` if none.
  template <typename Row>
  absl::StatusOr<std::vector<Row>> All(const char* sql, Values values,
                                       Row (*make)(const SqliteRow&));
  template <typename Row>
  absl::StatusOr<Row> One(const char* sql, Values values, Row (*make)(const SqliteRow&),
                          absl::string_view what);

  SqliteDatabase& database_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_STORE_SQLITE_VIEW_H_
