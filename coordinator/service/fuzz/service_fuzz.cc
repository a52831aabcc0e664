// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: what strangers and registered workers may send to the services, as far as it gets in
// the handlers, over a coordinator in a directory of its own. An input picks a method and is either
// the bytes of its message, or a list of changes to a message that would be taken; envelopes that
// were changed inside are signed anew, so that what lies behind the signature is reached. Nothing
// of it may be an internal error or stop the writer.

#include <grpcpp/server_context.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "audit/evidence/dsse.h"
#include "audit/testing/small_log.h"
#include "base/encoding.h"
#include "base/logging.h"
#include "coordinator/service/audit_service.h"
#include "coordinator/service/public_service.h"
#include "coordinator/service/trainer_service.h"
#include "coordinator/testing/small_network.h"
#include "rpc/signed_request.h"

namespace lockstep::coordinator {
namespace {

using audit::OperatorKey;
using audit::TestEntry;
using audit::TestPublicKey;
using audit::WorkerKey;

constexpr int kWorker = 1000;  // WorkerKey(0)
constexpr int kMethods = 23;

// Bytes of the input, one after the other; zeros behind its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool done() const { return at_ >= size_; }
  uint8_t Byte() { return at_ < size_ ? data_[at_++] : 0; }
  std::string Rest() {
    std::string rest(reinterpret_cast<const char*>(data_) + at_, size_ - at_);
    at_ = size_;
    return rest;
  }
  // Some changes to text: a byte set, removed or put in, or a piece of it repeated.
  std::string Change(std::string text) {
    for (int count = Byte() % 8; count > 0 && !done() && !text.empty(); --count) {
      const size_t place = (size_t{Byte()} << 8 | Byte()) % text.size();
      const uint8_t how = Byte();
      const char byte = static_cast<char>(Byte());
      switch (how % 4) {
        case 0:
          text[place] = byte;
          break;
        case 1:
          text.erase(place, static_cast<size_t>(static_cast<uint8_t>(byte)));
          break;
        case 2:
          text.insert(place, 1, byte);
          break;
        default:
          text.insert(place, text.substr(place, static_cast<uint8_t>(byte)));
          break;
      }
    }
    return text;
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

class Fuzzed {
 public:
  Fuzzed() : calls_({}, std::make_shared<prometheus::Registry>()) {
    network_.options.batch_rows_max = 1;  // nobody waits for a batch to fill
    network_.options.on_failure = [](const absl::Status& error) {
      LOCKSTEP_CHECK(false, "the writer has stopped: {}", error);
    };
    LOCKSTEP_CHECK(network_.Open().ok());
    network_.AddOperator(0);
    network_.AddOperator(1);
    network_.AddRun(8);
    audit_ = std::make_unique<AuditService>(*network_, calls_, AuditServiceOptions());
    public_ = std::make_unique<PublicService>(*network_, calls_);
    trainer_ = std::make_unique<TrainerService>(*network_, calls_);
    NewLease();
  }

  void Try(Input input) {
    const int method = input.Byte() % kMethods;
    raw_ = input.Byte() % 4 == 0;
    input_ = &input;
    Call(method);
    LOCKSTEP_CHECK(network_->health().ok());
  }

 private:
  void NewLease() {
    const auto answer =
        network_->AcquireLease(network_.CallerOf(kWorker), SmallNetwork::Machine(), 2);
    if (answer.ok() && answer->lease) lease_ = answer->lease->lease;
  }

  // An envelope: the input's bytes, or what would be right, changed inside and signed anew.
  std::string Envelope(const audit::EntryPayload& right, const std::vector<int>& keys) {
    const std::string whole = TestEntry(right, keys);
    if (input_->Byte() % 4 == 0) return input_->Change(whole);
    audit::DsseEnvelope envelope = audit::ParseDsse(whole).value();
    envelope.payload = input_->Change(envelope.payload);
    envelope.signatures.clear();
    for (const int key : keys) {
      const Ed25519Signature signature = audit::TestKey(key).Sign(
          AsBytes(audit::DssePae(envelope.payload_type, envelope.payload)));
      envelope.signatures.push_back(
          {.key_id = TestPublicKey(key).Id().ToHex(), .bytes = ToString(signature)});
    }
    return audit::EncodeDsse(envelope);
  }

  v1::RequestHeader Header() {
    v1::RequestHeader header;
    const Digest id = audit::TestDigest("fuzzed request", ++requests_);
    header.set_request_id(id.bytes.data(), 16);
    const Caller caller = network_.CallerOf(kWorker);
    header.set_attempt_id(HexDecode(caller.attempt_id).value());
    header.set_time_ms(caller.time_unix_ms);
    return header;
  }

  // A request that the worker's key has signed: bytes of the input's, or a payload that would be
  // taken, with its bytes changed if the input says so.
  template <typename Payload>
  v1::SignedRequest Signed(const char* method, Payload payload) {
    *payload.mutable_header() = Header();
    std::string bytes = payload.SerializeAsString();
    if (raw_) {
      bytes = input_->Rest();
    } else if (input_->Byte() % 2 == 0) {
      bytes = input_->Change(bytes);
    }
    const std::string name = absl::StrCat("/lockstep.v1.AuditService/", method);
    // As rpc::SignRequest, over bytes that need not be a message.
    v1::SignedRequest request =
        rpc::SignRequest(audit::TestKey(kWorker), name, network_->origin(), Payload());
    std::string text = "lockstep-request-v1";
    for (const std::string& part : {name, network_->origin(), bytes}) {
      text += '\0';
      text += part;
    }
    request.set_payload(bytes);
    request.set_signature(ToString(audit::TestKey(kWorker).Sign(AsBytes(text))));
    return request;
  }

  // The message, changed or made of the input's bytes; nothing is done with what cannot be read.
  template <typename Service, typename Request, typename Response>
  void Plain(Service& service,
             grpc::Status (Service::*method)(grpc::ServerContext*, const Request*, Response*),
             Request request) {
    const std::string bytes = raw_ ? input_->Rest() : input_->Change(request.SerializeAsString());
    if (!request.ParseFromString(bytes)) return;
    Answer(service, method, request);
  }
  // As it is.
  template <typename Service, typename Request, typename Response>
  void Answer(Service& service,
              grpc::Status (Service::*method)(grpc::ServerContext*, const Request*, Response*),
              const Request& request) {
    grpc::ServerContext context;
    Response response;
    const grpc::Status status = (service.*method)(&context, &request, &response);
    LOCKSTEP_CHECK(status.error_code() != grpc::StatusCode::INTERNAL &&
                       status.error_code() != grpc::StatusCode::UNKNOWN &&
                       status.error_code() != grpc::StatusCode::UNAVAILABLE,
                   "{}", status.error_message());
    LOCKSTEP_CHECK(!status.ok() || response.IsInitialized());
  }

  void Call(int method) {
    switch (method) {
      case 0: {
        v1::SubmitKeyEventRequest request;
        request.set_envelope(Envelope(
            audit::KeyEvent(audit::OperatorEvent{.operator_key = TestPublicKey(OperatorKey(7)),
                                                 .revocation_key = TestPublicKey(OperatorKey(8)),
                                                 .name = "an operator",
                                                 .contact = "somewhere"}),
            {OperatorKey(7)}));
        return Answer(*audit_, &AuditService::SubmitKeyEvent, request);
      }
      case 1: {
        v1::SubmitKeyEventRequest request;
        request.set_envelope(Envelope(
            audit::KeyEvent(audit::WorkerEvent{.worker_key = TestPublicKey(WorkerKey(0, 7)),
                                               .operator_key = TestPublicKey(OperatorKey(0)),
                                               .hardware = "a machine"}),
            {OperatorKey(0), WorkerKey(0, 7)}));
        return Answer(*audit_, &AuditService::SubmitKeyEvent, request);
      }
      case 2: {
        v1::AcquireLeaseRequest request;
        request.mutable_capabilities()->set_backend_class("x86-avx2");
        request.mutable_capabilities()->set_memory_bytes(uint64_t{1} << 40);
        request.mutable_capabilities()->add_runs(ToString(network_.run_id().bytes));
        return Answer(*audit_, &AuditService::AcquireLease, Signed("AcquireLease", request));
      }
      case 3: {
        v1::HeartbeatRequest request;
        request.set_lease_id(HexDecode(lease_.lease_id).value());
        return Answer(*audit_, &AuditService::Heartbeat, Signed("Heartbeat", request));
      }
      case 4: {
        v1::ReleaseLeaseRequest request;
        request.set_lease_id(HexDecode(lease_.lease_id).value());
        request.set_detail("no wish");
        Answer(*audit_, &AuditService::ReleaseLease, Signed("ReleaseLease", request));
        return NewLease();
      }
      case 5:
      case 6: {
        v1::SubmitAttestationRequest request;
        const Ed25519PublicKey key = audit::TestPublicKey(kWorker);
        request.set_public_key(key.bytes.data(), key.bytes.size());
        request.set_attempt_id(HexDecode(lease_.attempt_id).value());
        const uint64_t step = lease_.first_step + input_->Byte() % 2;
        audit::StepRecord found = network_.Record(step);
        found.gradient = audit::TestDigest("another gradient", step);
        request.set_envelope(Envelope(
            network_.Found(lease_, step, kWorker, method == 5 ? nullptr : &found), {kWorker}));
        Answer(*audit_, &AuditService::SubmitAttestation, request);
        return NewLease();
      }
      case 7: {
        const audit::Attestation said = network_.Found(lease_, lease_.first_step, kWorker);
        const audit::EntryRef entry{.leaf_hash =
                                        MerkleLeafHash(AsBytes(TestEntry(said, {kWorker})))};
        const AttestationAnswer asked{
            .entry = entry,
            .challenge = audit::MakeChallenge(audit::TestKey(kWorker), entry.leaf_hash)};
        v1::SubmitOpeningRequest request;
        for (const audit::Opening& opening : network_.Openings(said, asked, kWorker)) {
          request.add_envelopes(Envelope(opening, {kWorker}));
        }
        return Answer(*audit_, &AuditService::SubmitOpening, Signed("SubmitOpening", request));
      }
      case 8: {
        v1::OfferStateRequest request;
        request.set_envelope(Envelope(network_.StateBefore(input_->Byte() % 9), {kWorker}));
        request.add_artifacts()->set_sha256(std::string(32, 'x'));
        return Answer(*audit_, &AuditService::OfferState, Signed("OfferState", request));
      }
      case 9: {
        v1::RegisterRunRequest request;
        request.set_envelope(Envelope(network_.registration(), {audit::kTrainerKey}));
        return Answer(*trainer_, &TrainerService::RegisterRun, request);
      }
      case 10: {
        v1::PublishRecordsRequest request;
        request.set_run_id(ToString(network_.run_id().bytes));
        request.add_envelopes(
            Envelope(audit::PublishedRecord{.run_id = network_.run_id(),
                                            .record = network_.Record(input_->Byte() % 16)},
                     {audit::kTrainerKey}));
        return Answer(*trainer_, &TrainerService::PublishRecords, request);
      }
      case 11: {
        v1::AnnounceCheckpointRequest request;
        request.set_envelope(
            Envelope(network_.StateBefore(input_->Byte() % 9), {audit::kTrainerKey}));
        v1::Artifact& artifact = *request.add_artifacts();
        artifact.set_sha256(std::string(32, 'x'));
        artifact.add_mirrors("https://mirror.example");
        return Plain(*trainer_, &TrainerService::AnnounceCheckpoint, request);
      }
      case 12: {
        v1::QueryArtifactsRequest request;
        request.add_sha256(std::string(32, 'x'));
        return Plain(*trainer_, &TrainerService::QueryArtifacts, request);
      }
      case 13: {
        v1::GetProgressRequest request;
        request.set_run_id(ToString(network_.run_id().bytes));
        return Plain(*trainer_, &TrainerService::GetProgress, request);
      }
      case 14:
        return Plain(*public_, &PublicService::ListRuns, v1::ListRunsRequest());
      case 15:
        return OfRun<v1::GetRunRequest>(&PublicService::GetRun);
      case 16:
        return OfRun<v1::GetCoverageRequest>(&PublicService::GetCoverage);
      case 17:
        return OfRun<v1::ListStepsRequest>(&PublicService::ListSteps);
      case 18:
        return OfRun<v1::ListAttestationsRequest>(&PublicService::ListAttestations);
      case 19:
        return OfRun<v1::ListDisputesRequest>(&PublicService::ListDisputes);
      case 20: {
        v1::ListLeasesRequest request;
        request.set_run_id(ToString(network_.run_id().bytes));
        request.set_page_size(input_->Byte());
        request.set_page_token(input_->Rest());
        return Plain(*public_, &PublicService::ListLeases, request);
      }
      case 21: {
        v1::ListEntriesRequest request;
        request.set_begin(input_->Byte());
        request.set_page_size(3);
        return Plain(*public_, &PublicService::ListEntries, request);
      }
      default: {
        v1::GetReceiptRequest request;
        request.set_index(input_->Byte());
        return Plain(*public_, &PublicService::GetReceipt, request);
      }
    }
  }

  template <typename Request, typename Response>
  void OfRun(grpc::Status (PublicService::*method)(grpc::ServerContext*, const Request*,
                                                   Response*)) {
    Request request;
    request.set_run_id(ToString(network_.run_id().bytes));
    Plain(*public_, method, request);
  }

  SmallNetwork network_;
  Calls calls_;
  std::unique_ptr<AuditService> audit_;
  std::unique_ptr<PublicService> public_;
  std::unique_ptr<TrainerService> trainer_;
  LeaseRow lease_;
  uint64_t requests_ = 0;
  Input* input_ = nullptr;  // of this call
  bool raw_ = false;
};

}  // namespace
}  // namespace lockstep::coordinator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const fuzzed = new lockstep::coordinator::Fuzzed();
  fuzzed->Try({data, size});
  return 0;
}
