// SPDX-License-Identifier: Apache-2.0
//
// See fake_coordinator.h.
#include "tests/publish/fake_coordinator.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "audit/evidence/log_entry.h"
#include "audit/ledger/refusal.h"
#include "audit/log/log_checkpoint.h"
#include "audit/log/log_proof.h"
#include "base/bytes.h"
#include "base/logging.h"
#include "base/status.h"
#include "coordinator/http/artifacts.h"
#include "rpc/rpc_error.h"

namespace lockstep::testing {
namespace {

constexpr char kOrigin[] = "fake.example/log";

Ed25519PrivateKey KeyOf(absl::string_view name) {
  return Ed25519PrivateKey::FromSeed(Sha256(AsBytes(name)).bytes).value();
}

absl::Status NotFound(absl::string_view reason) {
  return rpc::WithReason(absl::NotFoundError("not here"), reason);
}

}  // namespace

class FakeCoordinator::Trainer final : public v1::TrainerService::Service {
 public:
  explicit Trainer(FakeCoordinator& fake) : fake_(fake) {}

  grpc::Status RegisterRun(grpc::ServerContext* context, const v1::RegisterRunRequest* request,
                           v1::RegisterRunResponse* response) override {
    return fake_.Serve(context, "RegisterRun", [&]() -> absl::Status {
      for (const v1::Artifact& artifact : request->artifacts()) {
        fake_.mirrors_.insert(fake_.mirrors_.end(), artifact.mirrors().begin(),
                              artifact.mirrors().end());
      }
      LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_receipt(), fake_.Take(request->envelope()));
      return absl::OkStatus();
    });
  }

  grpc::Status GetProgress(grpc::ServerContext* context, const v1::GetProgressRequest* request,
                           v1::GetProgressResponse* response) override {
    return fake_.Serve(context, "GetProgress", [&]() -> absl::Status {
      const audit::RunLedger* const run = fake_.FindRun(request->run_id());
      if (run == nullptr) return NotFound("RUN_UNKNOWN");
      response->set_next_step(run->first_step() + run->records().size());
      response->set_chain(ToString(ByteSpan(run->chain().bytes)));
      for (const audit::CheckpointFacts& facts : run->checkpoints()) {
        if (fake_.hides_checkpoints_) break;
        response->add_checkpoints(facts.announcement.next_step);
      }
      return absl::OkStatus();
    });
  }

  grpc::Status PublishRecords(grpc::ServerContext* context,
                              const v1::PublishRecordsRequest* request,
                              v1::PublishRecordsResponse* response) override {
    return fake_.Serve(context, "PublishRecords", [&]() -> absl::Status {
      if (fake_.FindRun(request->run_id()) == nullptr) return NotFound("RUN_UNKNOWN");
      LOCKSTEP_CHECK(request->envelopes_size() <= 256);
      for (const std::string& envelope : request->envelopes()) {
        LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_last(), fake_.Take(envelope));
      }
      const audit::RunLedger* const run = fake_.FindRun(request->run_id());
      response->set_next_step(run->first_step() + run->records().size());
      return absl::OkStatus();
    });
  }

  grpc::Status AnnounceCheckpoint(grpc::ServerContext* context,
                                  const v1::AnnounceCheckpointRequest* request,
                                  v1::AnnounceCheckpointResponse* response) override {
    return fake_.Serve(context, "AnnounceCheckpoint", [&]() -> absl::Status {
      for (const v1::Artifact& artifact : request->artifacts()) {
        fake_.mirrors_.insert(fake_.mirrors_.end(), artifact.mirrors().begin(),
                              artifact.mirrors().end());
      }
      LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_receipt(), fake_.Take(request->envelope()));
      return absl::OkStatus();
    });
  }

  grpc::Status PublishEvaluation(grpc::ServerContext* context,
                                 const v1::PublishEvaluationRequest* request,
                                 v1::PublishEvaluationResponse* response) override {
    return fake_.Serve(context, "PublishEvaluation", [&]() -> absl::Status {
      LOCKSTEP_ASSIGN_OR_RETURN(*response->mutable_receipt(), fake_.Take(request->envelope()));
      return absl::OkStatus();
    });
  }

  grpc::Status QueryArtifacts(grpc::ServerContext* context,
                              const v1::QueryArtifactsRequest* request,
                              v1::QueryArtifactsResponse* response) override {
    return fake_.Serve(context, "QueryArtifacts", [&]() -> absl::Status {
      for (const std::string& sha256 : request->sha256()) {
        const Digest digest = *Digest::FromBytes(AsBytes(sha256));
        if (!fake_.wants_nothing_ && !fake_.store_->Find(digest).ok()) {
          response->add_missing(sha256);
        }
      }
      return absl::OkStatus();
    });
  }

 private:
  FakeCoordinator& fake_;
};

class FakeCoordinator::Audit final : public v1::AuditService::Service {
 public:
  explicit Audit(FakeCoordinator& fake) : fake_(fake) {}

  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest*,
                             v1::GetServerInfoResponse* response) override {
    return fake_.Serve(context, "GetServerInfo", [&]() -> absl::Status {
      response->set_origin(kOrigin);
      response->set_log_key(
          audit::NoteKey{.name = kOrigin, .key = fake_.key_->public_key()}.ToText());
      response->set_artifact_url(absl::StrCat("http://127.0.0.1:", fake_.http_->port()));
      return absl::OkStatus();
    });
  }

 private:
  FakeCoordinator& fake_;
};

FakeCoordinator::FakeCoordinator(const std::string& folder)
    : store_(coordinator::ArtifactStore::Open(folder, {}).value()),
      trainer_(std::make_unique<Trainer>(*this)),
      audit_(std::make_unique<Audit>(*this)),
      key_(std::make_unique<Ed25519PrivateKey>(KeyOf("fake log"))),
      ledger_(std::make_unique<audit::Ledger>(key_->public_key())) {
  http_ = ServeFiles();
  Start();
}

std::unique_ptr<coordinator::HttpServer> FakeCoordinator::ServeFiles() {
  coordinator::Router router;
  coordinator::UploadRules rules;
  rules.audience = kOrigin;
  rules.authorize = [](const net::RequestSignature& signature,
                       const std::string& text) -> absl::StatusOr<coordinator::UploadGrant> {
    const Ed25519PublicKey key = Ed25519PublicKey::FromBytes(signature.key).value();
    if (!VerifyEd25519(key, AsBytes(text), signature.signature)) {
      return absl::UnauthenticatedError("a wrong signature");
    }
    return coordinator::UploadGrant{.owner = key.ToHex(), .quota_bytes = uint64_t{1} << 40};
  };
  coordinator::ServeArtifacts(*store_, std::move(rules), router);
  coordinator::HttpServerOptions options;
  options.registry = std::make_shared<prometheus::Registry>();
  return coordinator::HttpServer::Start(options, std::move(router)).value();
}

FakeCoordinator::~FakeCoordinator() { Stop(); }

void FakeCoordinator::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_ = nullptr;
}

void FakeCoordinator::Start() {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_), grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(trainer_.get());
  builder.RegisterService(audit_.get());
  server_ = builder.BuildAndStart();
  LOCKSTEP_CHECK(server_ != nullptr && port != 0);
  port_ = port;
}

std::string FakeCoordinator::url() const { return absl::StrCat("http://127.0.0.1:", port_); }

void FakeCoordinator::SetFault(std::function<Fault(absl::string_view)> fault) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fault_ = std::move(fault);
}

void FakeCoordinator::BecomeAnotherLog() {
  const std::lock_guard<std::mutex> lock(mutex_);
  key_ = std::make_unique<Ed25519PrivateKey>(KeyOf("another log"));
  Rebuild({});
}

void FakeCoordinator::HideCheckpoints() {
  const std::lock_guard<std::mutex> lock(mutex_);
  hides_checkpoints_ = true;
}

void FakeCoordinator::MoveArtifacts() {
  std::unique_ptr<coordinator::HttpServer> server = ServeFiles();
  const std::lock_guard<std::mutex> lock(mutex_);
  std::swap(http_, server);  // another port, since both are there for a moment
}

void FakeCoordinator::WantNothing() {
  const std::lock_guard<std::mutex> lock(mutex_);
  wants_nothing_ = true;
}

void FakeCoordinator::Rebuild(const std::vector<std::string>& entries) {
  ledger_ = std::make_unique<audit::Ledger>(key_->public_key());
  entries_.clear();
  tree_ = MerkleTree();
  for (const std::string& entry : entries) LOCKSTEP_CHECK(Take(entry).ok());
}

grpc::Status FakeCoordinator::Serve(grpc::ServerContext* context, absl::string_view method,
                                    const std::function<absl::Status()>& work) {
  Fault fault = Fault::kNone;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++calls_[std::string(method)];
    if (fault_) fault = fault_(method);
  }
  if (fault == Fault::kSilent) {
    while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return grpc::Status::CANCELLED;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (fault == Fault::kRefuse) return rpc::ToGrpc(absl::UnavailableError("not now"));
  if (fault == Fault::kInternal) return {grpc::StatusCode::INTERNAL, "something broke"};
  if (fault == Fault::kForget) Rebuild({});
  bad_receipt_ = fault == Fault::kBadReceipt;
  const absl::Status status = work();
  if (fault == Fault::kDieAfter) return rpc::ToGrpc(absl::UnavailableError("gone"));
  return rpc::ToGrpc(status);
}

absl::StatusOr<v1::Receipt> FakeCoordinator::Take(const std::string& entry) {
  auto at = std::find(entries_.begin(), entries_.end(), entry);
  if (at == entries_.end()) {
    const auto outcome = ledger_->Apply(entries_.size(), entry, audit::Signatures::kVerify);
    if (!outcome.ok()) {
      const audit::Refusal refusal = *audit::RefusalOf(outcome.status());
      return rpc::WithReason(outcome.status(),
                             refusal == audit::Refusal::kChainBreak    ? "CHAIN_BROKEN"
                             : refusal == audit::Refusal::kUnknownRun  ? "RUN_UNKNOWN"
                             : refusal == audit::Refusal::kUnknownStep ? "CHECKPOINT_UNKNOWN_STEP"
                             : refusal == audit::Refusal::kDuplicate   ? "DUPLICATE"
                                                                       : "ENVELOPE_INVALID");
    }
    entries_.push_back(entry);
    tree_.Append(MerkleLeafHash(AsBytes(entry)));
    at = entries_.end() - 1;
  }
  const auto index = static_cast<uint64_t>(at - entries_.begin());
  v1::Receipt receipt;
  receipt.set_index(index);
  receipt.set_tree_size(tree_.size());
  audit::LogProof proof;
  proof.index = index;
  proof.hashes = tree_.InclusionProof(index, tree_.size()).value();
  proof.checkpoint = audit::SignLogCheckpoint(
      {.origin = kOrigin, .size = tree_.size(), .root = tree_.Root(tree_.size()).value()}, *key_);
  if (bad_receipt_) proof.index += 1;
  receipt.set_proof(audit::EncodeLogProof(proof));
  return receipt;
}

const audit::RunLedger* FakeCoordinator::FindRun(const std::string& id) const {
  const absl::StatusOr<Digest> digest = Digest::FromBytes(AsBytes(id));
  return digest.ok() ? ledger_->FindRun(*digest) : nullptr;
}

std::vector<std::string> FakeCoordinator::entries() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return entries_;
}

uint64_t FakeCoordinator::records() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ledger_->runs().empty() ? 0 : ledger_->runs()[0].records().size();
}

std::vector<uint64_t> FakeCoordinator::checkpoints() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uint64_t> steps;
  if (ledger_->runs().empty()) return steps;
  for (const audit::CheckpointFacts& facts : ledger_->runs()[0].checkpoints()) {
    steps.push_back(facts.announcement.next_step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::map<std::string, int> FakeCoordinator::calls() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return calls_;
}

std::vector<std::string> FakeCoordinator::mirrors() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return mirrors_;
}

bool FakeCoordinator::Holds(const Digest& artifact) const { return store_->Find(artifact).ok(); }

audit::NoteKey FakeCoordinator::log_key() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {.name = kOrigin, .key = key_->public_key()};
}

std::string FakeCoordinator::Checkpoint() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return audit::SignLogCheckpoint(
      {.origin = kOrigin, .size = tree_.size(), .root = tree_.Root(tree_.size()).value()}, *key_);
}

absl::Status FakeCoordinator::Append(const std::string& entry) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bad_receipt_ = false;
  return Take(entry).status();
}

void FakeCoordinator::LoseFrom(size_t entry) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> kept = entries_;
  kept.resize(entry);
  bad_receipt_ = false;
  Rebuild(kept);
}

}  // namespace lockstep::testing
