// SPDX-License-Identifier: Apache-2.0
//
// The newest signed checkpoint of the log, in a SQLite file of its own: the one place that decides
// what the log is. A database apart, so that no backup of the store, restored, takes it back.

#ifndef LOCKSTEP_COORDINATOR_LOG_CHECKPOINT_STORE_H_
#define LOCKSTEP_COORDINATOR_LOG_CHECKPOINT_STORE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/store/sqlite.h"

namespace lockstep::coordinator {

// Not for several threads at once.
class CheckpointStore {
 public:
  static absl::StatusOr<std::unique_ptr<CheckpointStore>> Open(const std::string& path);

  // The signed note; nullopt in a new file.
  absl::StatusOr<std::optional<std::string>> Load();

  // Puts `next` in the place of `expected`, on the disk when OK. Aborted, and nothing has changed,
  // if something else is there: another process has gone on with this log. After any other error it
  // is not known which of the two is there.
  absl::Status CompareAndSwap(const std::optional<std::string>& expected, absl::string_view next);

 private:
  explicit CheckpointStore(std::unique_ptr<SqliteDatabase> database)
      : database_(std::move(database)) {}

  const std::unique_ptr<SqliteDatabase> database_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_LOG_CHECKPOINT_STORE_H_
