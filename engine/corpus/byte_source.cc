// SPDX-License-Identifier: Apache-2.0
//
// Files, gzip (RFC 1952, members one after another) and zstd (RFC 8878, frames one after another).
#include "engine/corpus/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

constexpr size_t kInputBytes = size_t{256} << 10;
constexpr int64_t kUncheckedBytes = int64_t{16} << 20;

// The file as it lies.
class PlainSource final : public ByteSource {
 public:
  PlainSource(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PlainSource() override { close(fd_); }
  PlainSource(const PlainSource&) = delete;
  PlainSource& operator=(const PlainSource&) = delete;

  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    ssize_t count = 0;
    do {
      count = read(fd_, out, size);
    } while (count < 0 && errno == EINTR);
    if (count < 0)
      return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot read at byte ", bytes_));
    bytes_ += count;
    hasher_.Update(AsBytes({out, static_cast<size_t>(count)}));
    return static_cast<size_t>(count);
  }

  int64_t file_bytes() const override { return bytes_; }
  Digest FinishFileDigest() override { return hasher_.Finish(); }

 private:
  const std::string path_;
  const int fd_;
  int64_t bytes_ = 0;
  Sha256Hasher hasher_;
};

// What both decompressors have: a buffer of input, and the watch on how much comes out of how
// little.
class CompressedSource : public ByteSource {
 public:
  CompressedSource(std::string path, std::unique_ptr<PlainSource> file,
                   const DecompressionLimits& limits)
      : path_(std::move(path)), limits_(limits), file_(std::move(file)), input_(kInputBytes) {}

  int64_t file_bytes() const override { return file_->file_bytes(); }
  Digest FinishFileDigest() override { return file_->FinishFileDigest(); }

 protected:
  // Makes sure that there is input, or that there is no more.
  absl::Status Fill() {
    if (input_begin_ < input_end_ || input_ended_) return absl::OkStatus();
    LOCKSTEP_ASSIGN_OR_RETURN(input_end_, file_->Read(input_.data(), input_.size()));
    input_begin_ = 0;
    input_ended_ = input_end_ == 0;
    return absl::OkStatus();
  }

  absl::Status CountOutput(size_t bytes) {
    output_bytes_ += static_cast<int64_t>(bytes);
    const int64_t consumed = consumed_bytes();
    if (output_bytes_ <= kUncheckedBytes || output_bytes_ / limits_.ratio_max <= consumed)
      return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        path_, ": ", consumed, " bytes of the file grew to ", output_bytes_, ", more than ",
        limits_.ratio_max,
        " for one: refused as a decompression bomb (limits.compression_ratio_max sets the bound)"));
  }

  // The offset of the input that comes next.
  int64_t consumed_bytes() const {
    return file_->file_bytes() - static_cast<int64_t>(input_end_ - input_begin_);
  }

  absl::Status Corrupt(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat(path_, ": near byte ", consumed_bytes(), ": ", what));
  }

  const std::string path_;
  const DecompressionLimits limits_;
  std::unique_ptr<PlainSource> file_;
  std::vector<char> input_;
  size_t input_begin_ = 0;
  size_t input_end_ = 0;
  bool input_ended_ = false;
  int64_t output_bytes_ = 0;
};

class GzipSource final : public CompressedSource {
 public:
  using CompressedSource::CompressedSource;
  ~GzipSource() override {
    if (started_) inflateEnd(&stream_);
  }

  absl::Status Start() {
    // 16: a gzip header and no other.
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) {
      return absl::ResourceExhaustedError(absl::StrCat(path_, ": no memory to decompress"));
    }
    started_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    while (true) {
      LOCKSTEP_RETURN_IF_ERROR(Fill());
      if (input_ended_) {
        if (between_members_) return 0;
        return Corrupt("the file ends in the middle of gzip data; it was cut off");
      }
      if (between_members_ && members_ > 0) inflateReset(&stream_);
      between_members_ = false;
      LOCKSTEP_ASSIGN_OR_RETURN(const size_t count, Inflate(out, size));
      if (count > 0) return count;
    }
  }

 private:
  absl::StatusOr<size_t> Inflate(char* out, size_t size) {
    size = std::min(size, size_t{1} << 30);
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + input_begin_);
    stream_.avail_in = static_cast<uInt>(input_end_ - input_begin_);
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(size);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    input_begin_ = input_end_ - stream_.avail_in;
    if (result == Z_STREAM_END) {
      between_members_ = true;
      ++members_;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return Corrupt(absl::StrCat(
          "expected gzip data",
          members_ > 0 ? absl::StrCat(" (or the end, after ", members_, " members)") : "",
          "; found: ", stream_.msg == nullptr ? "an error" : stream_.msg));
    }
    const size_t count = size - stream_.avail_out;
    LOCKSTEP_RETURN_IF_ERROR(CountOutput(count));
    return count;
  }

  z_stream stream_ = {};
  bool started_ = false;
  bool between_members_ = false;
  int64_t members_ = 0;
};

class ZstdSource final : public CompressedSource {
 public:
  using CompressedSource::CompressedSource;
  ~ZstdSource() override { ZSTD_freeDCtx(context_); }

  absl::Status Start() {
    context_ = ZSTD_createDCtx();
    if (context_ == nullptr ||
        ZSTD_isError(ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax,
                                            limits_.zstd_window_log_max)) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat(path_, ": no memory to decompress"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    while (true) {
      // What is still inside comes out first: a full output may hide it, and there may be no input
      // left to push it.
      if (!pending_output_) {
        LOCKSTEP_RETURN_IF_ERROR(Fill());
        if (input_ended_) {
          if (frames_ > 0 && between_frames_) return 0;
          return Corrupt("the file ends in the middle of zstd data; it was cut off");
        }
      }
      LOCKSTEP_ASSIGN_OR_RETURN(const size_t count, Decompress(out, size));
      if (count > 0) return count;
    }
  }

 private:
  absl::StatusOr<size_t> Decompress(char* out, size_t size) {
    ZSTD_inBuffer input = {input_.data() + input_begin_, input_end_ - input_begin_, 0};
    ZSTD_outBuffer output = {out, size, 0};
    const size_t result = ZSTD_decompressStream(context_, &output, &input);
    input_begin_ += input.pos;
    if (ZSTD_isError(result) != 0) {
      if (ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge) {
        return absl::DataLossError(absl::StrCat(
            path_, ": needs a zstd window of more than 2^", limits_.zstd_window_log_max,
            " bytes, which is refused (limits.zstd_window_log_max sets the bound)"));
      }
      return Corrupt(absl::StrCat("expected zstd data; found: ", ZSTD_getErrorName(result)));
    }
    between_frames_ = result == 0;
    if (between_frames_) ++frames_;
    pending_output_ = !between_frames_ && output.pos == output.size;
    LOCKSTEP_RETURN_IF_ERROR(CountOutput(output.pos));
    return output.pos;
  }

  ZSTD_DCtx* context_ = nullptr;
  bool between_frames_ = false;
  bool pending_output_ = false;
  int64_t frames_ = 0;
};

template <typename Source>
absl::StatusOr<std::unique_ptr<ByteSource>> Decompressor(const std::string& path,
                                                         std::unique_ptr<PlainSource> file,
                                                         const DecompressionLimits& limits) {
  auto source = std::make_unique<Source>(path, std::move(file), limits);
  LOCKSTEP_RETURN_IF_ERROR(source->Start());
  return source;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::Open(const std::string& path,
                                                             const DecompressionLimits& limits) {
  // Not to wait on a pipe of that name.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot open"));
  auto file = std::make_unique<PlainSource>(path, fd);
  struct stat status = {};
  if (fstat(fd, &status) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot look at it"));
  if (!S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": expected a regular file"));
  }
  posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  if (absl::EndsWith(path, ".gz")) return Decompressor<GzipSource>(path, std::move(file), limits);
  if (absl::EndsWith(path, ".zst")) return Decompressor<ZstdSource>(path, std::move(file), limits);
  return file;
}

}  // namespace lockstep::engine
