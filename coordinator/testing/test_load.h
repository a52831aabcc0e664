// SPDX-License-Identifier: Apache-2.0
//
// A trainer and auditors who keep a coordinator busy through gRPC and remember what it
// acknowledged, so that a test can end the program at any moment and look for it afterwards. For
// tests only.

#ifndef LOCKSTEP_COORDINATOR_TESTING_TEST_LOAD_H_
#define LOCKSTEP_COORDINATOR_TESTING_TEST_LOAD_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/merkle.h"
#include "base/status.h"
#include "coordinator/testing/small_network.h"
#include "coordinator/testing/test_client.h"

namespace lockstep::coordinator {

// Hears of an entry that the coordinator says is in its log. From the thread that asked.
using OnAcknowledged = std::function<void(uint64_t log_index, const std::string& envelope)>;

// Whether nobody answered, or nobody who could have known, as opposed to an answer that says no.
inline bool IsUnanswered(const absl::Status& status) {
  if (status.ok()) return false;
  return rpc::ReasonOf(status).empty() || absl::IsUnavailable(status) ||
         absl::IsDeadlineExceeded(status);
}

// An honest auditor that outlives the coordinator: it asks again for what it got no answer to.
class TestWorker {
 public:
  // `network` knows the run and outlives the worker; only what is const after its records were
  // made is used, so that many workers may have it.
  TestWorker(SmallNetwork& network, int key, OnAcknowledged acknowledged)
      : network_(network), key_(key), acknowledged_(std::move(acknowledged)) {}

  bool has_lease() const { return lease_.has_value(); }
  const v1::Lease& lease() const { return *lease_; }

  // One request of a lease, answered; without work has_lease() stays false.
  absl::Status Acquire(TestClient& client) {
    if (!asked_) {
      asked_.emplace();
      *asked_->mutable_header() = client.Header(key_);
      v1::Capabilities& machine = *asked_->mutable_capabilities();
      machine.set_backend_class("x86-avx2");
      machine.set_memory_bytes(uint64_t{1} << 40);
      machine.set_disk_bytes(uint64_t{1} << 40);
      machine.set_tokens_per_second(1e9);
    }
    const auto answer = client.Signed<v1::AcquireLeaseResponse>("AcquireLease", key_, *asked_);
    if (!IsUnanswered(answer.status())) asked_.reset();
    if (!answer.ok()) return answer.status();
    if (answer->has_lease()) {
      lease_ = answer->lease();
      next_step_ = lease_->begin_step();
      if (next_step_ >= lease_->end_step()) lease_.reset();
    }
    return absl::OkStatus();
  }

  // Attests and opens the next step of the lease.
  absl::Status Step(TestClient& client) {
    const uint64_t step = next_step_;
    const auto served =
        audit::LogEntry::Parse(lease_->records(static_cast<int>(step - lease_->start().step())));
    if (!served.ok()) return rpc::WithReason(served.status(), "RECORD_SERVED_IS_NONE");
    const audit::StepRecord record = std::get<audit::PublishedRecord>(served->payload()).record;
    // Else it is a canary, which is seen and said.
    const bool same = record == network_.Record(step);
    audit::Attestation said =
        audit::TestAttestation(network_.run_id(), record, audit::TestPublicKey(key_),
                               same ? nullptr : &network_.Record(step));
    said.lease_id = HexEncode(AsBytes(lease_->lease_id()));
    said.nonce = Digest::FromBytes(AsBytes(lease_->nonce())).value();
    said.openings_digest =
        audit::OpeningsDigest(said.nonce, audit::TestPublicKey(key_), audit::TestTranscript(step));
    const std::string envelope = audit::TestEntry(said, {key_});
    const auto answer = client.Submit(envelope, key_);
    if (!answer.ok()) {
      const std::string reason = rpc::ReasonOf(answer.status());
      if (reason == "ATTESTATION_EXISTS") {
        FinishStep();
        return absl::OkStatus();
      }
      // Ended meanwhile, perhaps by this very answer that never arrived.
      if (!IsUnanswered(answer.status())) lease_.reset();
      return reason == "LEASE_EXPIRED" ? absl::OkStatus() : answer.status();
    }
    if (answer->has_receipt() != same) {
      return rpc::WithReason(absl::InternalError(absl::StrCat("step ", step,
                                                              ": a receipt for a "
                                                              "canary, or none for a step")),
                             "RECEIPT_WRONG");
    }
    if (same) acknowledged_(answer->receipt().index(), envelope);
    if (!answer->challenge().empty())
      LOCKSTEP_RETURN_IF_ERROR(Open(client, said, envelope, *answer));
    FinishStep();
    return absl::OkStatus();
  }

 private:
  absl::Status Open(TestClient& client, const audit::Attestation& said, const std::string& envelope,
                    const v1::SubmitAttestationResponse& answer) {
    AttestationAnswer asked{
        .entry = audit::EntryRef{.log_index = answer.receipt().index(),
                                 .leaf_hash = MerkleLeafHash(AsBytes(envelope))},
        .challenge = Ed25519Signature()};
    std::copy(answer.challenge().begin(), answer.challenge().end(), asked.challenge->begin());
    v1::SubmitOpeningRequest openings;
    for (const audit::Opening& opening : network_.Openings(said, asked, key_)) {
      openings.add_envelopes(audit::TestEntry(opening, {key_}));
    }
    const auto opened = client.Signed<v1::SubmitOpeningResponse>("SubmitOpening", key_, openings);
    if (!opened.ok()) return opened.status();
    acknowledged_(opened->receipt().index(), openings.envelopes(openings.envelopes_size() - 1));
    return absl::OkStatus();
  }

  void FinishStep() {
    if (++next_step_ == lease_->end_step()) lease_.reset();
  }

  SmallNetwork& network_;
  const int key_;
  const OnAcknowledged acknowledged_;
  std::optional<v1::AcquireLeaseRequest> asked_;
  std::optional<v1::Lease> lease_;
  uint64_t next_step_ = 0;
};

class TestTrainer {
 public:
  TestTrainer(SmallNetwork& network, OnAcknowledged acknowledged)
      : network_(network), acknowledged_(std::move(acknowledged)) {}

  uint64_t next_step() const { return next_step_; }

  // Registers the run, perhaps once more, and goes on from where the coordinator has it.
  absl::Status Begin(TestClient& client) {
    v1::RegisterRunRequest registration;
    registration.set_envelope(network_.RunEntry());
    const auto registered = client.Call<v1::RegisterRunResponse>(
        client.trainer(), &v1::TrainerService::Stub::RegisterRun, registration);
    if (!registered.ok()) return registered.status();
    acknowledged_(registered->receipt().index(), registration.envelope());
    v1::GetProgressRequest request;
    request.set_run_id(ToString(network_.run_id().bytes));
    const auto progress = client.Call<v1::GetProgressResponse>(
        client.trainer(), &v1::TrainerService::Stub::GetProgress, request);
    if (!progress.ok()) return progress.status();
    if (progress->next_step() < published_) {
      return rpc::WithReason(absl::DataLossError(absl::StrCat("records of ", published_,
                                                              " steps were acknowledged, and ",
                                                              progress->next_step(), " are left")),
                             "RECORDS_LOST");
    }
    next_step_ = progress->next_step();
    return absl::OkStatus();
  }

  absl::Status Publish(TestClient& client, int steps) {
    const std::vector<std::string> entries =
        network_.RecordEntries(static_cast<int>(next_step_), steps);
    const auto published = client.Publish(network_.run_id(), entries);
    if (!published.ok()) return published.status();
    acknowledged_(published->last().index(), entries.back());
    next_step_ += static_cast<uint64_t>(steps);
    published_ = next_step_;
    return absl::OkStatus();
  }

  // The state before the next step, which others may start from, with its files somewhere else.
  absl::Status Announce(TestClient& client) {
    const audit::CheckpointAnnouncement state = network_.StateBefore(next_step_);
    v1::AnnounceCheckpointRequest request;
    request.set_envelope(audit::TestEntry(state, {audit::kTrainerKey}));
    std::vector<Digest> files = {state.manifest};
    for (const audit::CheckpointFile& file : state.files) files.push_back(file.sha256);
    for (const Digest& digest : files) {
      v1::Artifact& artifact = *request.add_artifacts();
      artifact.set_sha256(ToString(digest.bytes));
      artifact.set_size(100);
      artifact.add_mirrors("https://mirror.example");
    }
    const auto announced = client.Call<v1::AnnounceCheckpointResponse>(
        client.trainer(), &v1::TrainerService::Stub::AnnounceCheckpoint, request);
    if (!announced.ok()) return announced.status();
    acknowledged_(announced->receipt().index(), request.envelope());
    return absl::OkStatus();
  }

 private:
  SmallNetwork& network_;
  const OnAcknowledged acknowledged_;
  uint64_t next_step_ = 0;
  uint64_t published_ = 0;  // by an acknowledgement
};

// Registers operator n with one worker, perhaps once more.
inline absl::Status SubmitOperator(TestClient& client, int n, const OnAcknowledged& acknowledged) {
  const auto add = [&](const audit::KeyEvent& event, const std::vector<int>& keys) {
    const auto added = client.SubmitKey(event, keys);
    if (added.ok()) acknowledged(added->receipt().index(), audit::TestEntry(event, keys));
    return added.status();
  };
  LOCKSTEP_RETURN_IF_ERROR(
      add(audit::OperatorEvent{.operator_key = audit::TestPublicKey(audit::OperatorKey(n)),
                               .revocation_key = audit::TestPublicKey(audit::RevocationKey(n)),
                               .name = absl::StrCat("operator ", n),
                               .contact = ""},
          {audit::OperatorKey(n)}));
  return add(audit::WorkerEvent{.worker_key = audit::TestPublicKey(audit::WorkerKey(n)),
                                .operator_key = audit::TestPublicKey(audit::OperatorKey(n)),
                                .hardware = "a machine"},
             {audit::OperatorKey(n), audit::WorkerKey(n)});
}

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_TESTING_TEST_LOAD_H_
