// SPDX-License-Identifier: Apache-2.0
//
// Event files as TensorBoard reads them: TFRecords (length, masked CRC-32C, data) of Event
// messages, of which only scalars are written.
#ifndef LOCKSTEP_ENGINE_RUN_TENSORBOARD_H_
#define LOCKSTEP_ENGINE_RUN_TENSORBOARD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::engine {

class TensorBoardWriter {
 public:
  // A new file FOLDER/events.out.tfevents.SECONDS.PID.lockstep, SECONDS the wall clock's.
  static absl::StatusOr<std::unique_ptr<TensorBoardWriter>> Create(const std::string& folder,
                                                                   double wall_seconds);
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;

  // Collected until Flush.
  void AddScalar(absl::string_view tag, int64_t step, double wall_seconds, float value);
  absl::Status Flush();

 private:
  TensorBoardWriter(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;
  std::string pending_;
};

// An Event with one scalar, and a TFRecord around bytes: for tests, too.
std::string ScalarEvent(absl::string_view tag, int64_t step, double wall_seconds, float value);
std::string TfRecord(absl::string_view data);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_TENSORBOARD_H_
