// SPDX-License-Identifier: Apache-2.0
//
// The server, runs, coverage, curves, attestations, disputes and leases of a run.

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "coordinator/api/call.h"
#include "coordinator/api/curves.h"
#include "coordinator/http/conditional.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kCheckpointsMax = 1000;
constexpr uint8_t kSkippedBit = 0x10;

absl::StatusOr<HttpResponse> Server(const Call& call) {
  const Query query(call.request.query, {});
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  const audit::NoteKey& key = call.coordinator.log_key();
  JsonWriter json;
  json.BeginObject();
  json.Field("origin", call.coordinator.origin());
  json.Field("log_key", key.ToText());
  json.Field("log_public_key", KeyText(key.key));
  json.Field("version", call.options.version);
  json.Field("time_ms", call.coordinator.UnixMs());
  json.Field("artifact_url", call.options.artifact_url());
  json.Field("worker_url", call.options.worker_url());
  json.Field("event_epoch", call.options.event_epoch);
  json.Field("log_size", call.coordinator.log().size());
  json.EndObject();
  return JsonResponse(call.request, json.Take());
}

absl::StatusOr<HttpResponse> Runs(const Call& call) {
  Query query(call.request.query, {"limit", "page"});
  const PageParameters page = ReadPage(query);
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  std::vector<Digest> runs;
  std::optional<uint64_t> next;
  call.coordinator.Read([&](const audit::Ledger& ledger) {
    const uint64_t count = ledger.runs().size();
    const uint64_t begin = std::min<uint64_t>(page.place.value_or(0), count);
    const uint64_t end = std::min<uint64_t>(begin + page.limit, count);
    for (uint64_t i = begin; i < end; ++i) runs.push_back(ledger.runs()[i].run_id());
    if (end < count) next = end;
  });
  JsonWriter json;
  json.BeginObject();
  json.ArrayField("runs");
  for (const Digest& run : runs) {
    LOCKSTEP_ASSIGN_OR_RETURN(const RunSummary summary, SummarizeRun(call.coordinator, run));
    json.BeginObject();
    WriteRun(summary, json);
    json.EndObject();
  }
  json.EndArray();
  WriteNext(next, json);
  return JsonResponse(call.request, json.Take());
}

struct Checkpoint {
  audit::CheckpointFacts facts;
  Digest by;
};

absl::Status WriteCheckpoints(const Call& call, const std::vector<Checkpoint>& checkpoints,
                              JsonWriter& json) {
  json.ArrayField("checkpoints");
  for (const auto& [facts, by] : checkpoints) {
    std::vector<Digest> files = {facts.announcement.manifest};
    for (const audit::CheckpointFile& file : facts.announcement.files) files.push_back(file.sha256);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Digest> missing,
                              call.coordinator.MissingArtifacts(files));
    json.BeginObject();
    json.Field("step", facts.announcement.next_step);
    json.Field("log_index", facts.log_index);
    json.Field("by", by);
    json.Field("chain", facts.announcement.chain);
    json.Field("manifest", facts.announcement.manifest);
    json.Field("available", missing.empty());
    json.EndObject();
  }
  json.EndArray();
  return absl::OkStatus();
}

absl::StatusOr<HttpResponse> Run(const Call& call) {
  const Query query(call.request.query, {});
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, call.RunArgument());
  LOCKSTEP_ASSIGN_OR_RETURN(const RunSummary summary, SummarizeRun(call.coordinator, run_id));
  std::string manifest;
  std::vector<Checkpoint> checkpoints;
  size_t checkpoint_count = 0;
  call.coordinator.Read([&](const audit::Ledger& ledger) {
    const audit::RunLedger& run = *ledger.FindRun(run_id);
    manifest = EncodeRunManifest(run.registration().manifest);
    checkpoint_count = run.checkpoints().size();
    for (size_t i = checkpoint_count - std::min(checkpoint_count, kCheckpointsMax);
         i < checkpoint_count; ++i) {
      const audit::CheckpointFacts& facts = run.checkpoints()[i];
      checkpoints.push_back({facts, KeyText(ledger.keys().keys()[facts.key_id].key)});
    }
  });
  std::stable_sort(checkpoints.begin(), checkpoints.end(), [](const auto& a, const auto& b) {
    return a.facts.announcement.next_step < b.facts.announcement.next_step;
  });
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, call.coordinator.ReadStore());
  const absl::StatusOr<EntryRow> registration = view->Entry(summary.log_index);
  if (!registration.ok() && !absl::IsNotFound(registration.status())) return registration.status();
  JsonWriter json;
  json.BeginObject();
  WriteRun(summary, json);
  json.Field("manifest", manifest);
  json.Key("registration");
  registration.ok() ? json.Value(registration->envelope) : json.Null();
  LOCKSTEP_RETURN_IF_ERROR(WriteCheckpoints(call, checkpoints, json));
  json.Field("checkpoint_count", checkpoint_count);
  json.EndObject();
  return JsonResponse(call.request, json.Take());
}

absl::StatusOr<HttpResponse> GetCoverage(const Call& call) {
  const Query query(call.request.query, {});
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, call.RunArgument());
  LOCKSTEP_ASSIGN_OR_RETURN(const Coverage coverage, call.coordinator.CoverageOf(run_id));
  std::string bytes(coverage.states.size(), '\0');
  call.coordinator.Read([&](const audit::Ledger&, const Tallies& tallies) {
    const RunTallies& run = tallies.run(tallies.PlaceOf(run_id));
    for (size_t i = 0; i < bytes.size(); ++i) {
      const bool skipped = run.points[i].outcome != audit::StepOutcome::kUpdated;
      bytes[i] = static_cast<char>((static_cast<uint8_t>(coverage.states[i]) + 1) |
                                   (skipped ? kSkippedBit : 0));
    }
  });
  const std::string etag = ETagOf(AsBytes(bytes));
  return Conditional(call.request, etag,
                     {.content_type = "application/octet-stream",
                      .cache_control = "no-cache",
                      .headers = {{"Lockstep-First-Step", absl::StrCat(coverage.first_step)}},
                      .body = std::move(bytes)});
}

absl::StatusOr<HttpResponse> Curves(const Call& call) {
  Query query(call.request.query, {"begin", "end", "buckets"});
  CurveQuery curves;
  curves.begin = query.Number("begin").value_or(curves.begin);
  curves.end = query.Number("end").value_or(curves.end);
  curves.buckets = query.Number("buckets", 1, 4000).value_or(curves.buckets);
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, call.RunArgument());
  LOCKSTEP_ASSIGN_OR_RETURN(std::string json, CurvesJson(call.coordinator, run_id, curves));
  return JsonResponse(call.request, std::move(json));
}

absl::StatusOr<HttpResponse> Attestations(const Call& call, Format format) {
  Query query(call.request.query,
              {"operator", "worker", "backend", "verdict", "step", "newest", "limit", "page"});
  AttestationFilter filter;
  filter.operator_key = query.Key("operator");
  filter.worker_key = query.Key("worker");
  filter.backend = query.Text("backend");
  if (const auto verdict = query.Choice("verdict", {"mismatch", "match"})) {
    filter.match = *verdict == 1;
  }
  filter.step = query.Number("step");
  filter.newest = query.Flag("newest");
  const PageParameters page = ReadPage(query);
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, call.RunArgument());
  LOCKSTEP_ASSIGN_OR_RETURN(Source<AttestationSummary> source,
                            AttestationsOf(call.coordinator, run_id, filter));
  return ListResponse(call, format, "attestations", page, std::move(source));
}

absl::StatusOr<HttpResponse> DisputesResponse(const Call& call, Format format,
                                              const std::optional<Digest>& run_id) {
  Query query(call.request.query, {"newest", "limit", "page"});
  const bool newest = query.Flag("newest");
  const PageParameters page = ReadPage(query);
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  LOCKSTEP_ASSIGN_OR_RETURN(Source<DisputeSummary> source,
                            DisputesOf(call.coordinator, run_id, newest));
  return ListResponse(call, format, "disputes", page, std::move(source));
}

absl::StatusOr<HttpResponse> LeasesResponse(const Call& call, Format format,
                                            const std::optional<Digest>& run_id) {
  Query query(call.request.query, {"operator", "worker", "state", "limit", "page"});
  LeaseFilter filter{
      .run = run_id, .operator_key = query.Key("operator"), .worker_key = query.Key("worker")};
  constexpr size_t kUnfinished = kLeaseStates.size();
  if (const auto state = query.Choice(
          "state", {"live", "done", "canceled", "inconclusive", "expired", "unfinished"})) {
    filter.states = {static_cast<LeaseState>(*state)};
    if (*state == kUnfinished) {
      filter.states = {LeaseState::kCanceled, LeaseState::kInconclusive, LeaseState::kExpired};
    }
  }
  const PageFrom<LeasePlace> page = ReadLeasePage(query);
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  LOCKSTEP_ASSIGN_OR_RETURN(auto source, LeasesOf(call.coordinator, filter));
  return ListResponse(call, format, "leases", page, std::move(source));
}

}  // namespace

std::vector<ApiRoute> RunRoutes() {
  std::vector<ApiRoute> routes = {{"server", &Server},
                                  {"runs", &Runs},
                                  {"runs/*", &Run},
                                  {"runs/*/coverage", &GetCoverage},
                                  {"runs/*/curves", &Curves}};
  AddList(routes, "runs/*/attestations", &Attestations);
  AddList(routes, "runs/*/disputes",
          [](const Call& call, Format format) -> absl::StatusOr<HttpResponse> {
            LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, call.RunArgument());
            return DisputesResponse(call, format, run_id);
          });
  AddList(routes, "disputes", [](const Call& call, Format format) {
    return DisputesResponse(call, format, std::nullopt);
  });
  AddList(routes, "runs/*/leases",
          [](const Call& call, Format format) -> absl::StatusOr<HttpResponse> {
            LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, call.RunArgument());
            return LeasesResponse(call, format, run_id);
          });
  AddList(routes, "leases", [](const Call& call, Format format) {
    return LeasesResponse(call, format, std::nullopt);
  });
  return routes;
}

}  // namespace lockstep::coordinator
