// SPDX-License-Identifier: Apache-2.0
//
// Private to the API's sources: a request whose path is one of the API's, and answers to it.

#ifndef LOCKSTEP_COORDINATOR_API_CALL_H_
#define LOCKSTEP_COORDINATOR_API_CALL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "coordinator/api/api.h"
#include "coordinator/api/csv_writer.h"
#include "coordinator/api/lists.h"
#include "coordinator/api/query.h"
#include "coordinator/http/message.h"

namespace lockstep::coordinator {

struct Call {
  const Coordinator& coordinator;
  const ApiOptions& options;
  const HttpRequest& request;
  std::vector<std::string> arguments;  // what stands for "*" in the path

  absl::StatusOr<Digest> RunArgument() const { return ParseDigest(arguments[0], "run"); }
};

using ApiHandler = std::function<absl::StatusOr<HttpResponse>(const Call& call)>;

struct ApiRoute {
  std::string path;  // below /api/v1/; a part that is "*" fits any one
  ApiHandler handler;
};
std::vector<ApiRoute> RunRoutes();   // run_pages.cc
std::vector<ApiRoute> StepRoutes();  // step_pages.cc
std::vector<ApiRoute> KeyRoutes();   // key_pages.cc
std::vector<ApiRoute> LogRoutes();   // log_pages.cc

// 200, or 304 if the reader has it.
HttpResponse JsonResponse(const HttpRequest& request, std::string json);
HttpResponse ErrorResponse(const absl::Status& error);

// Where a page begins, and how long it is: the parameters "limit" and "page".
template <typename Place>
struct PageFrom {
  std::optional<Place> place;
  size_t limit;
};
using PageParameters = PageFrom<uint64_t>;
PageParameters ReadPage(Query& query);
// The same of a list of leases.
PageFrom<LeasePlace> ReadLeasePage(Query& query);

// "next", and the end of the answer's object.
void WriteNext(const std::optional<uint64_t>& next, JsonWriter& json);
void WriteNext(const std::optional<LeasePlace>& next, JsonWriter& json);

enum class Format { kJson, kCsv, kJsonLines };
HttpResponse Download(Format format, absl::string_view name,
                      std::function<absl::StatusOr<std::string>()> next);

inline void WriteListItem(const DisputeSummary& row, JsonWriter& json) { WriteDispute(row, json); }
template <typename Row>
void WriteListItem(const Row& row, JsonWriter& json) {
  json.BeginObject();
  WriteRow(row, json);
  json.EndObject();
}

// One page of a list, as {"NAME":[...],"next":...}.
template <typename Row, typename Place>
absl::StatusOr<HttpResponse> ListPage(const Call& call, absl::string_view name,
                                      const PageFrom<Place>& page,
                                      const Source<Row, Place>& source) {
  using Rows = RowsFrom<Row, Place>;
  LOCKSTEP_ASSIGN_OR_RETURN(const Rows rows, source(page.place, page.limit));
  JsonWriter json;
  json.BeginObject();
  json.ArrayField(name);
  for (const Row& row : rows.rows) WriteListItem(row, json);
  json.EndArray();
  WriteNext(rows.next, json);
  return JsonResponse(call.request, json.Take());
}

// All of a list, a few hundred rows at a time. Nothing is held but those.
template <typename Row, typename Place = uint64_t>
class Export {
 public:
  Export(Format format, Source<Row, Place> source) : format_(format), source_(std::move(source)) {}

  absl::StatusOr<std::string> Next() {
    std::string bytes;
    if (!begun_ && format_ == Format::kCsv) {
      CsvWriter csv;
      WriteOne(Row(), csv);
      bytes = csv.TakeHeader();
    }
    begun_ = true;
    while (bytes.empty() && !ended_) {
      constexpr size_t kRowsAtOnce = 256;
      LOCKSTEP_ASSIGN_OR_RETURN(const Rows rows, source_(place_, kRowsAtOnce));
      place_ = rows.next;
      ended_ = !rows.next.has_value();
      CsvWriter csv;
      for (const Row& row : rows.rows) {
        if (format_ == Format::kCsv) {
          WriteOne(row, csv);
        } else {
          JsonWriter json;
          WriteOne(row, json);
          absl::StrAppend(&bytes, json.text(), "\n");
        }
      }
      bytes += csv.TakeRows();
    }
    return bytes;
  }

 private:
  using Rows = RowsFrom<Row, Place>;

  template <typename Writer>
  static void WriteOne(const Row& row, Writer& out) {
    out.BeginObject();
    WriteRow(row, out);
    out.EndObject();
  }

  const Format format_;
  const Source<Row, Place> source_;
  std::optional<Place> place_;
  bool begun_ = false;
  bool ended_ = false;
};

// A list by itself ("limit" and "page" are read from the query), or all of it as a file.
template <typename Row, typename Place>
absl::StatusOr<HttpResponse> ListResponse(const Call& call, Format format, absl::string_view name,
                                          const PageFrom<Place>& page, Source<Row, Place> source) {
  if (format == Format::kJson) return ListPage(call, name, page, source);
  const auto all = std::make_shared<Export<Row, Place>>(format, std::move(source));
  return Download(format, name, [all] { return all->Next(); });
}

// Routes of a list: its path, and that with ".csv" and ".jsonl".
inline void AddList(std::vector<ApiRoute>& routes, const std::string& path,
                    const std::function<absl::StatusOr<HttpResponse>(const Call&, Format)>& list) {
  for (const auto& [suffix, format] :
       {std::pair("", Format::kJson), std::pair(".csv", Format::kCsv),
        std::pair(".jsonl", Format::kJsonLines)}) {
    routes.push_back({absl::StrCat(path, suffix),
                      [list, format = format](const Call& call) { return list(call, format); }});
  }
}

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_API_CALL_H_
