// SPDX-License-Identifier: Apache-2.0
//
// The store in one SQLite file: one connection that writes and checkpoints, and a pool of
// read-only ones. See store.h for what it promises, README.md for how the file is kept.

#ifndef LOCKSTEP_COORDINATOR_STORE_SQLITE_STORE_H_
#define LOCKSTEP_COORDINATOR_STORE_SQLITE_STORE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/store/sqlite.h"
#include "coordinator/store/store.h"

namespace lockstep::coordinator {

class SqliteStore final : public Store {
 public:
  // The file, made if it is not there and brought to the newest schema. FailedPrecondition if it is
  // another program's or a newer one's.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(
      const std::string& path, int busy_ms = SqliteDatabase::kBusyMsDefault);

  absl::StatusOr<std::unique_ptr<StoreView>> Read() override;
  absl::StatusOr<std::unique_ptr<StoreTransaction>> Write() override;
  absl::Status Backup(const std::string& path) override;

 private:
  class Reader;

  SqliteStore(std::unique_ptr<SqliteDatabase> writer, int busy_ms)
      : busy_ms_(busy_ms), writer_(std::move(writer)) {}

  absl::StatusOr<std::unique_ptr<SqliteDatabase>> TakeReader();
  void GiveBack(std::unique_ptr<SqliteDatabase> reader);

  const int busy_ms_;
  const std::unique_ptr<SqliteDatabase> writer_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<SqliteDatabase>> readers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_STORE_SQLITE_STORE_H_
