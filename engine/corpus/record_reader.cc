// SPDX-License-Identifier: Apache-2.0
//
// The walk over the input files.
#include "engine/corpus/record_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "engine/corpus/parquet_reader.h"

namespace lockstep::engine {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;

int64_t CountLines(absl::string_view bytes) {
  return std::count(bytes.begin(), bytes.end(), '\n') +
         (!bytes.empty() && bytes.back() != '\n' ? 1 : 0);
}

}  // namespace

RecordReader::RecordReader(const SourceConfig& source, const InputFiles& inputs,
                           int64_t block_bytes, const InputPosition& start)
    : source_(source),
      inputs_(inputs),
      block_bytes_(std::max<int64_t>(block_bytes, 1)),
      at_(start) {}

RecordReader::~RecordReader() = default;

int64_t RecordReader::file_bytes_read() const {
  return finished_bytes_ + (file_ == nullptr ? 0 : file_->file_bytes());
}

absl::StatusOr<bool> RecordReader::Next(Block* block) {
  *block = Block();
  if (at_.file >= static_cast<int64_t>(inputs_.files.size())) return false;
  if (file_ == nullptr) LOCKSTEP_RETURN_IF_ERROR(OpenFile());
  block->begin = at_;
  if (source_.format == DocumentFormat::kJsonl) {
    LOCKSTEP_RETURN_IF_ERROR(NextLines(block));
  } else if (source_.format == DocumentFormat::kParquet) {
    LOCKSTEP_RETURN_IF_ERROR(NextRows(block));
  } else {
    LOCKSTEP_RETURN_IF_ERROR(NextWholeFile(block));
  }
  block->end = at_;
  if (block->ends_file) at_ = {.file = at_.file + 1};
  return true;
}

absl::Status RecordReader::OpenFile() {
  const InputFile& input = inputs_.files[static_cast<size_t>(at_.file)];
  LOCKSTEP_ASSIGN_OR_RETURN(
      file_, ByteSource::Open(input.path, {.ratio_max = source_.compression_ratio_max,
                                           .zstd_window_log_max = source_.zstd_window_log_max}));
  carry_.clear();
  if (source_.format == DocumentFormat::kParquet) {
    LOCKSTEP_ASSIGN_OR_RETURN(rows_, OpenRowReader(input.path, source_, at_.records));
    return absl::OkStatus();
  }
  return PassOver(at_.bytes);
}

absl::Status RecordReader::PassOver(int64_t bytes) {
  std::string buffer(kReadBytes, '\0');
  for (int64_t left = bytes; left > 0;) {
    const size_t want = static_cast<size_t>(std::min<int64_t>(left, kReadBytes));
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t count, file_->Read(buffer.data(), want));
    if (count == 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          inputs_.files[static_cast<size_t>(at_.file)].path, ": expected at least ", bytes,
          " bytes, which an earlier run read; found ", bytes - left, ": the file has changed"));
    }
    left -= static_cast<int64_t>(count);
  }
  return absl::OkStatus();
}

absl::Status RecordReader::NextLines(Block* block) {
  std::string bytes = std::exchange(carry_, {});
  size_t searched = 0;  // there is no line feed before
  size_t target = bytes.size() + static_cast<size_t>(block_bytes_);
  while (true) {
    bytes.reserve(target + kBlockPadding);
    while (bytes.size() < target) {
      const size_t had = bytes.size();
      bytes.resize(target);
      LOCKSTEP_ASSIGN_OR_RETURN(const size_t count, file_->Read(bytes.data() + had, target - had));
      bytes.resize(had + count);
      if (count > 0) continue;
      TakeLines(std::move(bytes), block);
      return FinishFile(block);
    }
    const void* found = memrchr(bytes.data() + searched, '\n', bytes.size() - searched);
    if (found != nullptr) {
      const size_t size = static_cast<size_t>(static_cast<const char*>(found) - bytes.data()) + 1;
      carry_.assign(bytes, size);
      bytes.resize(size);
      TakeLines(std::move(bytes), block);
      return absl::OkStatus();
    }
    searched = bytes.size();
    if (static_cast<int64_t>(searched) > source_.record_bytes_max)
      return PassOverLine(block, searched);
    target = 2 * searched;
  }
}

void RecordReader::TakeLines(std::string bytes, Block* block) {
  if (bytes.empty()) return;
  block->kind = Block::Kind::kLines;
  at_.records += CountLines(bytes);
  at_.bytes += static_cast<int64_t>(bytes.size());
  block->bytes = std::move(bytes);
}

absl::Status RecordReader::PassOverLine(Block* block, size_t had) {
  block->kind = Block::Kind::kTooLarge;
  block->too_large = static_cast<int64_t>(had);
  ++at_.records;
  std::string buffer(kReadBytes, '\0');
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t count, file_->Read(buffer.data(), buffer.size()));
    const absl::string_view read(buffer.data(), count);
    const size_t line_feed = read.find('\n');
    if (count == 0 || line_feed != absl::string_view::npos) {
      if (count > 0) {
        block->too_large += static_cast<int64_t>(line_feed);
        carry_ = std::string(read.substr(line_feed + 1));
      }
      at_.bytes += block->too_large + (count > 0 ? 1 : 0);
      return count > 0 ? absl::OkStatus() : FinishFile(block);
    }
    block->too_large += static_cast<int64_t>(count);
  }
}

absl::Status RecordReader::NextWholeFile(Block* block) {
  const InputFile& input = inputs_.files[static_cast<size_t>(at_.file)];
  if (at_.records > 0) return FinishFile(block);
  const size_t most = static_cast<size_t>(source_.record_bytes_max) + 1;
  std::string bytes;
  size_t step =
      static_cast<size_t>(std::clamp<int64_t>(input.bytes, 0, source_.record_bytes_max)) + 1;
  size_t count = 0;
  do {
    const size_t had = bytes.size();
    step = std::min(step, most - had);
    bytes.reserve(had + step + kBlockPadding);
    bytes.resize(had + step);
    LOCKSTEP_ASSIGN_OR_RETURN(count, file_->Read(bytes.data() + had, step));
    bytes.resize(had + count);
    step = std::max(kReadBytes, bytes.size());
  } while (count > 0 && bytes.size() < most);
  at_.records = 1;
  at_.bytes = static_cast<int64_t>(bytes.size());
  if (bytes.size() < most) {
    block->kind = Block::Kind::kFile;
    block->bytes = std::move(bytes);
    return FinishFile(block);
  }
  block->kind = Block::Kind::kTooLarge;
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t rest, ReadToEnd());
  at_.bytes += rest;
  block->too_large = at_.bytes;
  return FinishFile(block);
}

absl::Status RecordReader::NextRows(Block* block) {
  LOCKSTEP_ASSIGN_OR_RETURN(block->rows, rows_->Next());
  if (block->rows.empty()) return FinishFile(block);
  block->kind = Block::Kind::kRows;
  at_.records += static_cast<int64_t>(block->rows.size());
  return absl::OkStatus();
}

absl::StatusOr<int64_t> RecordReader::ReadToEnd() {
  std::string buffer(kReadBytes, '\0');
  int64_t bytes = 0;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t count, file_->Read(buffer.data(), buffer.size()));
    if (count == 0) return bytes;
    bytes += static_cast<int64_t>(count);
  }
}

absl::Status RecordReader::FinishFile(Block* block) {
  const InputFile& input = inputs_.files[static_cast<size_t>(at_.file)];
  // The digest is of the whole file, whatever of it was asked for. Arrow reads by itself.
  LOCKSTEP_RETURN_IF_ERROR(ReadToEnd().status());
  block->ends_file = true;
  block->file_bytes = file_->file_bytes();
  LOCKSTEP_RETURN_IF_ERROR(CheckUnchanged(input));
  if (block->file_bytes != input.bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(input.path, ": expected ", input.bytes, " bytes, as listed; found ",
                     block->file_bytes, ": the file changed during the ingest"));
  }
  block->file_digest = file_->FinishFileDigest();
  finished_bytes_ += block->file_bytes;
  rows_.reset();
  file_.reset();
  return absl::OkStatus();
}

}  // namespace lockstep::engine
