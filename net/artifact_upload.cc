// SPDX-License-Identifier: Apache-2.0
//
// See artifact_upload.h.
#include "net/artifact_upload.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <random>
#include <span>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "net/http_range.h"

namespace lockstep::net {
namespace {

constexpr size_t kAnswerBytesMax = 1024;

// From the system, not from HttpOptions::random: a nonce that comes twice is refused.
std::array<uint8_t, 16> MakeNonce() {
  std::random_device random;
  std::array<uint8_t, 16> nonce;
  for (uint8_t& byte : nonce) byte = static_cast<uint8_t>(random());
  return nonce;
}

class Upload {
 public:
  Upload(HttpClient& client, const UploadOptions& options, const Digest& sha256, int fd,
         uint64_t total)
      : client_(client),
        options_(options),
        path_(absl::StrCat("/artifact/", sha256.ToHex())),
        url_(absl::StrCat(absl::StripSuffix(options.address, "/"), path_)),
        fd_(fd),
        total_(total) {}

  absl::Status Run();
  const std::string& url() const { return url_; }

 private:
  absl::StatusOr<HttpHead> Put(const ContentRange& range);
  absl::StatusOr<std::string> Authorization(const std::string& content_range) const;
  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) const;
  absl::Status Take(const HttpHead& head);

  HttpClient& client_;
  const UploadOptions& options_;
  const std::string path_;
  const std::string url_;
  const int fd_;
  const uint64_t total_;
  std::optional<uint64_t> offset_;  // how much the server has; nullopt: to be asked
  bool done_ = false;
  std::string answer_;  // the text of the last one
};

absl::StatusOr<std::string> Upload::Authorization(const std::string& content_range) const {
  RequestClaim claim{.method = "PUT",
                     .path = path_,
                     .audience = options_.audience,
                     .content_range = content_range,
                     .time = absl::ToUnixSeconds(client_.options().clock->Now()),
                     .nonce = MakeNonce()};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, SigningText(claim));
  RequestSignature signature{.key = options_.signer.key, .time = claim.time, .nonce = claim.nonce};
  LOCKSTEP_ASSIGN_OR_RETURN(signature.signature, options_.signer.sign(AsBytes(text)));
  return FormatAuthorization(signature);
}

absl::Status Upload::ReadAt(uint64_t offset, std::span<uint8_t> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "read the file to upload");
    if (got == 0) {
      return absl::FailedPreconditionError("the file to upload became shorter meanwhile");
    }
    offset += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
  }
  return absl::OkStatus();
}

absl::StatusOr<HttpHead> Upload::Put(const ContentRange& range) {
  const std::string content_range = FormatContentRange(range);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string authorization, Authorization(content_range));
  HttpExchange exchange{.url = url_, .method = "PUT"};
  exchange.headers = {"Content-Type: application/octet-stream",
                      absl::StrCat("Content-Range: ", content_range),
                      absl::StrCat("Authorization: ", authorization)};
  const uint64_t begin = range.first.value_or(0);
  if (range.first) exchange.body_bytes = *range.last - begin + 1;
  exchange.body = [this, begin](uint64_t offset, std::span<uint8_t> out) {
    return ReadAt(begin + offset, out);
  };
  answer_.clear();
  exchange.on_bytes = [this](ByteSpan bytes) {
    const size_t room = kAnswerBytesMax - answer_.size();
    answer_.append(AsChars(bytes).data(), std::min(room, bytes.size()));
    return absl::OkStatus();
  };
  return client_.Exchange(exchange);
}

// What the answer to a part, or to the question how much there is, means.
absl::Status Upload::Take(const HttpHead& head) {
  switch (head.code) {
    case 200:
    case 201:
      done_ = true;
      return absl::OkStatus();
    case 202:
    case 409:  // not where the server is
      if (!head.upload_offset || *head.upload_offset > total_) {
        return absl::FailedPreconditionError(
            absl::StrCat("the server answered ", head.code, " without a sensible Upload-Offset"));
      }
      offset_ = head.upload_offset;
      if (options_.progress) options_.progress(*offset_, total_);
      return absl::OkStatus();
    case 422:
      return absl::DataLossError(
          absl::StrCat("the server refused the bytes: ", absl::StripAsciiWhitespace(answer_)));
    default:
      return WithContext(UnexpectedCode(head.code), absl::StripAsciiWhitespace(answer_));
  }
}

absl::Status Upload::Run() {
  int failures = 0;
  uint64_t reached = 0;
  while (!done_) {
    ContentRange range{.total = total_};
    if (offset_ && *offset_ < total_) {
      range.first = *offset_;
      range.last = *offset_ + std::min(options_.part_bytes, total_ - *offset_) - 1;
    }
    const std::optional<uint64_t> before = offset_;
    absl::StatusOr<HttpHead> head = Put(range);
    absl::Status status = head.ok() ? Take(*head) : head.status();
    // An answer that changes nothing counts as a failure too.
    if (status.ok() && !done_ && before && *offset_ <= *before) {
      status = absl::UnavailableError("the server keeps nothing of what it is sent");
    }
    if (status.ok()) {
      if (offset_ && *offset_ > reached) {
        reached = *offset_;
        failures = 0;
      }
      continue;
    }
    if (!absl::IsUnavailable(status) || ++failures >= client_.options().tries_max) return status;
    offset_ = std::nullopt;
    LOCKSTEP_RETURN_IF_ERROR(
        client_.WaitBeforeRetry(failures, head.ok() ? head->retry_after : absl::ZeroDuration()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status UploadArtifact(HttpClient& client, const UploadOptions& options, const Digest& sha256,
                            const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
  const auto close = absl::MakeCleanup([fd] { ::close(fd); });
  struct stat info;
  if (::fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("stat ", path));
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  }
  Upload upload(client, options, sha256, fd, static_cast<uint64_t>(info.st_size));
  return WithContext(upload.Run(), absl::StrCat("upload of ", path, " to ", upload.url()));
}

}  // namespace lockstep::net
