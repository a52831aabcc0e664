// SPDX-License-Identifier: Apache-2.0
//
// A coordinator in memory behind the real gRPC service: it checks signatures, keeps a log with a
// ledger over it, and gives the leases that a test puts there. For tests only.
#ifndef LOCKSTEP_WORKER_TESTING_FAKE_COORDINATOR_H_
#define LOCKSTEP_WORKER_TESTING_FAKE_COORDINATOR_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "audit/evidence/log_entry.h"
#include "audit/evidence/opening.h"
#include "audit/ledger/ledger.h"
#include "audit/ledger/refusal.h"
#include "audit/log/log_checkpoint.h"
#include "audit/log/log_proof.h"
#include "audit/log/signed_note.h"
#include "base/ed25519.h"
#include "base/logging.h"
#include "base/merkle.h"
#include "base/status.h"
#include "lockstep/v1/audit.grpc.pb.h"
#include "rpc/rpc_error.h"
#include "rpc/signed_request.h"

namespace lockstep::worker {

class FakeCoordinator final : public v1::AuditService::Service {
 public:
  explicit FakeCoordinator(std::string origin = "example.com/log")
      : origin_(std::move(origin)),
        key_(Ed25519PrivateKey::FromSeed(Sha256(AsBytes(origin_)).bytes).value()),
        ledger_(key_.public_key()) {
    Start(0);
  }
  ~FakeCoordinator() override { Stop(); }

  std::string address() const { return absl::StrCat("http://127.0.0.1:", port_); }
  audit::NoteKey log_key() const { return {.name = origin_, .key = key_.public_key()}; }
  // Away, and back under the same address.
  void Stop() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  void Start(int port) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    LOCKSTEP_CHECK(server_ != nullptr && port_ > 0);
  }
  void Restart() { Start(port_); }

  // Puts an entry of the trainer's or a key into the log.
  void Append(const std::string& entry) {
    const std::lock_guard<std::mutex> lock(mutex_);
    LOCKSTEP_CHECK(AppendLocked(entry).ok());
  }
  void GiveLease(v1::Lease lease) {
    const std::lock_guard<std::mutex> lock(mutex_);
    leases_.push_back(std::move(lease));
  }
  // The next so many calls of a method ("AcquireLease") fail so, before they have done anything, or
  // with `done`, after.
  void Fail(const std::string& method, absl::Status status, int calls = 1, bool done = false) {
    const std::lock_guard<std::mutex> lock(mutex_);
    faults_[method] = {std::move(status), calls, done};
  }
  void SetTime(absl::Time time) {
    const std::lock_guard<std::mutex> lock(mutex_);
    time_ = time;
  }
  void SetGoOn(bool go_on) {
    const std::lock_guard<std::mutex> lock(mutex_);
    go_on_ = go_on;
  }
  void SetArtifactUrl(std::string url) {
    const std::lock_guard<std::mutex> lock(mutex_);
    artifact_url_ = std::move(url);
  }
  // Says of every mismatch that its record was a test.
  void HideMismatches(bool hide) {
    const std::lock_guard<std::mutex> lock(mutex_);
    hide_mismatches_ = hide;
  }
  void LieAboutChallenges(bool lie) {
    const std::lock_guard<std::mutex> lock(mutex_);
    lie_ = lie;
  }

  // What came, in short, for tests to read: "AcquireLease", "Heartbeat 12", "Release 1 why".
  std::vector<std::string> calls() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
  }
  int CountCalls(absl::string_view method) const {
    int count = 0;
    for (const std::string& call : calls()) {
      count += absl::string_view(call).substr(0, method.size()) == method ? 1 : 0;
    }
    return count;
  }
  std::vector<std::string> entries() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return entries_;
  }
  std::vector<v1::RequestHeader> headers() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return headers_;
  }
  audit::StepState StateOfStep(const Digest& run, uint64_t step) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const audit::RunLedger* const found = ledger_.FindRun(run);
    LOCKSTEP_CHECK(found != nullptr);
    return found->states()[step - found->first_step()];
  }

  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*,
                             v1::GetServerInfoResponse* response) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.push_back("GetServerInfo");
    if (const auto fault = TakeFault("GetServerInfo", false)) return rpc::ToGrpc(*fault);
    response->set_origin(origin_);
    response->set_log_key(log_key().ToText());
    response->set_server_time_ms(absl::ToUnixMillis(time_));
    response->set_version("fake");
    response->set_artifact_url(artifact_url_);
    return grpc::Status::OK;
  }
  grpc::Status SubmitKeyEvent(grpc::ServerContext*, const v1::SubmitKeyEventRequest* request,
                              v1::SubmitKeyEventResponse* response) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.push_back("SubmitKeyEvent");
    for (const std::string& entry : entries_) {
      if (entry != request->envelope()) continue;
      return rpc::ToGrpc(rpc::WithReason(absl::AlreadyExistsError("known"), "KEY_EXISTS"));
    }
    return Answer(AppendLocked(request->envelope()), response->mutable_receipt());
  }
  grpc::Status AcquireLease(grpc::ServerContext*, const v1::SignedRequest* request,
                            v1::AcquireLeaseResponse* response) override {
    v1::AcquireLeaseRequest payload;
    return Handle("AcquireLease", *request, &payload, response, [&] {
      calls_.push_back("AcquireLease");
      response->set_server_time_ms(absl::ToUnixMillis(time_));
      if (leases_.empty()) {
        response->set_retry_after_ms(60'000);
        response->set_no_work_reason("nothing to do");
      } else {
        *response->mutable_lease() = leases_.front();
        leases_.pop_front();
      }
      return absl::OkStatus();
    });
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const v1::SignedRequest* request,
                         v1::HeartbeatResponse* response) override {
    v1::HeartbeatRequest payload;
    return Handle("Heartbeat", *request, &payload, response, [&] {
      calls_.push_back(absl::StrCat("Heartbeat ", payload.next_step()));
      response->set_go_on(go_on_);
      response->set_server_time_ms(absl::ToUnixMillis(time_));
      return absl::OkStatus();
    });
  }
  grpc::Status ReleaseLease(grpc::ServerContext*, const v1::SignedRequest* request,
                            v1::ReleaseLeaseResponse* response) override {
    v1::ReleaseLeaseRequest payload;
    return Handle("ReleaseLease", *request, &payload, response, [&] {
      calls_.push_back(absl::StrCat("Release ", payload.reason(), " ", payload.detail()));
      return absl::OkStatus();
    });
  }
  grpc::Status SubmitAttestation(grpc::ServerContext*, const v1::SubmitAttestationRequest* request,
                                 v1::SubmitAttestationResponse* response) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    headers_.emplace_back().set_attempt_id(request->attempt_id());
    if (const auto fault = TakeFault("SubmitAttestation", false)) return rpc::ToGrpc(*fault);
    const auto attest = [&]() -> absl::Status {
      const auto entry = audit::LogEntry::Parse(request->envelope());
      LOCKSTEP_RETURN_IF_ERROR(entry.status());
      const auto* const attestation = std::get_if<audit::Attestation>(&entry->payload());
      LOCKSTEP_CHECK(attestation != nullptr);
      calls_.push_back(absl::StrCat("Attest ", attestation->step));
      bool there = false;
      for (const std::string& known : entries_) there = there || known == request->envelope();
      absl::StatusOr<v1::Receipt> receipt =
          there ? ReceiptOf(request->envelope()) : AppendLocked(request->envelope());
      if (hide_mismatches_ || rpc::ReasonOf(receipt.status()) == "NOT_THE_PUBLISHED_RECORD") {
        // As of a record that this coordinator made up.
        if (attestation->verdict == audit::Verdict::kMismatch) return absl::OkStatus();
      }
      LOCKSTEP_RETURN_IF_ERROR(receipt.status());
      *response->mutable_receipt() = *std::move(receipt);
      if (attestation->verdict == audit::Verdict::kMatch) {
        Ed25519Signature challenge = audit::MakeChallenge(key_, entry->leaf_hash());
        if (lie_) challenge[0] ^= 1;
        response->set_challenge(challenge.data(), challenge.size());
      }
      return absl::OkStatus();
    };
    const absl::Status status = attest();
    if (!status.ok()) return rpc::ToGrpc(status);
    if (const auto fault = TakeFault("SubmitAttestation", true)) return rpc::ToGrpc(*fault);
    return grpc::Status::OK;
  }
  grpc::Status SubmitOpening(grpc::ServerContext*, const v1::SignedRequest* request,
                             v1::SubmitOpeningResponse* response) override {
    v1::SubmitOpeningRequest payload;
    return Handle("SubmitOpening", *request, &payload, response, [&]() -> absl::Status {
      calls_.push_back("SubmitOpening");
      for (const std::string& envelope : payload.envelopes()) {
        absl::StatusOr<v1::Receipt> receipt = AppendLocked(envelope);
        LOCKSTEP_RETURN_IF_ERROR(receipt.status());
        *response->mutable_receipt() = *std::move(receipt);
      }
      return absl::OkStatus();
    });
  }
  grpc::Status OfferState(grpc::ServerContext*, const v1::SignedRequest* request,
                          v1::OfferStateResponse* response) override {
    v1::OfferStateRequest payload;
    return Handle("OfferState", *request, &payload, response, [&]() -> absl::Status {
      calls_.push_back("OfferState");
      absl::StatusOr<v1::Receipt> receipt = AppendLocked(payload.envelope());
      LOCKSTEP_RETURN_IF_ERROR(receipt.status());
      *response->mutable_receipt() = *std::move(receipt);
      for (const v1::Artifact& artifact : payload.artifacts()) {
        response->add_upload(artifact.sha256());
      }
      return absl::OkStatus();
    });
  }

 private:
  struct Fault {
    absl::Status status;
    int calls = 0;
    bool done = false;
  };

  std::optional<absl::Status> TakeFault(const std::string& method, bool done) {
    const auto found = faults_.find(method);
    if (found == faults_.end() || found->second.calls == 0 || found->second.done != done) {
      return std::nullopt;
    }
    --found->second.calls;
    return found->second.status;
  }

  template <class Payload, class Response, class Work>
  grpc::Status Handle(const std::string& method, const v1::SignedRequest& request, Payload* payload,
                      Response* response, Work work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto key =
        rpc::VerifyRequest(request, "/lockstep.v1.AuditService/" + method, origin_, payload);
    if (!key.ok()) return rpc::ToGrpc(key.status());
    headers_.push_back(payload->header());
    if (const auto fault = TakeFault(method, false)) return rpc::ToGrpc(*fault);
    if (absl::AbsDuration(absl::FromUnixMillis(payload->header().time_ms()) - time_) >
        absl::Minutes(5)) {
      return rpc::ToGrpc(
          rpc::WithReason(absl::FailedPreconditionError("clock"), "CLOCK_SKEW",
                          {{"server_time_ms", absl::StrCat(absl::ToUnixMillis(time_))}}));
    }
    auto& [known_payload, answer] = answers_[payload->header().request_id()];
    if (!answer.empty()) {
      if (known_payload != request.payload()) {
        return rpc::ToGrpc(
            rpc::WithReason(absl::InvalidArgumentError("again"), "REQUEST_ID_REUSED"));
      }
      LOCKSTEP_CHECK(response->ParseFromString(answer.substr(1)));
      return grpc::Status::OK;
    }
    const absl::Status status = work();
    if (!status.ok()) return rpc::ToGrpc(status);
    known_payload = request.payload();
    answer = "+" + response->SerializeAsString();
    if (const auto fault = TakeFault(method, true)) return rpc::ToGrpc(*fault);
    return grpc::Status::OK;
  }

  static grpc::Status Answer(absl::StatusOr<v1::Receipt> receipt, v1::Receipt* out) {
    if (!receipt.ok()) return rpc::ToGrpc(receipt.status());
    *out = *std::move(receipt);
    return grpc::Status::OK;
  }

  absl::StatusOr<v1::Receipt> AppendLocked(const std::string& bytes) {
    const auto entry = audit::LogEntry::Parse(bytes);
    LOCKSTEP_RETURN_IF_ERROR(entry.status());
    const auto outcome = ledger_.Apply(entries_.size(), *entry, audit::Signatures::kVerify);
    if (!outcome.ok()) {
      const auto refusal = audit::RefusalOf(outcome.status());
      LOCKSTEP_CHECK(refusal.has_value());
      return rpc::WithReason(outcome.status(), audit::RefusalName(*refusal));
    }
    entries_.push_back(bytes);
    tree_.Append(MerkleLeafHash(AsBytes(bytes)));
    return ReceiptOf(bytes);
  }

  absl::StatusOr<v1::Receipt> ReceiptOf(const std::string& bytes) {
    uint64_t index = 0;
    while (entries_[index] != bytes) ++index;
    const Digest leaf_hash = MerkleLeafHash(AsBytes(bytes));
    v1::Receipt receipt;
    receipt.set_index(index);
    receipt.set_leaf_hash(AsChars(leaf_hash.bytes).data(), 32);
    receipt.set_tree_size(entries_.size());
    receipt.set_proof(audit::EncodeLogProof(
        {.extra = std::nullopt,
         .index = index,
         .hashes = tree_.InclusionProof(index, entries_.size()).value(),
         .checkpoint = audit::SignLogCheckpoint(
             {.origin = origin_, .size = entries_.size(), .root = *tree_.Root(entries_.size())},
             key_)}));
    return receipt;
  }

  const std::string origin_;
  const Ed25519PrivateKey key_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;  // over all that follows
  audit::Ledger ledger_;
  MerkleTree tree_;
  std::vector<std::string> entries_;
  std::deque<v1::Lease> leases_;
  std::map<std::string, Fault> faults_;
  std::map<std::string, std::pair<std::string, std::string>> answers_;
  std::vector<std::string> calls_;
  std::vector<v1::RequestHeader> headers_;
  absl::Time time_ = absl::Now();
  bool go_on_ = true;
  bool lie_ = false;
  bool hide_mismatches_ = false;
  std::string artifact_url_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_TESTING_FAKE_COORDINATOR_H_
