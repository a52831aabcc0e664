// SPDX-License-Identifier: Apache-2.0
//
// Messages in and out.

#include "coordinator/service/trainer_service.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "coordinator/service/wire.h"

namespace lockstep::coordinator {
namespace {

constexpr int kRecordsMax = 256;
constexpr int kQueryMax = 1'024;

}  // namespace

grpc::Status TrainerService::RegisterRun(grpc::ServerContext* context,
                                         const v1::RegisterRunRequest* request,
                                         v1::RegisterRunResponse* response) {
  return calls_.Serve(context, "RegisterRun", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<ArtifactSource> artifacts,
                              ArtifactsFromWire(request->artifacts()));
    LOCKSTEP_ASSIGN_OR_RETURN(const audit::EntryRef entry,
                              coordinator_.RegisterRun(request->envelope(), artifacts));
    coordinator_.Read([&](const audit::Ledger& ledger) {
      for (const audit::RunLedger& run : ledger.runs()) {
        if (run.entry().log_index == entry.log_index) response->set_run_id(ToWire(run.run_id()));
      }
    });
    LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_receipt(), MakeReceipt(coordinator_, entry));
    return absl::OkStatus();
  });
}

grpc::Status TrainerService::GetProgress(grpc::ServerContext* context,
                                         const v1::GetProgressRequest* request,
                                         v1::GetProgressResponse* response) {
  return calls_.Serve(context, "GetProgress", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest run, DigestFromWire(request->run_id(), "run_id"));
    LOCKSTEP_ASSIGN_OR_RETURN(const Progress progress, coordinator_.GetProgress(run));
    response->set_next_step(progress.next_step);
    response->set_chain(ToWire(progress.chain));
    response->mutable_checkpoints()->Add(progress.checkpoints.begin(), progress.checkpoints.end());
    return absl::OkStatus();
  });
}

grpc::Status TrainerService::PublishRecords(grpc::ServerContext* context,
                                            const v1::PublishRecordsRequest* request,
                                            v1::PublishRecordsResponse* response) {
  return calls_.Serve(context, "PublishRecords", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest run, DigestFromWire(request->run_id(), "run_id"));
    const int count = request->envelopes_size();
    if (count == 0 || count > kRecordsMax) {
      return RequestInvalid(
          absl::StrCat("envelopes: expected 1 to ", kRecordsMax, "; found ", count));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const PublishAnswer answer,
                              coordinator_.PublishRecords(
                                  run, {request->envelopes().begin(), request->envelopes().end()}));
    response->set_next_step(answer.next_step);
    LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_last(), MakeReceipt(coordinator_, answer.last));
    return absl::OkStatus();
  });
}

grpc::Status TrainerService::AnnounceCheckpoint(grpc::ServerContext* context,
                                                const v1::AnnounceCheckpointRequest* request,
                                                v1::AnnounceCheckpointResponse* response) {
  return calls_.Serve(context, "AnnounceCheckpoint", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<ArtifactSource> artifacts,
                              ArtifactsFromWire(request->artifacts()));
    LOCKSTEP_ASSIGN_OR_RETURN(const audit::EntryRef entry,
                              coordinator_.AnnounceCheckpoint(request->envelope(), artifacts));
    LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_receipt(), MakeReceipt(coordinator_, entry));
    return absl::OkStatus();
  });
}

grpc::Status TrainerService::PublishEvaluation(grpc::ServerContext* context,
                                               const v1::PublishEvaluationRequest* request,
                                               v1::PublishEvaluationResponse* response) {
  return calls_.Serve(context, "PublishEvaluation", [&](const std::string&) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const audit::EntryRef entry,
                              coordinator_.PublishEvaluation(request->envelope()));
    LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_receipt(), MakeReceipt(coordinator_, entry));
    return absl::OkStatus();
  });
}

grpc::Status TrainerService::QueryArtifacts(grpc::ServerContext* context,
                                            const v1::QueryArtifactsRequest* request,
                                            v1::QueryArtifactsResponse* response) {
  return calls_.Serve(context, "QueryArtifacts", [&](const std::string&) -> absl::Status {
    if (request->sha256_size() > kQueryMax) {
      return RequestInvalid(absl::StrCat("sha256: at most ", kQueryMax, " in one request"));
    }
    std::vector<Digest> digests;
    for (const std::string& bytes : request->sha256()) {
      LOCKSTEP_ASSIGN_OR_RETURN(const Digest digest, DigestFromWire(bytes, "sha256"));
      digests.push_back(digest);
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Digest> missing,
                              coordinator_.MissingArtifacts(digests));
    for (const Digest& digest : missing) response->add_missing(ToWire(digest));
    return absl::OkStatus();
  });
}

}  // namespace lockstep::coordinator
