// SPDX-License-Identifier: Apache-2.0
//
// gRPC stubs behind coordinator_client.h.
#include "trainer/coordinator_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "audit/log/log_proof.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/merkle.h"
#include "base/status.h"
#include "lockstep/v1/audit.grpc.pb.h"
#include "lockstep/v1/trainer.grpc.pb.h"
#include "rpc/address.h"
#include "rpc/rpc_error.h"

namespace lockstep::trainer {
namespace {

constexpr size_t kPemBytesMax = size_t{1} << 20;
constexpr int kQueryArtifactsMax = 1024;
constexpr int kAnswerBytesMax = 4 << 20;

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsOf(
    const CoordinatorAddress& address) {
  if (absl::StartsWith(address.url, "http://")) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  if (!address.ca_file.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.pem_root_certs, ReadFile(address.ca_file, kPemBytesMax));
  }
  if (!address.certificate.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.pem_cert_chain, ReadFile(address.certificate, kPemBytesMax));
    LOCKSTEP_ASSIGN_OR_RETURN(options.pem_private_key,
                              ReadFile(address.certificate_key, kPemBytesMax));
  }
  return grpc::SslCredentials(options);
}

absl::StatusOr<std::string> TargetOf(const CoordinatorAddress& address) {
  LOCKSTEP_ASSIGN_OR_RETURN(const rpc::ServerAddress server, rpc::ParseServerAddress(address.url));
  if (address.certificate.empty() != address.certificate_key.empty()) {
    return absl::InvalidArgumentError("coordinator: a certificate goes with its key");
  }
  return server.target;
}

template <typename Artifacts>
void AddArtifacts(const std::vector<RunArtifact>& artifacts,
                  const std::vector<std::string>& mirrors, Artifacts* out) {
  for (const RunArtifact& artifact : artifacts) {
    v1::Artifact& added = *out->Add();
    added.set_sha256(artifact.sha256.bytes.data(), artifact.sha256.bytes.size());
    added.set_size(artifact.bytes);
    added.set_name(artifact.name);
    for (const std::string& mirror : mirrors) added.add_mirrors(mirror);
  }
}

std::string BytesOf(const Digest& digest) { return ToString(ByteSpan(digest.bytes)); }

absl::StatusOr<std::optional<audit::Receipt>> CheckReceipt(const v1::Receipt& receipt,
                                                           const std::string& entry,
                                                           const audit::NoteKey& log_key) {
  if (receipt.proof().empty()) return std::optional<audit::Receipt>();
  absl::StatusOr<audit::LogProof> proof = audit::ParseLogProof(receipt.proof());
  absl::Status status = proof.status();
  if (status.ok()) {
    status = audit::VerifyLogProof(*proof, MerkleLeafHash(AsBytes(entry)), log_key).status();
  }
  if (!status.ok()) {
    return absl::InternalError(
        absl::StrCat("the coordinator's receipt does not hold: ", status.message()));
  }
  return std::optional<audit::Receipt>({.entry = entry, .proof = *std::move(proof)});
}

}  // namespace

class CoordinatorClient::Calls {
 public:
  Calls(std::shared_ptr<grpc::Channel> channel, absl::Duration deadline)
      : trainer(v1::TrainerService::NewStub(channel)),
        audit(v1::AuditService::NewStub(channel)),
        deadline_(deadline) {}

  template <typename Stub, typename Request, typename Response>
  absl::Status Call(Stub& stub,
                    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(deadline_));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (cancelled_) return absl::CancelledError("stopped");
      contexts_.insert(&context);
    }
    const grpc::Status status = (stub.*method)(&context, request, response);
    const std::lock_guard<std::mutex> lock(mutex_);
    contexts_.erase(&context);
    return rpc::FromGrpc(status);
  }

  void Cancel() {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
  }

  const std::unique_ptr<v1::TrainerService::Stub> trainer;
  const std::unique_ptr<v1::AuditService::Stub> audit;

 private:
  const absl::Duration deadline_;
  std::mutex mutex_;  // over all that follows
  bool cancelled_ = false;
  std::set<grpc::ClientContext*> contexts_;
};

CoordinatorClient::CoordinatorClient(std::unique_ptr<Calls> calls) : calls_(std::move(calls)) {}
CoordinatorClient::~CoordinatorClient() = default;

absl::StatusOr<std::unique_ptr<CoordinatorClient>> CoordinatorClient::Create(
    const CoordinatorAddress& address, absl::Duration deadline) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string target, TargetOf(address));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                            CredentialsOf(address));
  grpc::ChannelArguments arguments;
  // The publisher has its own waits; the channel's should not add to them by much.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetMaxReceiveMessageSize(kAnswerBytesMax);
  return std::unique_ptr<CoordinatorClient>(new CoordinatorClient(std::make_unique<Calls>(
      grpc::CreateCustomChannel(target, credentials, arguments), deadline)));
}

absl::StatusOr<ServerInfo> CoordinatorClient::GetServerInfo() {
  v1::GetServerInfoResponse response;
  LOCKSTEP_RETURN_IF_ERROR(calls_->Call(*calls_->audit, &v1::AuditService::Stub::GetServerInfo,
                                        v1::GetServerInfoRequest(), &response));
  absl::StatusOr<audit::NoteKey> key = audit::NoteKey::FromText(response.log_key());
  if (!key.ok() || key->name != response.origin()) {
    return absl::InternalError(
        absl::StrCat("expected the coordinator to name its log's key; found \"", response.log_key(),
                     "\" for \"", response.origin(), "\""));
  }
  return ServerInfo{.log_key = *std::move(key), .artifact_url = response.artifact_url()};
}

absl::StatusOr<CoordinatorClient::MaybeReceipt> CoordinatorClient::RegisterRun(
    const std::string& envelope, const std::vector<RunArtifact>& artifacts,
    const std::vector<std::string>& mirrors, const audit::NoteKey& log_key) {
  v1::RegisterRunRequest request;
  request.set_envelope(envelope);
  AddArtifacts(artifacts, mirrors, request.mutable_artifacts());
  v1::RegisterRunResponse response;
  LOCKSTEP_RETURN_IF_ERROR(
      calls_->Call(*calls_->trainer, &v1::TrainerService::Stub::RegisterRun, request, &response));
  return CheckReceipt(response.receipt(), envelope, log_key);
}

absl::StatusOr<RunProgress> CoordinatorClient::GetProgress(const Digest& run_id) {
  v1::GetProgressRequest request;
  request.set_run_id(BytesOf(run_id));
  v1::GetProgressResponse response;
  LOCKSTEP_RETURN_IF_ERROR(
      calls_->Call(*calls_->trainer, &v1::TrainerService::Stub::GetProgress, request, &response));
  RunProgress progress;
  progress.next_step = response.next_step();
  const absl::StatusOr<Digest> chain = Digest::FromBytes(AsBytes(response.chain()));
  if (!chain.ok()) {
    return absl::InternalError("expected a chain hash in the coordinator's progress");
  }
  progress.chain = *chain;
  progress.checkpoints.assign(response.checkpoints().begin(), response.checkpoints().end());
  return progress;
}

absl::StatusOr<CoordinatorClient::Published> CoordinatorClient::PublishRecords(
    const Digest& run_id, const std::vector<std::string>& envelopes,
    const audit::NoteKey& log_key) {
  v1::PublishRecordsRequest request;
  request.set_run_id(BytesOf(run_id));
  for (const std::string& envelope : envelopes) request.add_envelopes(envelope);
  v1::PublishRecordsResponse response;
  LOCKSTEP_RETURN_IF_ERROR(calls_->Call(*calls_->trainer, &v1::TrainerService::Stub::PublishRecords,
                                        request, &response));
  Published published{.next_step = response.next_step(), .last = {}};
  LOCKSTEP_ASSIGN_OR_RETURN(published.last,
                            CheckReceipt(response.last(), envelopes.back(), log_key));
  return published;
}

absl::StatusOr<CoordinatorClient::MaybeReceipt> CoordinatorClient::AnnounceCheckpoint(
    const std::string& envelope, const std::vector<RunArtifact>& artifacts,
    const std::vector<std::string>& mirrors, const audit::NoteKey& log_key) {
  v1::AnnounceCheckpointRequest request;
  request.set_envelope(envelope);
  AddArtifacts(artifacts, mirrors, request.mutable_artifacts());
  v1::AnnounceCheckpointResponse response;
  LOCKSTEP_RETURN_IF_ERROR(calls_->Call(
      *calls_->trainer, &v1::TrainerService::Stub::AnnounceCheckpoint, request, &response));
  return CheckReceipt(response.receipt(), envelope, log_key);
}

absl::StatusOr<CoordinatorClient::MaybeReceipt> CoordinatorClient::PublishEvaluation(
    const std::string& envelope, const audit::NoteKey& log_key) {
  v1::PublishEvaluationRequest request;
  request.set_envelope(envelope);
  v1::PublishEvaluationResponse response;
  LOCKSTEP_RETURN_IF_ERROR(calls_->Call(
      *calls_->trainer, &v1::TrainerService::Stub::PublishEvaluation, request, &response));
  return CheckReceipt(response.receipt(), envelope, log_key);
}

absl::StatusOr<std::vector<RunArtifact>> CoordinatorClient::Missing(
    const std::vector<RunArtifact>& artifacts) {
  std::set<std::string> missing;
  for (size_t begin = 0; begin < artifacts.size(); begin += kQueryArtifactsMax) {
    v1::QueryArtifactsRequest request;
    const size_t end = std::min(artifacts.size(), begin + kQueryArtifactsMax);
    for (size_t i = begin; i < end; ++i) request.add_sha256(BytesOf(artifacts[i].sha256));
    v1::QueryArtifactsResponse response;
    LOCKSTEP_RETURN_IF_ERROR(calls_->Call(
        *calls_->trainer, &v1::TrainerService::Stub::QueryArtifacts, request, &response));
    missing.insert(response.missing().begin(), response.missing().end());
  }
  std::vector<RunArtifact> out;
  for (const RunArtifact& artifact : artifacts) {
    if (missing.erase(BytesOf(artifact.sha256)) > 0) out.push_back(artifact);
  }
  return out;
}

void CoordinatorClient::Cancel() { calls_->Cancel(); }

}  // namespace lockstep::trainer
