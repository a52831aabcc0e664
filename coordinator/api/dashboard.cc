// SPDX-License-Identifier: Apache-2.0
//
// See dashboard.h.

#include "coordinator/api/dashboard.h"

#include <zlib.h>

#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/logging.h"
#include "base/status.h"
#include "coordinator/http/conditional.h"
#include "coordinator/http/file_response.h"
#include "coordinator/http/request_head.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kFilesMax = 1'000;
constexpr size_t kBytesMax = 64 << 20;

constexpr char kPolicy[] =
    "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; "
    "form-action 'none'; img-src 'self' data:";

constexpr char kNotBuilt[] =
    "<!doctype html>\n"
    "<html lang=\"en\"><head><meta charset=\"utf-8\"><title>lockstep coordinator</title></head>\n"
    "<body><h1>lockstep coordinator</h1>\n"
    "<p>This coordinator was built without the dashboard. To have it, build it first:</p>\n"
    "<pre>cd web &amp;&amp; npm ci &amp;&amp; npm run build</pre>\n"
    "<p>then build the coordinator again, or start it with "
    "<code>serve --web-root web/dist</code>.</p>\n"
    "<p>What it would show is at <a href=\"/api/v1/runs\">/api/v1/runs</a>; "
    "<code>docs/api.md</code> says what else there is.</p>\n"
    "</body></html>\n";

struct Type {
  absl::string_view extension;
  absl::string_view type;
  bool text;  // worth compressing
};
constexpr std::array<Type, 14> kTypes = {{
    {"html", "text/html; charset=utf-8", true},
    {"js", "text/javascript; charset=utf-8", true},
    {"mjs", "text/javascript; charset=utf-8", true},
    {"css", "text/css; charset=utf-8", true},
    {"svg", "image/svg+xml", true},
    {"json", "application/json; charset=utf-8", true},
    {"map", "application/json; charset=utf-8", true},
    {"webmanifest", "application/manifest+json", true},
    {"txt", "text/plain; charset=utf-8", true},
    {"png", "image/png", false},
    {"ico", "image/x-icon", false},
    {"webp", "image/webp", false},
    {"woff2", "font/woff2", false},
    {"wasm", "application/wasm", false},
}};
constexpr Type kUnknownType = {"", "application/octet-stream", false};

const Type& TypeOf(absl::string_view path) {
  const size_t dot = path.rfind('.');
  for (const Type& type : kTypes) {
    if (dot != absl::string_view::npos && path.substr(dot + 1) == type.extension) return type;
  }
  return kUnknownType;
}

// A file as it is sent.
struct Asset {
  std::string content_type;
  std::string cache_control;
  // By coding: as it is, gzip, br; each with a tag of its own. Empty where it would be no smaller.
  struct Form {
    absl::string_view coding;
    std::string bytes;
    std::string etag;
  };
  std::vector<Form> forms;  // best first, the plain one last
};

// Whether the client takes a coding: listed, and not with a weight of 0 (RFC 9110 section 12.5.3).
bool Accepts(const HttpRequest& request, absl::string_view coding) {
  const std::optional<absl::string_view> list = request.Header("accept-encoding");
  if (!list) return false;
  for (const absl::string_view item : absl::StrSplit(*list, ',')) {
    const std::pair<absl::string_view, absl::string_view> both =
        absl::StrSplit(item, absl::MaxSplits(';', 1));
    if (absl::StripAsciiWhitespace(both.first) != coding) continue;
    absl::string_view weight = absl::StripAsciiWhitespace(both.second);
    double value = 1;
    return !absl::ConsumePrefix(&weight, "q=") || (absl::SimpleAtod(weight, &value) && value > 0);
  }
  return false;
}

Asset MakeAsset(const std::string& path, DashboardFiles& files) {
  const Type& type = TypeOf(path);
  const bool hashed = absl::StartsWith(path, "assets/");
  Asset asset{.content_type = std::string(type.type),
              .cache_control = hashed ? kImmutable : "no-cache",
              .forms = {}};
  std::string plain = std::move(files[path]);
  const size_t size = plain.size();
  const auto add = [&](absl::string_view coding, std::string bytes) {
    if (!coding.empty() && (bytes.empty() || bytes.size() >= size)) return;
    std::string etag = ETagOf(AsBytes(bytes));
    asset.forms.push_back({coding, std::move(bytes), std::move(etag)});
  };
  const auto beside = [&](absl::string_view suffix) {
    const auto found = files.find(absl::StrCat(path, suffix));
    return found == files.end() ? std::string() : found->second;
  };
  if (type.text) {
    add("br", beside(".br"));
    std::string gzip = beside(".gz");
    add("gzip", gzip.empty() ? Gzip(plain) : std::move(gzip));
  }
  add("", std::move(plain));
  return asset;
}

class Dashboard {
 public:
  explicit Dashboard(DashboardFiles files) {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : files) {
      const bool compressed = absl::EndsWith(name, ".gz") || absl::EndsWith(name, ".br");
      if (!compressed) names.push_back(name);
    }
    for (const std::string& name : names) assets_.emplace(name, MakeAsset(name, files));
  }

  HttpResponse Get(const HttpRequest& request) const {
    absl::string_view path = request.path;
    absl::ConsumePrefix(&path, "/");
    auto found = assets_.find(std::string(path));
    if (found == assets_.end()) {
      // Pages that the dashboard makes have no "." in their last part; a file that is not there is
      // not one of them.
      const absl::string_view last = path.substr(path.rfind('/') + 1);
      const bool page = !absl::StrContains(last, '.') && !absl::StartsWith(path, "assets/");
      if (!page) return TextResponse(404, "there is nothing here");
      found = assets_.find("index.html");
    }
    if (found == assets_.end()) return NotBuilt();
    return Respond(request, found->second);
  }

 private:
  static HttpResponse NotBuilt() {
    return {.content_type = "text/html; charset=utf-8", .body = std::string(kNotBuilt)};
  }

  static HttpResponse Respond(const HttpRequest& request, const Asset& asset) {
    const Asset::Form* form = &asset.forms.back();
    for (const Asset::Form& candidate : asset.forms) {
      if (!candidate.coding.empty() && !Accepts(request, candidate.coding)) continue;
      form = &candidate;
      break;
    }
    HttpResponse response{.content_type = asset.content_type,
                          .cache_control = asset.cache_control,
                          .content_security_policy = kPolicy,
                          .body = form->bytes};
    if (asset.forms.size() > 1) response.headers.emplace_back("Vary", "Accept-Encoding");
    if (!form->coding.empty()) {
      response.headers.emplace_back("Content-Encoding", std::string(form->coding));
    }
    return Conditional(request, form->etag, std::move(response));
  }

  std::map<std::string, Asset> assets_;
};

}  // namespace

std::string Gzip(absl::string_view bytes) {
  constexpr int kWindowAndGzip = 15 + 16;
  constexpr int kMemory = 8;
  z_stream stream = {};
  LOCKSTEP_CHECK(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kWindowAndGzip, kMemory,
                              Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int ended = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  LOCKSTEP_CHECK(ended == Z_STREAM_END);
  return out;
}

absl::StatusOr<DashboardFiles> ReadDashboard(const std::string& folder) {
  namespace fs = std::filesystem;
  DashboardFiles files;
  size_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_symlink() || !entry->is_regular_file()) continue;
    const std::string name = fs::relative(entry->path(), folder, error).generic_string();
    if (error || !IsSafePath(absl::StrCat("/", name))) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(std::string content, ReadFile(entry->path().string(), kBytesMax));
    bytes += content.size();
    if (files.size() == kFilesMax || bytes > kBytesMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat(folder, ": expected at most ", kFilesMax, " files of ", kBytesMax >> 20,
                       " MiB in all: is this the dashboard's build (web/dist)?"));
    }
    files.emplace(name, std::move(content));
  }
  if (error) return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
  if (files.count("index.html") == 0) {
    return absl::NotFoundError(
        absl::StrCat(folder, " has no index.html: expected the dashboard's build (web/dist)"));
  }
  return files;
}

void ServeDashboard(DashboardFiles files, Router& router) {
  const auto dashboard = std::make_shared<const Dashboard>(std::move(files));
  router.Get("/", [dashboard](const HttpRequest& request) { return dashboard->Get(request); });
}

}  // namespace lockstep::coordinator
