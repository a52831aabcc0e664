// SPDX-License-Identifier: Apache-2.0
//
// The log: its head, its entries, their receipts.

#include <memory>
#include <utility>

#include "audit/log/log_checkpoint.h"
#include "audit/log/signed_note.h"
#include "coordinator/api/call.h"
#include "coordinator/core/reasons.h"

namespace lockstep::coordinator {
namespace {

absl::StatusOr<HttpResponse> Head(const Call& call) {
  const Query query(call.request.query, {});
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  const std::string note = call.coordinator.log().Checkpoint();
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::SignedNote parsed, audit::ParseSignedNote(note));
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogCheckpoint head,
                            audit::ParseLogCheckpoint(parsed.text));
  JsonWriter json;
  json.BeginObject();
  json.Field("checkpoint", note);
  json.Field("size", head.size);
  json.Field("root", head.root);
  json.Field("key", call.coordinator.log_key().ToText());
  json.Field("origin", call.coordinator.origin());
  json.EndObject();
  return JsonResponse(call.request, json.Take());
}

absl::StatusOr<HttpResponse> Entries(const Call& call, Format format) {
  Query query(call.request.query, {"begin", "newest", "limit", "page"});
  const std::optional<uint64_t> begin = query.Number("begin");
  const bool newest = query.Flag("newest");
  const PageParameters page = ReadPage(query);
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  return ListResponse(call, format, "entries", page, LogEntries(call.coordinator, begin, newest));
}

absl::Status EntryUnknown() {
  return Refused(absl::StatusCode::kNotFound, "ENTRY_UNKNOWN", "the log has no such entry");
}

absl::StatusOr<HttpResponse> EntryPage(const Call& call, const absl::StatusOr<EntryRow>& row) {
  if (absl::IsNotFound(row.status()) ||
      (row.ok() && row->log_index >= call.coordinator.log().size())) {
    return EntryUnknown();
  }
  LOCKSTEP_RETURN_IF_ERROR(row.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string receipt, call.coordinator.Receipt(row->log_index));
  JsonWriter json;
  json.BeginObject();
  WriteFields(*row, json);
  json.Field("envelope", row->envelope);
  json.Field("receipt", receipt);
  json.EndObject();
  return JsonResponse(call.request, json.Take());
}

absl::StatusOr<HttpResponse> EntryByIndex(const Call& call) {
  const Query query(call.request.query, {});
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t index, ParseNumber(call.arguments[0], "index"));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, call.coordinator.ReadStore());
  return EntryPage(call, view->Entry(index));
}

absl::StatusOr<HttpResponse> EntryByLeaf(const Call& call) {
  const Query query(call.request.query, {});
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const Digest leaf_hash, ParseDigest(call.arguments[0], "leaf hash"));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, call.coordinator.ReadStore());
  return EntryPage(call, view->EntryByLeafHash(leaf_hash));
}

}  // namespace

std::vector<ApiRoute> LogRoutes() {
  std::vector<ApiRoute> routes = {
      {"log", &Head}, {"log/entries/by-leaf/*", &EntryByLeaf}, {"log/entries/*", &EntryByIndex}};
  AddList(routes, "log/entries", &Entries);
  return routes;
}

}  // namespace lockstep::coordinator
