// SPDX-License-Identifier: Apache-2.0
//
// Texts in memory and in files.
#include "engine/tokenizer/text_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

class TextFile : public TextSource {
 public:
  TextFile(std::string path, int fd, int64_t bytes)
      : path_(std::move(path)), fd_(fd), bytes_(bytes) {}
  ~TextFile() override { close(fd_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  int64_t parts() const override { return static_cast<int64_t>(cuts_.size()) - 1; }
  int64_t bytes() const override { return bytes_; }

  absl::Status Cut(int64_t part_bytes) {
    cuts_.push_back(0);
    while (cuts_.back() < bytes_) {
      LOCKSTEP_ASSIGN_OR_RETURN(const int64_t cut,
                                FindCut(cuts_.back() + std::max<int64_t>(part_bytes, 1)));
      cuts_.push_back(cut);
    }
    return absl::OkStatus();
  }

  absl::Status Read(int64_t part, absl::FunctionRef<void(absl::string_view)> fn) const override {
    std::string text(static_cast<size_t>(cuts_[part + 1] - cuts_[part]), '\0');
    LOCKSTEP_RETURN_IF_ERROR(ReadAt(cuts_[part], &text));
    fn(text);
    return absl::OkStatus();
  }

 private:
  // Fills `text` from the file.
  absl::Status ReadAt(int64_t offset, std::string* text) const {
    for (size_t done = 0; done < text->size();) {
      const ssize_t n = pread(fd_, text->data() + done, text->size() - done,
                              static_cast<off_t>(offset + static_cast<int64_t>(done)));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_));
      if (n == 0) {
        return absl::DataLossError(absl::StrCat(
            path_, " ends at byte ", offset + static_cast<int64_t>(done), "; expected ", bytes_,
            ", as when it was opened: it must not change meanwhile"));
      }
      done += static_cast<size_t>(n);
    }
    return absl::OkStatus();
  }

  // The first place at or after `offset` where the file may be cut.
  absl::StatusOr<int64_t> FindCut(int64_t offset) const {
    constexpr int64_t kBlock = int64_t{64} << 10;
    while (offset < bytes_) {
      // A byte before, to see whether it ends a line.
      std::string block(static_cast<size_t>(std::min(kBlock, bytes_ - offset + 1)), '\0');
      LOCKSTEP_RETURN_IF_ERROR(ReadAt(offset - 1, &block));
      for (size_t i = 1; i < block.size(); ++i) {
        if (block[i - 1] == '\n' && block[i] > ' ' && block[i] < 0x7F) {
          return offset + static_cast<int64_t>(i) - 1;
        }
      }
      offset += static_cast<int64_t>(block.size()) - 1;
    }
    return bytes_;
  }

  const std::string path_;
  const int fd_;
  const int64_t bytes_;
  std::vector<int64_t> cuts_;  // where parts begin, and the end
};

class JoinedSource : public TextSource {
 public:
  explicit JoinedSource(std::vector<std::unique_ptr<TextSource>> sources)
      : sources_(std::move(sources)) {
    for (const auto& source : sources_) {
      first_parts_.push_back(parts_);
      parts_ += source->parts();
      bytes_ += source->bytes();
    }
  }
  int64_t parts() const override { return parts_; }
  int64_t bytes() const override { return bytes_; }
  absl::Status Read(int64_t part, absl::FunctionRef<void(absl::string_view)> fn) const override {
    const auto after = std::upper_bound(first_parts_.begin(), first_parts_.end(), part);
    const auto i = static_cast<size_t>(after - first_parts_.begin()) - 1;
    return sources_[i]->Read(part - first_parts_[i], fn);
  }

 private:
  const std::vector<std::unique_ptr<TextSource>> sources_;
  std::vector<int64_t> first_parts_;
  int64_t parts_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

MemorySource::MemorySource(std::vector<std::string> texts) : texts_(std::move(texts)) {
  for (const std::string& text : texts_) bytes_ += static_cast<int64_t>(text.size());
}

absl::Status MemorySource::Read(int64_t part, absl::FunctionRef<void(absl::string_view)> fn) const {
  fn(texts_[part]);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TextSource>> OpenTextFile(const std::string& path,
                                                         int64_t part_bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  struct stat info;
  const bool known = fstat(fd, &info) == 0;
  auto file = std::make_unique<TextFile>(path, fd, known ? int64_t{info.st_size} : 0);
  if (!known || !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  }
  LOCKSTEP_RETURN_IF_ERROR(file->Cut(part_bytes));
  return file;
}

std::unique_ptr<TextSource> JoinSources(std::vector<std::unique_ptr<TextSource>> sources) {
  return std::make_unique<JoinedSource>(std::move(sources));
}

}  // namespace lockstep::engine
