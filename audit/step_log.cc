// SPDX-License-Identifier: Apache-2.0
//
// Records are appended by one write each; a file that ends within one is cut back.
#include "audit/step_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

absl::Status CheckFollows(const StepRecord& previous, const StepRecord& record) {
  if (record.step != previous.step + 1) {
    return absl::DataLossError(absl::StrCat("expected the record of step ", previous.step + 1,
                                            "; found step ", record.step));
  }
  const Digest chain = ChainAfter(previous);
  if (record.previous_chain != chain) {
    return absl::DataLossError(absl::StrCat("the record of step ", record.step,
                                            " breaks the chain: expected to follow ", chain.ToHex(),
                                            "; found ", record.previous_chain.ToHex()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<StepRecord>> ParseStepLog(ByteSpan bytes) {
  std::vector<StepRecord> records;
  for (size_t at = 0; at < bytes.size(); at += kStepRecordBytes) {
    if (bytes.size() - at < kStepRecordBytes) {
      return absl::DataLossError(absl::StrCat("expected a record of ", kStepRecordBytes,
                                              " bytes at offset ", at, "; found ",
                                              bytes.size() - at));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const StepRecord record,
                              DecodeStepRecord(bytes.subspan(at, kStepRecordBytes)), "offset ", at);
    if (!records.empty()) {
      LOCKSTEP_RETURN_IF_ERROR(CheckFollows(records.back(), record), "offset ", at);
    }
    records.push_back(record);
  }
  return records;
}

absl::StatusOr<std::vector<StepRecord>> ReadStepLog(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kStepLogBytesMax));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<StepRecord> records, ParseStepLog(AsBytes(bytes)), path);
  return records;
}

absl::StatusOr<StepLog> StepLog::Open(const std::string& path) {
  StepLog log;
  log.path_ = path;
  log.fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
  if (log.fd_ < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot open"));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kStepLogBytesMax));
  const size_t whole = bytes.size() / kStepRecordBytes * kStepRecordBytes;
  LOCKSTEP_ASSIGN_OR_RETURN(log.records_, ParseStepLog(AsBytes(bytes).first(whole)), path);
  if (whole != bytes.size() && ftruncate(log.fd_, static_cast<off_t>(whole)) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot cut off a partial record"));
  }
  return log;
}

StepLog::~StepLog() {
  if (fd_ >= 0) close(fd_);
}

StepLog::StepLog(StepLog&& other) noexcept { *this = std::move(other); }

StepLog& StepLog::operator=(StepLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(records_, other.records_);
  return *this;
}

const StepRecord* StepLog::Find(uint64_t step) const {
  if (records_.empty() || step < records_.front().step) return nullptr;
  const uint64_t at = step - records_.front().step;
  return at < records_.size() ? &records_[at] : nullptr;
}

absl::Status StepLog::Append(const StepRecord& record) {
  if (!records_.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckFollows(records_.back(), record), path_);
  }
  const std::string bytes = EncodeStepRecord(record);
  ssize_t put;
  do {
    put = write(fd_, bytes.data(), bytes.size());
  } while (put < 0 && errno == EINTR);
  if (put < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot append a record"));
  if (put != static_cast<ssize_t>(bytes.size())) {
    // A full disk: what is there of the record goes again, so that the file stays whole.
    const auto whole = static_cast<off_t>(records_.size() * kStepRecordBytes);
    const bool cut = ftruncate(fd_, whole) == 0;
    return absl::ResourceExhaustedError(absl::StrCat(path_, ": only ", put, " of ", bytes.size(),
                                                     " bytes of a record were written",
                                                     cut ? "; they were removed again" : ""));
  }
  records_.push_back(record);
  return absl::OkStatus();
}

absl::Status StepLog::Sync() {
  if (fdatasync(fd_) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot bring records to the disk"));
}

}  // namespace lockstep::audit
