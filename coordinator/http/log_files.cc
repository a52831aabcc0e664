// SPDX-License-Identifier: Apache-2.0
//
// See log_files.h.
#include "coordinator/http/log_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/logging.h"
#include "coordinator/http/file_response.h"
#include "net/http_range.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kGroupsMax = 6;  // 10^18 tiles

// A number of 0 ... most, without leading zeros.
bool IsNumber(absl::string_view text, uint64_t most) {
  if (text.size() > 1 && text.front() == '0') return false;
  const auto value = net::ParseDecimal(text);
  return value && *value <= most;
}

bool IsGroup(absl::string_view text) {
  return text.size() == 3 && std::all_of(text.begin(), text.end(),
                                         [](unsigned char c) { return absl::ascii_isdigit(c); });
}

bool IsTileNumber(const std::vector<absl::string_view>& groups) {
  if (groups.empty() || groups.size() > kGroupsMax) return false;
  for (size_t i = 0; i < groups.size(); ++i) {
    absl::string_view group = groups[i];
    const bool last = i + 1 == groups.size();
    if (!last && !absl::ConsumePrefix(&group, "x")) return false;
    if (!IsGroup(group)) return false;
    if (i == 0 && !last && group == "000") return false;
  }
  return true;
}

}  // namespace

LogFileKind KindOfLogPath(absl::string_view path) {
  if (path == "/checkpoint") return LogFileKind::kCheckpoint;
  if (!absl::ConsumePrefix(&path, "/tile/")) return LogFileKind::kNone;
  std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  if (parts.size() < 2) return LogFileKind::kNone;
  if (parts[0] != "entries" && !IsNumber(parts[0], 63)) return LogFileKind::kNone;
  parts.erase(parts.begin());
  LogFileKind kind = LogFileKind::kFullTile;
  if (parts.size() >= 2 && absl::ConsumeSuffix(&parts[parts.size() - 2], ".p")) {
    kind = LogFileKind::kPartialTile;
    if (parts.back() == "0" || !IsNumber(parts.back(), 255)) return LogFileKind::kNone;
    parts.pop_back();
  }
  return IsTileNumber(parts) ? kind : LogFileKind::kNone;
}

void ServeLogFiles(std::shared_ptr<const Folder> folder, Router& router) {
  const auto serve = [folder = std::move(folder)](const HttpRequest& request) -> HttpResponse {
    const LogFileKind kind = KindOfLogPath(request.path);
    if (kind == LogFileKind::kNone) return TextResponse(404, "there is nothing here");
    auto file = folder->OpenBeneath(absl::string_view(request.path).substr(1));
    if (absl::IsNotFound(file.status())) return TextResponse(404, "there is nothing here");
    if (!file.ok()) {
      LOCKSTEP_LOG_ERROR("log file {}: {}", request.path, file.status());
      return TextResponse(503, "the log cannot be read");
    }
    if (kind == LogFileKind::kCheckpoint) {
      return FileResponse(
          request, *std::move(file),
          {.content_type = "text/plain; charset=utf-8", .cache_control = "no-cache, no-store"});
    }
    // A partial tile does not change either, but goes once the full one is there.
    const bool full = kind == LogFileKind::kFullTile;
    return FileResponse(request, *std::move(file),
                        {.content_type = "application/octet-stream",
                         .cache_control = full ? kImmutable : "public, max-age=60"});
  };
  router.Get("/checkpoint", serve, Router::Origins::kAny);
  router.Get("/tile/", serve, Router::Origins::kAny);
}

}  // namespace lockstep::coordinator
