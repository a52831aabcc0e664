// SPDX-License-Identifier: Apache-2.0
//
// Parts of steps.log.
#include "trainer/local_records.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/directory.h"
#include "base/status.h"

namespace lockstep::trainer {

absl::StatusOr<uint64_t> LocalRecords::EndStep() const {
  const absl::StatusOr<int64_t> bytes = FileBytes(path_);
  if (absl::IsNotFound(bytes.status())) return first_step_;
  LOCKSTEP_RETURN_IF_ERROR(bytes.status());
  return first_step_ + static_cast<uint64_t>(*bytes) / audit::kStepRecordBytes;
}

absl::StatusOr<Digest> LocalRecords::ChainBefore(uint64_t step) const {
  if (step == first_step_) return first_chain_;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(step - 1, step, /*sync=*/false));
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::StepRecord record, audit::DecodeStepRecord(AsBytes(bytes)),
                            path_);
  return audit::ChainAfter(record);
}

absl::StatusOr<std::vector<audit::StepRecord>> LocalRecords::Read(uint64_t begin,
                                                                  uint64_t end) const {
  LOCKSTEP_ASSIGN_OR_RETURN(Digest chain, ChainBefore(begin));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(begin, end, /*sync=*/true));
  std::vector<audit::StepRecord> records;
  for (uint64_t step = begin; step < end; ++step) {
    const ByteSpan one =
        AsBytes(bytes).subspan((step - begin) * audit::kStepRecordBytes, audit::kStepRecordBytes);
    LOCKSTEP_ASSIGN_OR_RETURN(const audit::StepRecord record, audit::DecodeStepRecord(one), path_,
                              ", step ", step);
    if (record.step != step || record.previous_chain != chain) {
      return absl::DataLossError(absl::StrCat(
          path_, ": expected the record of step ", step, " after the chain ", chain.ToHex(),
          "; found that of step ", record.step, " after ", record.previous_chain.ToHex()));
    }
    chain = audit::ChainAfter(record);
    records.push_back(record);
  }
  return records;
}

absl::StatusOr<std::string> LocalRecords::ReadBytes(uint64_t begin, uint64_t end, bool sync) const {
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path_));
  const auto close = absl::MakeCleanup([fd] { ::close(fd); });
  if (sync && ::fdatasync(fd) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("bring to the disk: ", path_));
  }
  std::string bytes((end - begin) * audit::kStepRecordBytes, '\0');
  const uint64_t from = (begin - first_step_) * audit::kStepRecordBytes;
  for (size_t have = 0; have < bytes.size();) {
    const ssize_t count =
        ::pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(from + have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, absl::StrCat("read ", path_));
    if (count == 0) {
      return absl::UnavailableError(absl::StrCat(path_, " became shorter meanwhile"));
    }
    have += static_cast<size_t>(count);
  }
  return bytes;
}

}  // namespace lockstep::trainer
