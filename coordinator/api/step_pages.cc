// SPDX-License-Identifier: Apache-2.0
//
// Steps of a run, and all there is about one of them.

#include <memory>
#include <utility>

#include "audit/transcript.h"
#include "base/encoding.h"
#include "coordinator/api/call.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kAttestationsMax = 100;
// Envelopes on a page; those of further attestations are left out.
constexpr size_t kEnvelopeBytesMax = 3 << 20;

absl::StatusOr<HttpResponse> Steps(const Call& call, Format format) {
  Query query(call.request.query, {"begin", "state", "limit", "page"});
  const std::optional<uint64_t> begin = query.Number("begin");
  const std::optional<audit::StepState> state = query.State("state");
  const PageParameters page = ReadPage(query);
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, call.RunArgument());
  LOCKSTEP_ASSIGN_OR_RETURN(Source<StepSummary> source,
                            StepsOf(call.coordinator, run_id, begin, state));
  return ListResponse(call, format, "steps", page, std::move(source));
}

struct LeaseView {
  StepLease lease;
  Digest operator_key;
  std::string operator_name;
};

// All there is about a step in memory.
struct StepPage {
  StepSummary step;
  Digest chain;
  std::vector<AttestationSummary> attestations;  // the first of them
  std::optional<audit::SecondRecord> second;
  std::vector<audit::DisputeFacts> disputes;
  std::vector<LeaseView> leases;
  int openings_needed = 0;
  uint64_t transcript_leaves = 0;
  uint64_t first_step = 0;
  uint64_t last_step = 0;
};

absl::StatusOr<StepPage> MakePage(const Coordinator& coordinator, const Digest& run_id,
                                  uint64_t number) {
  StepPage page;
  const std::vector<StepLease> leases = coordinator.LeasesOn(run_id, number);
  absl::Status status;
  coordinator.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
    const audit::RunLedger* run = ledger.FindRun(run_id);
    const audit::StepRecord* record = run == nullptr ? nullptr : run->FindRecord(number);
    if (record == nullptr) {
      status = run == nullptr ? RunUnknown() : StepUnknown();
      return;
    }
    const uint64_t offset = number - run->first_step();
    audit::StepState state = run->states()[offset];
    if (state == audit::StepState::kUnaudited && !leases.empty())
      state = audit::StepState::kClaimed;
    page.step = SummarizeStep(ledger, tallies, *run, offset, state);
    page.chain = *run->ChainBefore(number + 1);
    for (const uint32_t id : run->AttestationsOf(number)) {
      if (page.attestations.size() == kAttestationsMax) break;
      page.attestations.push_back(SummarizeAttestation(ledger, tallies, *run, id));
    }
    if (const audit::SecondRecord* second = run->FindSecondRecord(number)) page.second = *second;
    for (const audit::DisputeFacts& dispute : ledger.disputes()) {
      if (dispute.step == number && ledger.runs()[dispute.run].run_id() == run_id) {
        page.disputes.push_back(dispute);
      }
    }
    for (const StepLease& lease : leases) {
      const auto& keys = ledger.keys().keys();
      const audit::OperatorFacts& who = ledger.keys().operators()[keys[lease.key_id].operator_id];
      page.leases.push_back({lease, KeyText(keys[who.key_id].key), who.name});
    }
    page.openings_needed = run->OpeningsNeeded(number, run->registration().quorum);
    page.transcript_leaves =
        audit::TranscriptLeavesOf(run->registration().manifest, record->tokens_before);
    page.first_step = run->first_step();
    page.last_step = run->first_step() + run->records().size() - 1;
  });
  if (!status.ok()) return status;
  return page;
}

void WriteRoots(const audit::StepRecord& record, JsonWriter& json) {
  json.ObjectField("roots");
  json.Field("parameters", record.parameters);
  json.Field("first_moment", record.first_moment);
  json.Field("second_moment", record.second_moment);
  json.Field("gradient", record.gradient);
  json.Field("windows", record.windows);
  json.Field("transcript", record.transcript);
  json.Field("cursor", record.cursor);
  json.EndObject();
}

// The envelope of an entry, or null while it is not on the disk.
absl::Status WriteEnvelope(StoreView& view, absl::string_view name, uint64_t log_index,
                           JsonWriter& json) {
  const absl::StatusOr<EntryRow> row = view.Entry(log_index);
  if (!row.ok() && !absl::IsNotFound(row.status())) return row.status();
  json.Key(name);
  row.ok() ? json.Value(row->envelope) : json.Null();
  return absl::OkStatus();
}

absl::Status WriteAttestations(const StepPage& page, const Digest& run_id, StoreView& view,
                               JsonWriter& json) {
  std::vector<uint64_t> indices;
  for (const AttestationSummary& summary : page.attestations) indices.push_back(summary.log_index);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::optional<AttestationDetails>> details,
                            ReadDetails(view, run_id, page.step.record.step, indices));
  size_t bytes = 0;
  json.ArrayField("attestations");
  for (size_t i = 0; i < page.attestations.size(); ++i) {
    if (details[i]) bytes += details[i]->envelope.size();
    const bool shown = details[i] && bytes <= kEnvelopeBytesMax;
    json.BeginObject();
    WriteFields(page.attestations[i], shown ? &*details[i] : nullptr, json);
    json.EndObject();
  }
  json.EndArray();
  return absl::OkStatus();
}

absl::Status WriteSecond(const StepPage& page, StoreView& view, JsonWriter& json) {
  if (!page.second) {
    json.Field("second_record", std::nullopt);
    return absl::OkStatus();
  }
  json.ObjectField("second_record");
  json.Field("log_index", page.second->entry.log_index);
  json.Field("record", Base64Encode(AsBytes(EncodeStepRecord(page.second->record))));
  LOCKSTEP_RETURN_IF_ERROR(WriteEnvelope(view, "envelope", page.second->entry.log_index, json));
  json.EndObject();
  return absl::OkStatus();
}

absl::Status WriteDisputes(const Coordinator& coordinator, const StepPage& page, StoreView& view,
                           JsonWriter& json) {
  json.ArrayField("disputes");
  size_t bytes = 0;
  for (const audit::DisputeFacts& facts : page.disputes) {
    if (bytes > kEnvelopeBytesMax) break;
    const absl::StatusOr<DisputeSummary> dispute = SummarizeDispute(coordinator, view, facts);
    if (absl::IsNotFound(dispute.status())) continue;  // not on the disk yet
    LOCKSTEP_RETURN_IF_ERROR(dispute.status());
    bytes += dispute->envelope.size();
    WriteDispute(*dispute, json);
  }
  json.EndArray();
  return absl::OkStatus();
}

absl::StatusOr<HttpResponse> Step(const Call& call) {
  const Query query(call.request.query, {});
  LOCKSTEP_RETURN_IF_ERROR(query.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, call.RunArgument());
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t number, ParseNumber(call.arguments[1], "step"));
  LOCKSTEP_ASSIGN_OR_RETURN(const StepPage page, MakePage(call.coordinator, run_id, number));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, call.coordinator.ReadStore());
  const audit::StepRecord& record = page.step.record;
  const std::string bytes = EncodeStepRecord(record);
  JsonWriter json;
  json.BeginObject();
  json.Field("run", run_id);
  WriteFields(page.step, false, json);
  json.Field("record", Base64Encode(AsBytes(bytes)));
  json.Field("record_digest", Sha256(AsBytes(bytes)));
  json.Field("previous_chain", record.previous_chain);
  json.Field("chain", page.chain);
  WriteRoots(record, json);
  LOCKSTEP_RETURN_IF_ERROR(WriteEnvelope(*view, "record_envelope", page.step.log_index, json));
  json.Field("attestation_count", page.step.attestations);
  LOCKSTEP_RETURN_IF_ERROR(WriteAttestations(page, run_id, *view, json));
  LOCKSTEP_RETURN_IF_ERROR(WriteSecond(page, *view, json));
  LOCKSTEP_RETURN_IF_ERROR(WriteDisputes(call.coordinator, page, *view, json));
  json.ArrayField("leases");
  for (const LeaseView& view : page.leases) {
    json.BeginObject();
    json.Field("operator", view.operator_name);
    json.Field("operator_key", view.operator_key);
    json.Key("backend");
    view.lease.backend.empty() ? json.Null() : json.Value(view.lease.backend);
    json.Field("granted_ms", view.lease.granted_unix_ms);
    json.EndObject();
  }
  json.EndArray();
  json.Field("openings_needed", page.openings_needed);
  json.Field("transcript_leaves", page.transcript_leaves);
  json.Field("first_step", page.first_step);
  json.Field("last_step", page.last_step);
  json.EndObject();
  return JsonResponse(call.request, json.Take());
}

}  // namespace

std::vector<ApiRoute> StepRoutes() {
  std::vector<ApiRoute> routes;
  AddList(routes, "runs/*/steps", &Steps);
  routes.push_back({"runs/*/steps/*", &Step});
  return routes;
}

}  // namespace lockstep::coordinator
