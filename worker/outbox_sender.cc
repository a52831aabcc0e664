// SPDX-License-Identifier: Apache-2.0
//
// The dialogue over one attestation.
#include "worker/outbox_sender.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "audit/evidence/log_entry.h"
#include "audit/evidence/opening.h"
#include "audit/log/log_proof.h"
#include "base/encoding.h"
#include "base/logging.h"
#include "base/merkle.h"
#include "base/status.h"
#include "rpc/rpc_error.h"
#include "worker/advice.h"

namespace lockstep::worker {
namespace {

// Whether a coordinator that is well says this of the entry for good. Anything without a reason is
// of the way there and not of the entry.
bool IsFinal(const absl::Status& status) {
  const std::string reason = rpc::ReasonOf(status);
  if (reason.empty() || absl::IsUnavailable(status) || absl::IsCancelled(status)) return false;
  // These are of the request or of the key at the moment; the operator can mend them.
  for (const char* passing :
       {"INTERNAL", "NO_ANSWER", "CLOCK_SKEW", "REQUEST_ID_REUSED", "SIGNATURE_INVALID",
        "KEY_UNKNOWN", "UNKNOWN_KEY", "KEY_IN_USE", "QUOTA_EXCEEDED", "RATE_LIMITED"}) {
    if (reason == passing) return false;
  }
  return true;
}

absl::StatusOr<audit::LogProof> CheckReceipt(const v1::Receipt& receipt, const Digest& leaf_hash,
                                             const audit::NoteKey& log_key) {
  if (receipt.leaf_hash() != AsChars(leaf_hash.bytes)) {
    return absl::DataLossError(absl::StrCat("receipt: expected that of the entry ",
                                            leaf_hash.ToHex(), "; found that of ",
                                            HexEncode(AsBytes(receipt.leaf_hash()))));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(audit::LogProof proof, audit::ParseLogProof(receipt.proof()),
                            "receipt");
  const absl::Status holds = audit::VerifyLogProof(proof, leaf_hash, log_key).status();
  if (!holds.ok()) return absl::DataLossError(absl::StrCat("receipt: ", holds.message()));
  return proof;
}

class Sender {
 public:
  Sender(Outbox& outbox, Coordinator& coordinator, const ServerInfo& server,
         const Ed25519PrivateKey& key, SendReport* report)
      : outbox_(outbox), coordinator_(coordinator), server_(server), key_(key), report_(report) {}

  absl::Status Send(uint64_t number) {
    LOCKSTEP_ASSIGN_OR_RETURN(OutboxItem item, outbox_.Read(number));
    if (!item.challenge) {
      LOCKSTEP_ASSIGN_OR_RETURN(const bool taken, Attest(number, &item));
      if (!taken) return absl::OkStatus();
    }
    if (item.challenge) {
      LOCKSTEP_ASSIGN_OR_RETURN(const bool taken, Open(number, item));
      if (!taken) return absl::OkStatus();
    }
    ++report_->finished;
    return outbox_.Finish(number);
  }

 private:
  absl::StatusOr<bool> Attest(uint64_t number, OutboxItem* item) {
    v1::SubmitAttestationRequest request;
    request.set_envelope(item->envelope);
    const absl::StatusOr<v1::SubmitAttestationResponse> answer =
        coordinator_.SubmitAttestation(request);
    if (!answer.ok()) return Refused(number, answer.status());
    if (!answer->has_receipt()) {
      // A test, says the coordinator: a record made up to find those who do not look. So it may say
      // of what the trainer did not sign, and of nothing else: else it could pass over a mismatch.
      if (item->trainer_signed) {
        return absl::DataLossError(
            "expected a receipt: the record that the attestation is about is the trainer's");
      }
      ++report_->tests;
      LOCKSTEP_RETURN_IF_ERROR(outbox_.Drop(number));
      return false;
    }
    const Digest leaf_hash = MerkleLeafHash(AsBytes(item->envelope));
    LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogProof proof,
                              CheckReceipt(answer->receipt(), leaf_hash, server_.log_key));
    if (!answer->challenge().empty()) {
      Ed25519Signature challenge;
      if (answer->challenge().size() != challenge.size()) {
        return absl::DataLossError(
            absl::StrCat("challenge: expected 64 bytes; found ", answer->challenge().size()));
      }
      std::memcpy(challenge.data(), answer->challenge().data(), challenge.size());
      if (!audit::VerifyChallenge(server_.log_key.key, leaf_hash, challenge)) {
        // A made-up one would have the worker open leaves that nobody drew.
        return absl::DataLossError("challenge: expected the log key's signature; it is none");
      }
      item->challenge = challenge;
    }
    LOCKSTEP_RETURN_IF_ERROR(outbox_.Acknowledge(number, proof, item->challenge));
    return true;
  }

  absl::StatusOr<bool> Open(uint64_t number, const OutboxItem& item) {
    const Digest leaf_hash = MerkleLeafHash(AsBytes(item.envelope));
    const Ed25519PrivateKey* const signers[] = {&key_};
    v1::SubmitOpeningRequest request;
    for (const uint64_t index :
         audit::ChallengedIndices(*item.challenge, item.leaves.size(), item.openings)) {
      LOCKSTEP_ASSIGN_OR_RETURN(const audit::Opening opening,
                                audit::MakeOpening(leaf_hash, *item.challenge, item.nonce,
                                                   key_.public_key(), item.leaves, index));
      LOCKSTEP_ASSIGN_OR_RETURN(std::string envelope, audit::MakeLogEntry(opening, signers));
      request.add_envelopes(std::move(envelope));
    }
    if (request.envelopes_size() == 0) return true;
    const absl::StatusOr<v1::SubmitOpeningResponse> answer = coordinator_.SubmitOpening(request);
    if (!answer.ok()) {
      // An earlier try got there, and its answer got lost.
      if (rpc::ReasonOf(answer.status()) == "DUPLICATE") return true;
      return Refused(number, answer.status());
    }
    const std::string& last = request.envelopes(request.envelopes_size() - 1);
    LOCKSTEP_RETURN_IF_ERROR(
        CheckReceipt(answer->receipt(), MerkleLeafHash(AsBytes(last)), server_.log_key).status());
    return true;
  }

  // False if it was put away; the error if it has to wait.
  absl::StatusOr<bool> Refused(uint64_t number, const absl::Status& status) {
    if (!IsFinal(status)) return status;
    LOCKSTEP_LOG_WARNING("attestation {} is refused by {}: {}", number, server_.origin,
                         Words(status));
    LOCKSTEP_RETURN_IF_ERROR(
        outbox_.Refuse(number, absl::StrCat(rpc::ReasonOf(status), ": ", status.message())));
    ++report_->refused;
    return false;
  }

  Outbox& outbox_;
  Coordinator& coordinator_;
  const ServerInfo& server_;
  const Ed25519PrivateKey& key_;
  SendReport* report_;
};

}  // namespace

absl::Status SendOutbox(Outbox& outbox, Coordinator& coordinator, const ServerInfo& server,
                        const Ed25519PrivateKey& key, const std::function<bool()>& stop,
                        SendReport* report) {
  Sender sender(outbox, coordinator, server, key, report);
  for (const uint64_t number : outbox.Pending(server.origin)) {
    if (stop && stop()) return absl::CancelledError("interrupted");
    LOCKSTEP_RETURN_IF_ERROR(sender.Send(number));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
