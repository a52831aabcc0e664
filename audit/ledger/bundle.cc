// SPDX-License-Identifier: Apache-2.0
//
// One zstd frame behind eight plain bytes.
#include "audit/ledger/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "audit/evidence/log_entry.h"
#include "audit/log/log_checkpoint.h"
#include "base/bytes.h"
#include "base/coding.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

constexpr absl::string_view kMagic = "LKSBNDL1";
constexpr int kLevel = 9;
constexpr int kWindowLog = 22;     // as written
constexpr int kWindowLogMax = 23;  // as read
constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr size_t kKeyTextBytesMax = 4096;

absl::StatusOr<LogCheckpoint> CheckpointOf(absl::string_view note) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SignedNote parsed, ParseSignedNote(note));
  return ParseLogCheckpoint(parsed.text);
}

class BundleReader final : public LogSource {
 public:
  BundleReader(std::string path, int fd) : path_(std::move(path)), fd_(fd), input_(kBufferBytes) {}
  ~BundleReader() override {
    ZSTD_freeDCtx(context_);
    close(fd_);
  }
  BundleReader(const BundleReader&) = delete;
  BundleReader& operator=(const BundleReader&) = delete;

  absl::Status Start() {
    context_ = ZSTD_createDCtx();
    if (context_ == nullptr ||
        ZSTD_isError(ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kWindowLogMax)) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat(path_, ": no memory to decompress"));
    }
    std::string magic;
    while (magic.size() < kMagic.size()) {
      LOCKSTEP_RETURN_IF_ERROR(Fill());
      if (begin_ == end_) return Corrupt("it is too short for a bundle");
      magic += input_[begin_++];
    }
    if (magic != kMagic) return Corrupt("expected a bundle of a log; found another file");
    LOCKSTEP_ASSIGN_OR_RETURN(named_key_, ReadText("key", kKeyTextBytesMax));
    LOCKSTEP_ASSIGN_OR_RETURN(checkpoint_, ReadText("checkpoint", kNoteBytesMax));
    LOCKSTEP_ASSIGN_OR_RETURN(const LogCheckpoint checkpoint, CheckpointOf(checkpoint_), path_);
    left_ = checkpoint.size;
    return absl::OkStatus();
  }

  const std::string& checkpoint() const override { return checkpoint_; }
  const std::string& named_key() const override { return named_key_; }

  absl::StatusOr<std::optional<std::string>> Next() override {
    if (left_ == 0) {
      LOCKSTEP_RETURN_IF_ERROR(ExpectEnd());
      return std::nullopt;
    }
    std::string length;
    LOCKSTEP_RETURN_IF_ERROR(Read(2, &length));
    std::string entry;
    LOCKSTEP_RETURN_IF_ERROR(Read(
        static_cast<size_t>(static_cast<uint8_t>(length[0])) << 8 | static_cast<uint8_t>(length[1]),
        &entry));
    --left_;
    return entry;
  }

 private:
  absl::Status Corrupt(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat(path_, ": ", what));
  }

  // Makes sure that there is input, or that the file is at its end.
  absl::Status Fill() {
    if (begin_ < end_) return absl::OkStatus();
    ssize_t count = 0;
    do {
      count = read(fd_, input_.data(), input_.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) return absl::ErrnoToStatus(errno, absl::StrCat("read ", path_));
    begin_ = 0;
    end_ = static_cast<size_t>(count);
    return absl::OkStatus();
  }

  // Up to `size` bytes more; none at the end of the frame.
  absl::StatusOr<size_t> Decompress(char* out, size_t size) {
    while (!ended_) {
      LOCKSTEP_RETURN_IF_ERROR(Fill());
      ZSTD_inBuffer input = {input_.data() + begin_, end_ - begin_, 0};
      ZSTD_outBuffer output = {out, size, 0};
      const size_t result = ZSTD_decompressStream(context_, &output, &input);
      if (ZSTD_isError(result) != 0) {
        return Corrupt(absl::StrCat("expected zstd data; found: ", ZSTD_getErrorName(result)));
      }
      const bool stuck = input.pos == 0 && output.pos == 0 && begin_ == end_;
      begin_ += input.pos;
      ended_ = result == 0;
      if (output.pos > 0) return output.pos;
      if (stuck && !ended_) return Corrupt("it ends in the middle of its data; it was cut off");
    }
    return 0;
  }

  absl::Status Read(size_t size, std::string* bytes) {
    bytes->resize(size);
    for (size_t have = 0; have < size;) {
      LOCKSTEP_ASSIGN_OR_RETURN(const size_t count, Decompress(bytes->data() + have, size - have));
      if (count == 0) {
        return Corrupt(absl::StrCat("it ends ", left_, " entries before its checkpoint says"));
      }
      have += count;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ReadText(absl::string_view what, size_t bytes_max) {
    std::string bytes;
    LOCKSTEP_RETURN_IF_ERROR(Read(4, &bytes));
    const uint32_t size = *ByteReader(AsBytes(bytes)).ReadU32(what);
    if (size > bytes_max) {
      return Corrupt(absl::StrCat(what, ": expected at most ", bytes_max, " bytes; found ", size));
    }
    LOCKSTEP_RETURN_IF_ERROR(Read(size, &bytes));
    return bytes;
  }

  absl::Status ExpectEnd() {
    char more = 0;
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t count, Decompress(&more, 1));
    LOCKSTEP_RETURN_IF_ERROR(Fill());
    if (count == 0 && begin_ == end_) return absl::OkStatus();
    return Corrupt("something comes after the entries that its checkpoint speaks of");
  }

  const std::string path_;
  const int fd_;
  ZSTD_DCtx* context_ = nullptr;
  std::vector<char> input_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool ended_ = false;  // the frame
  std::string named_key_;
  std::string checkpoint_;
  uint64_t left_ = 0;
};

}  // namespace

void BundleWriter::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

absl::StatusOr<BundleWriter> BundleWriter::Create(const std::string& path, const NoteKey& log_key,
                                                  absl::string_view checkpoint) {
  LOCKSTEP_ASSIGN_OR_RETURN(const LogCheckpoint parsed, CheckpointOf(checkpoint));
  LOCKSTEP_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Create(path));
  std::unique_ptr<ZSTD_CCtx_s, Free> context(ZSTD_createCCtx());
  if (context == nullptr ||
      ZSTD_isError(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel)) != 0 ||
      ZSTD_isError(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, kWindowLog)) != 0 ||
      ZSTD_isError(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1)) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory to compress"));
  }
  BundleWriter writer(std::move(file), parsed.size, std::move(context));
  LOCKSTEP_RETURN_IF_ERROR(writer.file_.Append(AsBytes(kMagic)));
  ByteWriter head;
  head.WriteLengthPrefixed(AsBytes(log_key.ToText()));
  head.WriteLengthPrefixed(AsBytes(checkpoint));
  LOCKSTEP_RETURN_IF_ERROR(writer.Write(head.bytes(), /*last=*/false));
  return writer;
}

absl::Status BundleWriter::Append(absl::string_view entry) {
  if (left_ == 0 || entry.size() > kLogEntryBytesMax) {
    return absl::FailedPreconditionError(
        absl::StrCat("bundle: expected ", left_, " more entries of at most ", kLogEntryBytesMax,
                     " bytes; found one of ", entry.size()));
  }
  --left_;
  const char length[2] = {static_cast<char>(entry.size() >> 8), static_cast<char>(entry.size())};
  pending_.append(length, sizeof(length));
  pending_.append(entry.data(), entry.size());
  if (pending_.size() < kBufferBytes) return absl::OkStatus();
  return Write(std::exchange(pending_, {}), /*last=*/false);
}

absl::Status BundleWriter::Commit() {
  if (left_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("bundle: ", left_, " entries of its checkpoint are missing"));
  }
  LOCKSTEP_RETURN_IF_ERROR(Write(std::exchange(pending_, {}), /*last=*/true));
  return file_.Commit();
}

absl::Status BundleWriter::Write(absl::string_view bytes, bool last) {
  ZSTD_inBuffer input = {bytes.data(), bytes.size(), 0};
  output_.resize(kBufferBytes);
  while (true) {
    ZSTD_outBuffer output = {output_.data(), output_.size(), 0};
    const size_t result =
        ZSTD_compressStream2(context_.get(), &output, &input, last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(result) != 0) {
      return absl::InternalError(absl::StrCat("bundle: zstd: ", ZSTD_getErrorName(result)));
    }
    if (output.pos > 0) {
      LOCKSTEP_RETURN_IF_ERROR(
          file_.Append(AsBytes(absl::string_view(output_.data(), output.pos))));
    }
    const bool done = last ? result == 0 : input.pos == input.size;
    if (done) return absl::OkStatus();
  }
}

absl::StatusOr<std::unique_ptr<LogSource>> OpenBundle(const std::string& path) {
  // Not to wait on a pipe of that name.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
  auto reader = std::make_unique<BundleReader>(path, fd);
  struct stat status = {};
  if (fstat(fd, &status) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("look at ", path));
  if (!S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": expected a regular file"));
  }
  LOCKSTEP_RETURN_IF_ERROR(reader->Start());
  return reader;
}

absl::Status WriteBundle(LogSource& source, const NoteKey& log_key, const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(BundleWriter writer,
                            BundleWriter::Create(path, log_key, source.checkpoint()));
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> entry, source.Next());
    if (!entry) return writer.Commit();
    LOCKSTEP_RETURN_IF_ERROR(writer.Append(*entry));
  }
}

}  // namespace lockstep::audit
