// SPDX-License-Identifier: Apache-2.0
//
// Operators and workers.

#include <utility>

#include "coordinator/api/call.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kRecentMax = 100;
constexpr size_t kWorkersMax = 1000;

absl::Status WriteRecent(const Call& call, const AttestationFilter& filter, JsonWriter& json) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<AttestationSummary> recent,
                            NewestAttestationsOf(call.coordinator, filter, kRecentMax));
  json.ArrayField("recent");
  for (const AttestationSummary& attestation : recent) WriteListItem(attestation, json);
  json.EndArray();
  return absl::OkStatus();
}

absl::StatusOr<HttpResponse> OneOperator(const Call& call) {
  const Query query(call.request.query, {});
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const Digest key, ParseDigest(call.arguments[0], "operator"));
  LOCKSTEP_ASSIGN_OR_RETURN(const OperatorRow row, FindOperator(call.coordinator, key));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<WorkerRow> workers,
                            WorkersOf(call.coordinator, row.summary.id));
  if (workers.size() > kWorkersMax) workers.resize(kWorkersMax);
  JsonWriter json;
  json.BeginObject();
  WriteFields(row, json);
  json.ArrayField("workers");
  for (const WorkerRow& worker : workers) WriteListItem(worker, json);
  json.EndArray();
  AttestationFilter filter;
  filter.operator_key = key;
  LOCKSTEP_RETURN_IF_ERROR(WriteRecent(call, filter, json));
  json.EndObject();
  return JsonResponse(call.request, json.Take());
}

absl::StatusOr<HttpResponse> OneWorker(const Call& call) {
  const Query query(call.request.query, {});
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const Digest key, ParseDigest(call.arguments[0], "worker"));
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerRow row, FindWorker(call.coordinator, key));
  JsonWriter json;
  json.BeginObject();
  WriteFields(row, json);
  AttestationFilter filter;
  filter.worker_key = key;
  LOCKSTEP_RETURN_IF_ERROR(WriteRecent(call, filter, json));
  json.EndObject();
  return JsonResponse(call.request, json.Take());
}

template <typename Row>
absl::StatusOr<HttpResponse> All(const Call& call, Format format, absl::string_view name,
                                 Source<Row> source) {
  Query query(call.request.query, {"limit", "page"});
  const PageParameters page = ReadPage(query);
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  return ListResponse(call, format, name, page, std::move(source));
}

}  // namespace

std::vector<ApiRoute> KeyRoutes() {
  std::vector<ApiRoute> routes = {{"operators/*", &OneOperator}, {"workers/*", &OneWorker}};
  AddList(routes, "operators", [](const Call& call, Format format) {
    return All(call, format, "operators", Operators(call.coordinator));
  });
  AddList(routes, "workers", [](const Call& call, Format format) {
    return All(call, format, "workers", Workers(call.coordinator));
  });
  return routes;
}

}  // namespace lockstep::coordinator
