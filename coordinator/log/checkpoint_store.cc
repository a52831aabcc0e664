// SPDX-License-Identifier: Apache-2.0
//
// Compare and swap of the signed checkpoint. See checkpoint_store.h.

#include "coordinator/log/checkpoint_store.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace lockstep::coordinator {
namespace {

constexpr int32_t kApplicationId = 0x4c6b4370;  // "LkCp"
constexpr const char* kMigrations[] = {
    "CREATE TABLE checkpoint (id INTEGER PRIMARY KEY CHECK (id = 1), note BLOB NOT NULL) STRICT;",
};

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointStore>> CheckpointStore::Open(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> database,
                            SqliteDatabase::Open(path, SqliteAccess::kWrite));
  LOCKSTEP_RETURN_IF_ERROR(database->Migrate(kApplicationId, kMigrations));
  return std::unique_ptr<CheckpointStore>(new CheckpointStore(std::move(database)));
}

absl::StatusOr<std::optional<std::string>> CheckpointStore::Load() {
  std::optional<std::string> note;
  LOCKSTEP_RETURN_IF_ERROR(database_->Run("SELECT note FROM checkpoint", {},
                                          [&](const SqliteRow& row) { note = row.Bytes(0); }));
  return note;
}

absl::Status CheckpointStore::CompareAndSwap(const std::optional<std::string>& expected,
                                             absl::string_view next) {
  // Each a transaction of its own.
  if (expected.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(
        database_->Run("UPDATE checkpoint SET note = ? WHERE id = 1 AND note = ?",
                       {SqliteValue::Bytes(next), SqliteValue::Bytes(*expected)}));
  } else {
    LOCKSTEP_RETURN_IF_ERROR(
        database_->Run("INSERT INTO checkpoint (id, note) VALUES (1, ?) ON CONFLICT DO NOTHING",
                       {SqliteValue::Bytes(next)}));
  }
  if (database_->RowsChanged() == 1) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(database_->path(),
                   " has another checkpoint than this process left there; another process"
                   " appends to the same log: stop one of them"));
}

}  // namespace lockstep::coordinator
