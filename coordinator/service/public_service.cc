// SPDX-License-Identifier: Apache-2.0
//
// Lists in pages: a token is the place of the first item of the next page.

#include "coordinator/service/public_service.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "coordinator/core/reasons.h"
#include "coordinator/service/wire.h"
#include "coordinator/views/evidence.h"
#include "coordinator/views/keys.h"
#include "coordinator/views/leases.h"
#include "coordinator/views/runs.h"

namespace lockstep::coordinator {
namespace {

constexpr uint32_t kPageSizeDefault = 100;
constexpr uint32_t kPageSizeMax = 1'000;
// Envelopes of a page: a message of at most 4 MiB is what clients take unasked.
constexpr size_t kPageBytesMax = 3 << 20;

struct Page {
  size_t begin = 0;
  size_t size = 0;

  size_t End(size_t items) const { return items - begin < size ? items : begin + size; }
};

// Of `items` in all; a page beyond them is empty.
absl::StatusOr<Page> PageOf(uint32_t page_size, const std::string& token, size_t items) {
  if (page_size > kPageSizeMax) {
    return RequestInvalid(absl::StrCat("page_size: at most ", kPageSizeMax));
  }
  uint64_t begin = 0;
  if (!token.empty() && !absl::SimpleAtoi(token, &begin)) {
    return RequestInvalid("page_token: expected one from the page before");
  }
  return Page{.begin = static_cast<size_t>(std::min<uint64_t>(begin, items)),
              .size = page_size == 0 ? kPageSizeDefault : page_size};
}

template <typename Response>
void SetNext(size_t end, size_t items, Response* response) {
  if (end < items) response->set_next_page_token(absl::StrCat(end));
}

v1::Step StepToWire(const StepSummary& summary) {
  v1::Step step;
  step.set_step(summary.record.step);
  step.set_state(ToWire(summary.state));
  step.set_log_index(summary.log_index);
  step.set_record(EncodeStepRecord(summary.record));
  step.set_matches(static_cast<uint32_t>(summary.tally.matches));
  step.set_operators(static_cast<uint32_t>(summary.tally.operators));
  step.set_backends(static_cast<uint32_t>(summary.tally.backends));
  step.set_mismatches(static_cast<uint32_t>(summary.tally.mismatches));
  return step;
}

v1::Attestation AttestationToWire(const AttestationSummary& summary) {
  v1::Attestation attestation;
  attestation.set_log_index(summary.log_index);
  attestation.set_worker_key(ToString(summary.worker_key.bytes));
  attestation.set_operator_name(summary.operator_name);
  attestation.set_backend_class(summary.backend);
  attestation.set_match(summary.match);
  attestation.set_counts(summary.worth == Worth::kCounts);
  attestation.set_why_not(std::string(WhyNotCounted(summary.worth)));
  return attestation;
}

v1::EndedLease LeaseToWire(const LeaseSummary& summary) {
  v1::EndedLease lease;
  lease.set_worker_key(ToString(summary.worker_key.bytes));
  lease.set_first_step(summary.first_step);
  lease.set_end_step(summary.end_step);
  lease.set_state(std::string(LeaseStateName(summary.state)));
  lease.set_granted_ms(summary.granted_ms);
  lease.set_ended_ms(summary.ended_ms);
  lease.set_detail(summary.detail);
  return lease;
}

v1::Operator OperatorToWire(const OperatorSummary& summary) {
  v1::Operator made;
  made.set_key(ToString(summary.key.bytes));
  made.set_name(summary.name);
  made.set_revoked(summary.until != audit::kNeverEnded);
  made.set_log_index(summary.since);
  made.set_worker_keys(static_cast<uint32_t>(summary.worker_keys));
  made.set_matches(summary.standing.credit.Of(Worth::kCounts));
  made.set_pending(summary.standing.credit.Of(Worth::kAwaiting));
  made.set_rejected(summary.standing.Rejected());
  return made;
}

}  // namespace

absl::StatusOr<v1::Run> PublicService::MakeRun(const Digest& run_id) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const RunSummary summary, SummarizeRun(coordinator_, run_id));
  v1::Run made;
  made.set_run_id(ToWire(run_id));
  made.set_name(summary.name);
  made.set_trainer_key(ToString(summary.trainer_key.bytes));
  *made.mutable_quorum() = ToWire(summary.quorum);
  made.set_steps(summary.steps);
  made.set_steps_planned(summary.steps_planned);
  made.set_first_step(summary.first_step);
  made.set_chain(ToWire(summary.chain));
  made.set_log_index(summary.log_index);
  if (summary.parent) made.set_parent_run_id(ToWire(*summary.parent));
  CountsToWire(summary.counts, made.mutable_counts());
  return made;
}

grpc::Status PublicService::ListRuns(grpc::ServerContext* context,
                                     const v1::ListRunsRequest* request,
                                     v1::ListRunsResponse* response) {
  return calls_.Serve(context, "ListRuns", [&](const std::string&) -> absl::Status {
    std::vector<Digest> ids;
    coordinator_.Read([&](const audit::Ledger& ledger) {
      for (const audit::RunLedger& run : ledger.runs()) ids.push_back(run.run_id());
    });
    LOCKSTEP_ASSIGN_OR_RETURN(const Page page,
                              PageOf(request->page_size(), request->page_token(), ids.size()));
    const size_t end = page.End(ids.size());
    for (size_t i = page.begin; i < end; ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(*response->add_runs(), MakeRun(ids[i]));
    }
    SetNext(end, ids.size(), response);
    return absl::OkStatus();
  });
}

grpc::Status PublicService::GetRun(grpc::ServerContext* context, const v1::GetRunRequest* request,
                                   v1::GetRunResponse* response) {
  return calls_.Serve(context, "GetRun", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, DigestFromWire(request->run_id(), "run_id"));
    LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_run(), MakeRun(run_id));
    coordinator_.Read([&](const audit::Ledger& ledger) {
      response->set_manifest(EncodeRunManifest(ledger.FindRun(run_id)->registration().manifest));
    });
    return absl::OkStatus();
  });
}

grpc::Status PublicService::GetCoverage(grpc::ServerContext* context,
                                        const v1::GetCoverageRequest* request,
                                        v1::GetCoverageResponse* response) {
  return calls_.Serve(context, "GetCoverage", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, DigestFromWire(request->run_id(), "run_id"));
    LOCKSTEP_ASSIGN_OR_RETURN(const Coverage coverage, coordinator_.CoverageOf(run_id));
    response->set_first_step(coverage.first_step);
    std::string* const states = response->mutable_states();
    states->reserve(coverage.states.size());
    for (const audit::StepState state : coverage.states) {
      states->push_back(static_cast<char>(ToWire(state)));
    }
    CountsToWire(coverage.counts, response->mutable_counts());
    return absl::OkStatus();
  });
}

grpc::Status PublicService::ListSteps(grpc::ServerContext* context,
                                      const v1::ListStepsRequest* request,
                                      v1::ListStepsResponse* response) {
  return calls_.Serve(context, "ListSteps", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, DigestFromWire(request->run_id(), "run_id"));
    LOCKSTEP_ASSIGN_OR_RETURN(const Coverage coverage, coordinator_.CoverageOf(run_id));
    const size_t steps = coverage.states.size();
    const std::string first = request->begin_step() <= coverage.first_step
                                  ? std::string("0")
                                  : absl::StrCat(request->begin_step() - coverage.first_step);
    LOCKSTEP_ASSIGN_OR_RETURN(
        const Page page,
        PageOf(request->page_size(), request->page_token().empty() ? first : request->page_token(),
               steps));
    const size_t end = page.End(steps);
    coordinator_.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
      const audit::RunLedger& run = *ledger.FindRun(run_id);
      for (size_t i = page.begin; i < end; ++i) {
        *response->add_steps() =
            StepToWire(SummarizeStep(ledger, tallies, run, i, coverage.states[i]));
      }
    });
    SetNext(end, steps, response);
    return absl::OkStatus();
  });
}

grpc::Status PublicService::ListAttestations(grpc::ServerContext* context,
                                             const v1::ListAttestationsRequest* request,
                                             v1::ListAttestationsResponse* response) {
  return calls_.Serve(context, "ListAttestations", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, DigestFromWire(request->run_id(), "run_id"));
    absl::Status status;
    size_t end = 0;
    size_t count = 0;
    coordinator_.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
      const audit::RunLedger* run = ledger.FindRun(run_id);
      if (run == nullptr) {
        status = RunUnknown();
        return;
      }
      if (run->FindRecord(request->step()) == nullptr) {
        status = StepUnknown();
        return;
      }
      const std::vector<uint32_t> ids = run->AttestationsOf(request->step());
      count = ids.size();
      const absl::StatusOr<Page> page = PageOf(request->page_size(), request->page_token(), count);
      if (!page.ok()) {
        status = page.status();
        return;
      }
      end = page->End(count);
      for (size_t i = page->begin; i < end; ++i) {
        *response->add_attestations() =
            AttestationToWire(SummarizeAttestation(ledger, tallies, *run, ids[i]));
      }
    });
    LOCKSTEP_RETURN_IF_ERROR(status);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, coordinator_.ReadStore());
    size_t bytes = 0;
    for (v1::Attestation& attestation : *response->mutable_attestations()) {
      absl::StatusOr<EntryRow> row = view->Entry(attestation.log_index());
      // Not on the disk yet: it will be in the next answer. What is not there is not shown.
      if (absl::IsNotFound(row.status())) continue;
      LOCKSTEP_RETURN_IF_ERROR(row.status());
      bytes += row->envelope.size();
      if (bytes <= kPageBytesMax) attestation.set_envelope(std::move(row->envelope));
    }
    SetNext(end, count, response);
    return absl::OkStatus();
  });
}

grpc::Status PublicService::ListDisputes(grpc::ServerContext* context,
                                         const v1::ListDisputesRequest* request,
                                         v1::ListDisputesResponse* response) {
  return calls_.Serve(context, "ListDisputes", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, DigestFromWire(request->run_id(), "run_id"));
    std::vector<audit::DisputeFacts> disputes;
    bool known = false;
    coordinator_.Read([&](const audit::Ledger& ledger) {
      known = ledger.FindRun(run_id) != nullptr;
      for (const audit::DisputeFacts& facts : ledger.disputes()) {
        if (ledger.runs()[facts.run].run_id() == run_id) disputes.push_back(facts);
      }
    });
    if (!known) return RunUnknown();
    LOCKSTEP_ASSIGN_OR_RETURN(const Page page,
                              PageOf(request->page_size(), request->page_token(), disputes.size()));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, coordinator_.ReadStore());
    const size_t end = page.End(disputes.size());
    size_t next = page.begin;
    size_t bytes = 0;
    for (; next < end && bytes <= kPageBytesMax; ++next) {
      absl::StatusOr<EntryRow> row = view->Entry(disputes[next].log_index);
      if (absl::IsNotFound(row.status())) break;  // not on the disk yet
      LOCKSTEP_RETURN_IF_ERROR(row.status());
      bytes += row->envelope.size();
      v1::Dispute* const dispute = response->add_disputes();
      dispute->set_log_index(row->log_index);
      dispute->set_run_id(request->run_id());
      dispute->set_step(disputes[next].step);
      dispute->set_reason(std::string(audit::DisputeReasonName(disputes[next].reason)));
      dispute->set_envelope(std::move(row->envelope));
    }
    SetNext(next, disputes.size(), response);
    return absl::OkStatus();
  });
}

grpc::Status PublicService::ListLeases(grpc::ServerContext* context,
                                       const v1::ListLeasesRequest* request,
                                       v1::ListLeasesResponse* response) {
  return calls_.Serve(context, "ListLeases", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest run_id, DigestFromWire(request->run_id(), "run_id"));
    if (request->page_size() > kPageSizeMax) {
      return RequestInvalid(absl::StrCat("page_size: at most ", kPageSizeMax));
    }
    std::optional<LeasePlace> after;
    if (!request->page_token().empty()) {
      after = LeasePlace::Parse(request->page_token());
      if (!after) return RequestInvalid("page_token: expected one that a response gave");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(
        const LeasePage page,
        ReadLeases(coordinator_, {.run = run_id}, after,
                   request->page_size() == 0 ? kPageSizeDefault : request->page_size()));
    for (const LeaseSummary& lease : page.leases) *response->add_leases() = LeaseToWire(lease);
    if (page.next) response->set_next_page_token(page.next->ToText());
    return absl::OkStatus();
  });
}

grpc::Status PublicService::ListOperators(grpc::ServerContext* context,
                                          const v1::ListOperatorsRequest* request,
                                          v1::ListOperatorsResponse* response) {
  return calls_.Serve(context, "ListOperators", [&](const std::string&) -> absl::Status {
    absl::StatusOr<Page> page = Page();
    size_t count = 0;
    std::vector<OperatorSummary> operators;
    coordinator_.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
      count = ledger.keys().operators().size();
      page = PageOf(request->page_size(), request->page_token(), count);
      if (!page.ok()) return;
      operators = SummarizeOperators(ledger, tallies, static_cast<uint32_t>(page->begin),
                                     static_cast<uint32_t>(page->End(count)));
    });
    LOCKSTEP_RETURN_IF_ERROR(page.status());
    for (const OperatorSummary& summary : operators)
      *response->add_operators() = OperatorToWire(summary);
    SetNext(page->End(count), count, response);
    return absl::OkStatus();
  });
}

grpc::Status PublicService::GetLogHead(grpc::ServerContext* context,
                                       const v1::GetLogHeadRequest* /*request*/,
                                       v1::GetLogHeadResponse* response) {
  return calls_.Serve(context, "GetLogHead", [&](const std::string&) -> absl::Status {
    response->set_checkpoint(coordinator_.log().Checkpoint());
    LOCKSTEP_ASSIGN_OR_RETURN(const audit::SignedNote note,
                              audit::ParseSignedNote(response->checkpoint()));
    LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogCheckpoint head,
                              audit::ParseLogCheckpoint(note.text));
    response->set_size(head.size);
    return absl::OkStatus();
  });
}

grpc::Status PublicService::ListEntries(grpc::ServerContext* context,
                                        const v1::ListEntriesRequest* request,
                                        v1::ListEntriesResponse* response) {
  return calls_.Serve(context, "ListEntries", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const Page page,
        PageOf(request->page_size(), absl::StrCat(request->begin()), coordinator_.log().size()));
    response->set_begin(page.begin);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, coordinator_.ReadStore());
    size_t bytes = 0;
    const size_t end = page.End(coordinator_.log().size());
    for (size_t i = page.begin; i < end && bytes <= kPageBytesMax; ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(EntryRow row, view->Entry(i));
      bytes += row.envelope.size();
      response->add_envelopes(std::move(row.envelope));
    }
    return absl::OkStatus();
  });
}

grpc::Status PublicService::GetReceipt(grpc::ServerContext* context,
                                       const v1::GetReceiptRequest* request,
                                       v1::GetReceiptResponse* response) {
  return calls_.Serve(context, "GetReceipt", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, coordinator_.ReadStore());
    absl::StatusOr<EntryRow> row = RequestInvalid("expected an index or a leaf hash");
    if (request->entry_case() == v1::GetReceiptRequest::kIndex) {
      // Beyond the log, whatever the number.
      const bool there = request->index() < coordinator_.log().size();
      row = there ? view->Entry(request->index())
                  : absl::StatusOr<EntryRow>(absl::NotFoundError("no such entry"));
    } else if (request->entry_case() == v1::GetReceiptRequest::kLeafHash) {
      LOCKSTEP_ASSIGN_OR_RETURN(const Digest leaf_hash,
                                DigestFromWire(request->leaf_hash(), "leaf_hash"));
      row = view->EntryByLeafHash(leaf_hash);
    }
    if (absl::IsNotFound(row.status()) ||
        (row.ok() && row->log_index >= coordinator_.log().size())) {
      return Refused(absl::StatusCode::kNotFound, "ENTRY_UNKNOWN", "the log has no such entry");
    }
    LOCKSTEP_RETURN_IF_ERROR(row.status());
    LOCKSTEP_ASSIGN_OR_RETURN(
        *response->mutable_receipt(),
        MakeReceipt(coordinator_, {.log_index = row->log_index, .leaf_hash = row->leaf_hash}));
    return absl::OkStatus();
  });
}

}  // namespace lockstep::coordinator
