// SPDX-License-Identifier: Apache-2.0
//
// Paths, answers and errors. See api.h.

#include "coordinator/api/api.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/logging.h"
#include "coordinator/api/call.h"
#include "coordinator/http/conditional.h"
#include "rpc/rpc_error.h"

namespace lockstep::coordinator {
namespace {

constexpr char kPrefix[] = "/api/v1/";
constexpr char kJsonType[] = "application/json; charset=utf-8";
constexpr uint64_t kLimitDefault = 100;
constexpr uint64_t kLimitMax = 1000;

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    default:
      return 503;
  }
}

// A path of the API in its parts, and who answers it.
struct Compiled {
  std::vector<std::string> parts;
  ApiHandler handler;

  bool Fits(const std::vector<std::string>& path) const {
    return std::equal(parts.begin(), parts.end(), path.begin(), path.end(),
                      [](const std::string& part, const std::string& found) {
                        return part == "*" ? !found.empty() : part == found;
                      });
  }
};

std::vector<Compiled> AllRoutes() {
  std::vector<Compiled> all;
  for (std::vector<ApiRoute>& routes :
       std::vector<std::vector<ApiRoute>>{RunRoutes(), StepRoutes(), KeyRoutes(), LogRoutes()}) {
    for (ApiRoute& route : routes) {
      all.push_back(
          {.parts = absl::StrSplit(route.path, '/'), .handler = std::move(route.handler)});
    }
  }
  return all;
}

absl::Status NotFound() {
  return rpc::WithReason(absl::NotFoundError("the API has no such address: see docs/api.md"),
                         "NOT_FOUND");
}

absl::StatusOr<HttpResponse> Answer(const Coordinator& coordinator, const ApiOptions& options,
                                    const std::vector<Compiled>& routes,
                                    const HttpRequest& request) {
  absl::string_view rest = request.path;
  if (!absl::ConsumePrefix(&rest, kPrefix)) return NotFound();
  const std::vector<std::string> path = absl::StrSplit(rest, '/');
  const auto route = std::find_if(routes.begin(), routes.end(),
                                  [&](const Compiled& route) { return route.Fits(path); });
  if (route == routes.end()) return NotFound();
  Call call{.coordinator = coordinator, .options = options, .request = request, .arguments = {}};
  for (size_t i = 0; i < path.size(); ++i) {
    if (route->parts[i] == "*") call.arguments.push_back(path[i]);
  }
  return route->handler(call);
}

}  // namespace

HttpResponse JsonResponse(const HttpRequest& request, std::string json) {
  json += '\n';
  const std::string etag = ETagOf(AsBytes(json));
  return Conditional(
      request, etag,
      {.content_type = kJsonType, .cache_control = "no-cache", .body = std::move(json)});
}

HttpResponse ErrorResponse(const absl::Status& error) {
  std::string reason = rpc::ReasonOf(error);
  std::string message(error.message());
  const int status = HttpStatusOf(error.code());
  if (status == 503 || reason.empty()) {
    // What went wrong inside is for the log, and not for strangers.
    LOCKSTEP_LOG_ERROR("api: {}", error);
    reason = "UNAVAILABLE";
    message = "this cannot be read now; try again";
  }
  JsonWriter json;
  json.BeginObject();
  json.ObjectField("error");
  json.Field("reason", reason);
  json.Field("message", message);
  json.EndObject();
  json.EndObject();
  return {.status = reason == "UNAVAILABLE" ? 503 : status,
          .content_type = kJsonType,
          .body = json.Take() + "\n"};
}

PageParameters ReadPage(Query& query) {
  return {.place = query.Number("page"),
          .limit = query.Number("limit", 1, kLimitMax).value_or(kLimitDefault)};
}

PageFrom<LeasePlace> ReadLeasePage(Query& query) {
  PageFrom<LeasePlace> page{.place = std::nullopt,
                            .limit = query.Number("limit", 1, kLimitMax).value_or(kLimitDefault)};
  const std::optional<std::string> text = query.Text("page");
  if (!text) return page;
  page.place = LeasePlace::Parse(*text);
  if (!page.place) query.Fail(RequestIsInvalid("page: expected one that the list gave"));
  return page;
}

void WriteNext(const std::optional<uint64_t>& next, JsonWriter& json) {
  json.Key("next");
  next ? json.Value(absl::StrCat(*next)) : json.Null();
  json.EndObject();
}

void WriteNext(const std::optional<LeasePlace>& next, JsonWriter& json) {
  json.Key("next");
  next ? json.Value(next->ToText()) : json.Null();
  json.EndObject();
}

HttpResponse Download(Format format, absl::string_view name,
                      std::function<absl::StatusOr<std::string>()> next) {
  const bool csv = format == Format::kCsv;
  return {.content_type =
              csv ? "text/csv; charset=utf-8; header=present" : "application/jsonl; charset=utf-8",
          .headers = {{"Content-Disposition", absl::StrCat("attachment; filename=\"", name,
                                                           csv ? ".csv" : ".jsonl", "\"")}},
          .body = GeneratedBody{std::move(next)}};
}

void ServeApi(const Coordinator& coordinator, const ApiOptions& options, Router& router) {
  const auto routes = std::make_shared<const std::vector<Compiled>>(AllRoutes());
  router.Get(
      "/api/",
      [&coordinator, options, routes](const HttpRequest& request) {
        absl::StatusOr<HttpResponse> answer = Answer(coordinator, options, *routes, request);
        return answer.ok() ? *std::move(answer) : ErrorResponse(answer.status());
      },
      Router::Origins::kAny);
}

}  // namespace lockstep::coordinator
