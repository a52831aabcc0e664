// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator may answer to an attestation: any message. The input is an answer; a good
// receipt is put into it where its first byte says so, so that what lies behind is reached.
// Whatever it is, the attestation is in the log by its receipt, waits, or was a test of a record
// that is not the trainer's.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audit/evidence/opening.h"
#include "audit/log/log_checkpoint.h"
#include "audit/log/log_proof.h"
#include "audit/testing/small_log.h"
#include "base/logging.h"
#include "base/merkle.h"
#include "base/testing/temporary_folder.h"
#include "worker/outbox.h"
#include "worker/outbox_sender.h"

namespace lockstep::worker {
namespace {

constexpr char kOrigin[] = "example.com/log";

// Answers every attestation and opening with what it was given.
class AnyCoordinator final : public Coordinator {
 public:
  v1::SubmitAttestationResponse attestation;
  v1::SubmitOpeningResponse opening;

  absl::StatusOr<ServerInfo> Connect() override { return absl::UnimplementedError(""); }
  absl::StatusOr<v1::SubmitKeyEventResponse> SubmitKeyEvent(
      const v1::SubmitKeyEventRequest& /*request*/) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::AcquireLeaseResponse> AcquireLease(
      const v1::AcquireLeaseRequest& /*request*/) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(
      const v1::HeartbeatRequest& /*request*/) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::ReleaseLeaseResponse> ReleaseLease(
      const v1::ReleaseLeaseRequest& /*request*/) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::SubmitAttestationResponse> SubmitAttestation(
      const v1::SubmitAttestationRequest& /*request*/) override {
    return attestation;
  }
  absl::StatusOr<v1::SubmitOpeningResponse> SubmitOpening(
      const v1::SubmitOpeningRequest& /*request*/) override {
    return opening;
  }
  absl::StatusOr<v1::OfferStateResponse> OfferState(
      const v1::OfferStateRequest& /*request*/) override {
    return absl::UnimplementedError("");
  }
};

// A good answer to this entry, once: signing is slow.
const v1::SubmitAttestationResponse& GoodAnswer(const std::string& entry) {
  static const auto* const answer = [&] {
    const Ed25519PrivateKey& log_key = audit::TestKey(audit::kLogKey);
    const Digest leaf = MerkleLeafHash(AsBytes(entry));
    auto* const made = new v1::SubmitAttestationResponse();
    v1::Receipt& receipt = *made->mutable_receipt();
    receipt.set_leaf_hash(leaf.bytes.data(), leaf.bytes.size());
    receipt.set_tree_size(1);
    receipt.set_proof(
        audit::EncodeLogProof({.extra = std::nullopt,
                               .index = 0,
                               .hashes = {},
                               .checkpoint = audit::SignLogCheckpoint(
                                   {.origin = kOrigin, .size = 1, .root = leaf}, log_key)}));
    const Ed25519Signature challenge = audit::MakeChallenge(log_key, leaf);
    made->set_challenge(challenge.data(), challenge.size());
    return made;
  }();
  return *answer;
}

void Try(uint8_t what, AnyCoordinator& coordinator) {
  static const std::string entry = "an attestation";
  static const TemporaryFolder folder;
  static const std::unique_ptr<Outbox> outbox = Outbox::Open(folder / "outbox").value();
  static uint64_t step = 0;  // each input another: what was finished is known for ever
  const Digest run = audit::TestDigest("run", 0);
  const OutboxItem item = {.origin = kOrigin,
                           .run_id = run,
                           .step = ++step,
                           .lease_id = "lease",
                           .envelope = entry,
                           .trainer_signed = (what & 1) != 0,
                           .nonce = audit::TestDigest("nonce", 1),
                           .openings = 1,
                           .leaves = audit::TestTranscript(1)};
  if ((what & 2) != 0) *coordinator.attestation.mutable_receipt() = GoodAnswer(entry).receipt();
  if ((what & 4) != 0) coordinator.attestation.set_challenge(GoodAnswer(entry).challenge());
  LOCKSTEP_CHECK(outbox->Add(item).ok());
  const std::vector<uint64_t> pending = outbox->Pending();
  LOCKSTEP_CHECK(pending.size() == 1);
  const ServerInfo server = {
      .origin = kOrigin,
      .log_key = {.name = kOrigin, .key = audit::TestPublicKey(audit::kLogKey)},
      .artifact_url = {},
      .version = {}};
  SendReport report;
  const absl::Status status = SendOutbox(*outbox, coordinator, server,
                                         audit::TestKey(audit::WorkerKey(0)), nullptr, &report);
  LOCKSTEP_CHECK(status.ok() == outbox->Pending().empty());
  // Without a good receipt nothing of the trainer's is done with.
  if (status.ok() && (what & 3) == 1) {
    LOCKSTEP_CHECK(coordinator.attestation.receipt().proof() ==
                   GoodAnswer(entry).receipt().proof());
  }
  if (report.tests > 0) LOCKSTEP_CHECK(!item.trainer_signed);
  // For the next input.
  LOCKSTEP_CHECK(outbox->Drop(pending[0]).ok());
  std::filesystem::remove_all(folder / "outbox/receipts");
  std::filesystem::create_directories(folder / "outbox/receipts");
}

}  // namespace
}  // namespace lockstep::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  lockstep::worker::AnyCoordinator coordinator;
  const size_t first = std::min<size_t>(data[1], size - 2);
  coordinator.attestation.ParseFromArray(data + 2, static_cast<int>(first));
  coordinator.opening.ParseFromArray(data + 2 + first, static_cast<int>(size - 2 - first));
  lockstep::worker::Try(data[0], coordinator);
  return 0;
}
