// SPDX-License-Identifier: Apache-2.0
//
// What a publisher remembers of a run, beside the records and states that the run's folder holds
// anyhow:
//
//   RUN/publish/lock               held by the one that publishes
//   RUN/publish/registration.json  the run's registration as it was signed once: an entry
//   RUN/publish/log_key            the key of the log that it went to, as --log-key takes it
//   RUN/publish/progress.json      how far that log has acknowledged the run
//   RUN/publish/receipts/*.json    what it promised to hold: run, records (the last), checkpoint-N,
//   evaluation-N
//
// Records and announcements need no queue of their own: their entries follow from the run's files
// and the key, byte for byte, so that whatever is sent twice is the same entry. Each file appears
// whole or not at all; a kill at any moment costs a repetition.
#ifndef LOCKSTEP_TRAINER_PUBLISH_FOLDER_H_
#define LOCKSTEP_TRAINER_PUBLISH_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/ledger/receipt.h"
#include "base/directory_lock.h"
#include "base/sha256.h"
#include "engine/run/run_folder.h"

namespace lockstep::trainer {

struct PublishProgress {
  uint64_t next_step = 0;  // the first step whose record nobody has acknowledged
  Digest chain;            // before it
  bool operator==(const PublishProgress&) const = default;
};

// Not for several threads at once.
class PublishFolder {
 public:
  // Makes the folder if need be. FailedPrecondition if another process publishes this run.
  static absl::StatusOr<PublishFolder> Open(const engine::RunFolder& run);

  const std::string& path() const { return path_; }

  // Each is nullopt if it was never saved; DataLoss if the file is damaged.
  absl::StatusOr<std::optional<std::string>> ReadRegistration() const;
  absl::Status SaveRegistration(absl::string_view entry) const;
  absl::StatusOr<std::optional<std::string>> ReadLogKey() const;
  absl::Status SaveLogKey(absl::string_view text) const;
  absl::StatusOr<std::optional<PublishProgress>> ReadProgress() const;
  absl::Status SaveProgress(const PublishProgress& progress) const;

  // name: a basename without its ".json".
  absl::Status SaveReceipt(absl::string_view name, const audit::Receipt& receipt) const;

 private:
  PublishFolder(std::string path, DirectoryLock lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  absl::StatusOr<std::optional<std::string>> Read(absl::string_view name) const;
  absl::Status Save(absl::string_view name, absl::string_view bytes) const;

  std::string path_;
  DirectoryLock lock_;
};

}  // namespace lockstep::trainer

#endif  // LOCKSTEP_TRAINER_PUBLISH_FOLDER_H_
