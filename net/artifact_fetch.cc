// SPDX-License-Identifier: Apache-2.0
//
// See artifact_fetch.h.
#include "net/artifact_fetch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/partial_file.h"
#include "base/status.h"
#include "net/http_range.h"

namespace lockstep::net {
namespace {

// Whoever delivers this much before it breaks has earned another round of tries.
constexpr uint64_t kProgressBytes = 1 << 20;
// Stands for those who gave what an earlier process left.
constexpr size_t kUnknown = static_cast<size_t>(-1);

struct Mirror {
  std::string url;           // of the artifact
  bool failed = false;       // for good: not asked again
  absl::Status status = {};  // its last error
};

class Fetch {
 public:
  Fetch(HttpClient& client, const FetchOptions& options, const ArtifactId& artifact,
        PartialFile file)
      : client_(client),
        options_(options),
        artifact_(artifact),
        total_(artifact.bytes),
        file_(std::move(file)) {
    for (const std::string& mirror : options.mirrors) {
      mirrors_.push_back(
          {.url = absl::StrCat(absl::StripSuffix(mirror, "/"), "/", artifact.sha256.ToHex())});
    }
    if (file_.bytes() > 0) givers_.insert(kUnknown);
    reached_ = file_.bytes();
  }

  absl::Status Run(const std::string& path);

 private:
  // What became of one try.
  enum class Outcome { kWhole, kMirrorFailed, kStop };

  Outcome AskEach(absl::Duration* retry_after, bool* progressed);
  bool Progressed();
  Outcome Ask(size_t mirror, absl::Duration* retry_after);
  Outcome Check(size_t mirror);
  absl::Status Exchange(size_t mirror, absl::Duration* retry_after);
  absl::Status OnHead(const HttpHead& head);
  absl::Status OnBytes(size_t mirror, ByteSpan bytes);
  absl::Status Restart();
  absl::Status Failure() const;
  bool WholeAlready() const { return total_ && file_.bytes() == *total_; }

  HttpClient& client_;
  const FetchOptions& options_;
  const ArtifactId& artifact_;
  std::optional<uint64_t> total_;
  PartialFile file_;
  std::vector<Mirror> mirrors_;
  std::set<size_t> givers_;  // whose bytes are in the file
  bool one_giver_ = false;   // from now on, bytes of one mirror at a time
  uint64_t reached_ = 0;     // up to where tries were rewarded
  bool ended_ = false;       // a mirror says that there is no more
  Digest digest_;            // of the file, once it was found whole
  absl::Status fatal_;       // ours, not a mirror's
};

absl::Status Fetch::Restart() {
  givers_.clear();
  ended_ = false;
  total_ = artifact_.bytes;
  return file_.Restart();
}

absl::Status Fetch::OnHead(const HttpHead& head) {
  const uint64_t begin = file_.bytes();
  std::optional<uint64_t> total;
  if (head.code == 206 || head.code == 416) {
    const absl::StatusOr<ContentRange> range = ParseContentRange(head.content_range);
    if (head.code == 416) {
      if (range.ok() && !range->first && range->total == begin && !artifact_.bytes) {
        total_ = begin;  // all of it came before we were stopped
        return absl::OkStatus();
      }
      return StatusOfCode(416);
    }
    if (!range.ok()) return absl::DataLossError(range.status().message());
    if (range->first != begin || !range->total || *range->last + 1 != *range->total) {
      return absl::DataLossError(absl::StrCat("expected the bytes from ", begin,
                                              " to the end, found \"", head.content_range, "\""));
    }
    total = range->total;
  } else if (head.code == 200) {
    if (begin > 0) {
      if (fatal_ = Restart(); !fatal_.ok()) return fatal_;
    }
    total = head.content_length;
  } else {
    return UnexpectedCode(head.code);
  }
  const uint64_t limit = artifact_.bytes.value_or(options_.bytes_max);
  if (!total) return absl::OkStatus();
  if (artifact_.bytes && *total != limit) {
    return absl::DataLossError(
        absl::StrCat("expected a file of ", limit, " bytes, found one of ", *total));
  }
  if (*total > limit) {
    return absl::OutOfRangeError(
        absl::StrCat("the file has ", *total, " bytes, and ", limit, " are allowed"));
  }
  total_ = total;
  return absl::OkStatus();
}

absl::Status Fetch::OnBytes(size_t mirror, ByteSpan bytes) {
  if (ended_) return absl::OkStatus();  // the text of an answer of 416
  const uint64_t limit = total_.value_or(options_.bytes_max);
  if (bytes.size() > limit - file_.bytes()) {
    const std::string message =
        absl::StrCat("the server sends more than the ", limit, " bytes expected");
    return total_ ? absl::DataLossError(message) : absl::OutOfRangeError(message);
  }
  givers_.insert(mirror);
  if (fatal_ = file_.Append(bytes); !fatal_.ok()) return fatal_;
  if (options_.progress) options_.progress(file_.bytes(), total_.value_or(0));
  return absl::OkStatus();
}

absl::Status Fetch::Exchange(size_t mirror, absl::Duration* retry_after) {
  HttpExchange exchange{.url = mirrors_[mirror].url};
  if (file_.bytes() > 0) {
    exchange.headers = {absl::StrCat("Range: bytes=", file_.bytes(), "-")};
  }
  exchange.on_head = [&](const HttpHead& head) {
    *retry_after = std::max(*retry_after, head.retry_after);
    LOCKSTEP_RETURN_IF_ERROR(OnHead(head));
    ended_ = head.code == 416;
    return absl::OkStatus();
  };
  exchange.on_bytes = [&](ByteSpan bytes) { return OnBytes(mirror, bytes); };
  LOCKSTEP_RETURN_IF_ERROR(client_.Exchange(exchange).status());
  if (!total_) total_ = file_.bytes();  // a server that does not say how long
  if (WholeAlready()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the answer ended after ", file_.bytes(), " of ", *total_, " bytes"));
}

// The file has all its bytes: are they the right ones?
Fetch::Outcome Fetch::Check(size_t mirror) {
  digest_ = file_.FinishDigest();
  if (digest_ == artifact_.sha256) return Outcome::kWhole;
  // Whose fault it is can be said if all came from one.
  const bool only_giver = givers_.empty() || givers_ == std::set<size_t>{mirror};
  if (mirror != kUnknown && only_giver) {
    mirrors_[mirror].failed = true;
    mirrors_[mirror].status = absl::DataLossError(absl::StrCat(
        "wrong bytes: expected digest ", artifact_.sha256.ToHex(), ", found ", digest_.ToHex()));
  } else {
    one_giver_ = true;
    reached_ = 0;
  }
  fatal_ = Restart();
  return fatal_.ok() ? Outcome::kMirrorFailed : Outcome::kStop;
}

Fetch::Outcome Fetch::Ask(size_t mirror, absl::Duration* retry_after) {
  if (one_giver_ && !givers_.empty() && givers_ != std::set<size_t>{mirror}) {
    if (fatal_ = Restart(); !fatal_.ok()) return Outcome::kStop;
  }
  const absl::Status status = Exchange(mirror, retry_after);
  if (!fatal_.ok()) return Outcome::kStop;
  if (status.ok()) return Check(mirror);
  if (absl::IsCancelled(status)) {
    fatal_ = status;
    return Outcome::kStop;
  }
  mirrors_[mirror].status = status;
  mirrors_[mirror].failed = !absl::IsUnavailable(status);
  return Outcome::kMirrorFailed;
}

Fetch::Outcome Fetch::AskEach(absl::Duration* retry_after, bool* progressed) {
  for (size_t mirror = 0; mirror < mirrors_.size(); ++mirror) {
    if (mirrors_[mirror].failed) continue;
    bool again = true;
    while (again) {
      const Outcome outcome = Ask(mirror, retry_after);
      if (outcome != Outcome::kMirrorFailed) return outcome;
      const bool further = Progressed();
      *progressed |= further;
      // Another mirror would have to begin again.
      again = one_giver_ && further && !mirrors_[mirror].failed;
    }
  }
  return Outcome::kMirrorFailed;
}

// Counted from the furthest point, so that nobody is paid twice for the same bytes.
bool Fetch::Progressed() {
  if (file_.bytes() < reached_ + kProgressBytes) return false;
  reached_ = file_.bytes();
  return true;
}

absl::Status Fetch::Failure() const {
  // What may pass outweighs what will not, and wrong bytes outweigh none.
  absl::StatusCode code = absl::StatusCode::kNotFound;
  std::string message;
  for (const Mirror& mirror : mirrors_) {
    if (mirror.status.ok()) continue;
    absl::StrAppend(&message, message.empty() ? "" : "; ", mirror.url, ": ",
                    mirror.status.message());
    if (absl::IsNotFound(mirror.status) || code == absl::StatusCode::kUnavailable) continue;
    if (absl::IsUnavailable(mirror.status) || code == absl::StatusCode::kNotFound) {
      code = mirror.status.code();
    }
  }
  if (message.empty()) return absl::UnavailableError("no mirror gave all of it");
  return absl::Status(code, message);
}

absl::Status Fetch::Run(const std::string& path) {
  if (mirrors_.empty()) return absl::InvalidArgumentError("no mirror is known");
  // What an earlier process left may be all of it.
  Outcome outcome = WholeAlready() ? Check(kUnknown) : Outcome::kMirrorFailed;
  for (int round = 1; outcome == Outcome::kMirrorFailed; ++round) {
    absl::Duration retry_after = absl::ZeroDuration();
    bool progressed = false;
    const bool joined = !one_giver_;
    outcome = AskEach(&retry_after, &progressed);
    if (outcome != Outcome::kMirrorFailed) break;
    if (joined && one_giver_) {  // begun again, which is nobody's failure yet
      round = 0;
      continue;
    }
    const bool all_failed = std::all_of(mirrors_.begin(), mirrors_.end(),
                                        [](const Mirror& mirror) { return mirror.failed; });
    if (progressed) round = 1;
    if (all_failed || round >= client_.options().tries_max) return Failure();
    LOCKSTEP_RETURN_IF_ERROR(client_.WaitBeforeRetry(round, retry_after));
  }
  if (outcome == Outcome::kStop) return fatal_;
  return file_.Commit(path);
}

}  // namespace

absl::Status FetchArtifact(HttpClient& client, const FetchOptions& options,
                           const ArtifactId& artifact, const std::string& path) {
  const std::string where = absl::StrCat("artifact ", artifact.sha256.ToHex());
  LOCKSTEP_ASSIGN_OR_RETURN(
      PartialFile file,
      PartialFile::Open(path + kPartialSuffix, artifact.bytes.value_or(options.bytes_max)), where);
  LOCKSTEP_RETURN_IF_ERROR(Fetch(client, options, artifact, std::move(file)).Run(path), where);
  return absl::OkStatus();
}

}  // namespace lockstep::net
