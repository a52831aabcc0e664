// SPDX-License-Identifier: Apache-2.0
//
// Messages made and read.

#include "coordinator/service/wire.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "audit/evidence/dsse.h"
#include "base/encoding.h"
#include "base/status.h"
#include "coordinator/core/mirror.h"
#include "coordinator/core/random_bytes.h"
#include "coordinator/core/reasons.h"

namespace lockstep::coordinator {
namespace {

constexpr int kArtifactsMax = 4'096;

// The record as it was published, or the canary's in its place. Nobody but the trainer could sign
// that one, so its signature is none: whoever verifies records before the replay sees it.
absl::StatusOr<std::string> RecordToServe(const std::string& envelope, const Digest& run,
                                          uint64_t step, const std::optional<CanaryRow>& canary) {
  if (!canary || canary->step != step) return envelope;
  LOCKSTEP_ASSIGN_OR_RETURN(audit::DsseEnvelope parsed, audit::ParseDsse(envelope));
  parsed.payload = absl::StrCat(AsChars(run.bytes), canary->false_record);
  for (audit::DsseSignature& signature : parsed.signatures) {
    signature.bytes = ToString(RandomBytes<kEd25519SignatureBytes>());
  }
  return audit::EncodeDsse(parsed);
}

// What is said of a file, in the order in which it is believed: by the run's trainer, by other
// trainers, by the worker whose state it is of.
absl::StatusOr<std::vector<ArtifactRow>> WordsOf(StoreView& view, const Digest& digest,
                                                 const Digest& run, const Digest& source) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<ArtifactRow> rows, view.ArtifactByTrainers(digest));
  std::stable_partition(rows.begin(), rows.end(),
                        [&](const ArtifactRow& row) { return row.source == run; });
  if (source == run) return rows;
  absl::StatusOr<ArtifactRow> row = view.Artifact(digest, source);
  if (row.ok()) {
    rows.push_back(*std::move(row));
  } else if (!absl::IsNotFound(row.status())) {
    return row.status();
  }
  return rows;
}

// `bytes`: as announced in the log; 0: that does not say.
absl::StatusOr<v1::Artifact> ArtifactToWire(StoreView& view, const LeaseGrant& grant,
                                            const Digest& digest, absl::string_view name,
                                            int64_t bytes) {
  v1::Artifact artifact;
  artifact.set_sha256(ToWire(digest));
  artifact.set_name(std::string(name));
  const Digest& run = grant.lease.run;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<ArtifactRow> rows,
                            WordsOf(view, digest, run, grant.start ? grant.start_source : run));
  for (const ArtifactRow& row : rows) {
    if (bytes == 0) bytes = row.bytes;
    for (const std::string& mirror : row.mirrors) {
      const auto& named = artifact.mirrors();
      if (artifact.mirrors_size() == static_cast<int>(kMirrorsMax)) break;
      if (std::find(named.begin(), named.end(), mirror) == named.end()) {
        artifact.add_mirrors(mirror);
      }
    }
  }
  artifact.set_size(static_cast<uint64_t>(bytes));
  return artifact;
}

}  // namespace

absl::Status RequestInvalid(absl::string_view message) {
  return Refused(absl::StatusCode::kInvalidArgument, "REQUEST_INVALID", message);
}

std::string ToWire(const Digest& digest) { return ToString(digest.bytes); }

v1::StepState ToWire(audit::StepState state) {
  return static_cast<v1::StepState>(static_cast<int>(state) + 1);
}

v1::Quorum ToWire(const audit::Quorum& quorum) {
  v1::Quorum wire;
  wire.set_operators(static_cast<uint32_t>(quorum.operators));
  wire.set_backends(static_cast<uint32_t>(quorum.backends));
  return wire;
}

void CountsToWire(const std::array<uint64_t, audit::kStepStates>& by_state, v1::Counts* counts) {
  const auto count = [&](audit::StepState state) { return by_state[static_cast<size_t>(state)]; };
  counts->set_unaudited(count(audit::StepState::kUnaudited));
  counts->set_claimed(count(audit::StepState::kClaimed));
  counts->set_provisional(count(audit::StepState::kProvisional));
  counts->set_confirmed(count(audit::StepState::kConfirmed));
  counts->set_disputed(count(audit::StepState::kDisputed));
}

absl::StatusOr<Digest> DigestFromWire(absl::string_view bytes, absl::string_view field) {
  const absl::StatusOr<Digest> digest = Digest::FromBytes(AsBytes(bytes));
  if (digest.ok()) return digest;
  return RequestInvalid(absl::StrCat(field, ": expected 32 bytes; found ", bytes.size()));
}

absl::StatusOr<std::vector<ArtifactSource>> ArtifactsFromWire(
    const google::protobuf::RepeatedPtrField<v1::Artifact>& artifacts) {
  if (artifacts.size() > kArtifactsMax) {
    return RequestInvalid(absl::StrCat("artifacts: at most ", kArtifactsMax, " in one request"));
  }
  std::vector<ArtifactSource> sources;
  for (const v1::Artifact& artifact : artifacts) {
    ArtifactSource source;
    LOCKSTEP_ASSIGN_OR_RETURN(source.digest, DigestFromWire(artifact.sha256(), "artifacts.sha256"));
    if (artifact.size() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return RequestInvalid("artifacts.size: no file has so many bytes");
    }
    source.bytes = static_cast<int64_t>(artifact.size());
    if (artifact.mirrors_size() > static_cast<int>(kMirrorsMax)) {
      return RequestInvalid(absl::StrCat("artifacts.mirrors: at most ", kMirrorsMax));
    }
    for (const std::string& mirror : artifact.mirrors()) {
      if (!IsMirror(mirror)) {
        return RequestInvalid("artifacts.mirrors: expected http or https URLs");
      }
      source.mirrors.push_back(mirror);
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

absl::StatusOr<v1::Receipt> MakeReceipt(const Coordinator& coordinator,
                                        const audit::EntryRef& entry) {
  v1::Receipt receipt;
  receipt.set_index(entry.log_index);
  receipt.set_leaf_hash(ToWire(entry.leaf_hash));
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogProof proof,
                            coordinator.log().Receipt(entry.log_index));
  // Our own: there is no need to verify it.
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::SignedNote note, audit::ParseSignedNote(proof.checkpoint));
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogCheckpoint head, audit::ParseLogCheckpoint(note.text));
  receipt.set_tree_size(head.size);
  receipt.set_proof(audit::EncodeLogProof(proof));
  return receipt;
}

absl::StatusOr<v1::Lease> LeaseToWire(const Coordinator& coordinator, const LeaseGrant& grant) {
  const LeaseRow& row = grant.lease;
  v1::Lease lease;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string lease_id, HexDecode(row.lease_id));
  lease.set_lease_id(lease_id);
  lease.set_nonce(ToWire(row.nonce));
  lease.set_run_id(ToWire(row.run));
  lease.set_begin_step(grant.begin_step);
  lease.set_end_step(row.end_step);
  lease.set_heartbeat_ms(grant.heartbeat_ms);
  lease.set_lifetime_ms(grant.lifetime_ms);

  uint64_t run_index = 0;
  std::vector<uint64_t> rotation_indices;
  std::vector<uint64_t> record_indices;
  Digest corpus;
  Digest tokenizer;
  coordinator.Read([&](const audit::Ledger& ledger) {
    const audit::RunLedger& run = *ledger.FindRun(row.run);
    run_index = run.entry().log_index;
    rotation_indices = ledger.keys().RotationsFrom(run.registration().trainer_key);
    corpus = run.registration().manifest.corpus;
    tokenizer = run.registration().manifest.tokenizer;
    for (uint64_t step = row.first_step; step < row.end_step; ++step) {
      record_indices.push_back(run.record_entries()[step - run.first_step()].log_index);
    }
  });
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreView> view, coordinator.ReadStore());
  LOCKSTEP_ASSIGN_OR_RETURN(EntryRow run_entry, view->Entry(run_index));
  lease.set_run_envelope(std::move(run_entry.envelope));
  for (const uint64_t index : rotation_indices) {
    LOCKSTEP_ASSIGN_OR_RETURN(EntryRow rotation, view->Entry(index));
    lease.add_trainer_rotations(std::move(rotation.envelope));
  }
  for (size_t i = 0; i < record_indices.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const EntryRow entry, view->Entry(record_indices[i]));
    LOCKSTEP_ASSIGN_OR_RETURN(std::string record, RecordToServe(entry.envelope, row.run,
                                                                row.first_step + i, grant.canary));
    lease.add_records(std::move(record));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(*lease.add_artifacts(),
                            ArtifactToWire(*view, grant, corpus, "corpus.json", 0));
  LOCKSTEP_ASSIGN_OR_RETURN(*lease.add_artifacts(),
                            ArtifactToWire(*view, grant, tokenizer, "tokenizer", 0));
  v1::StartState* const start = lease.mutable_start();
  start->set_step(row.first_step);
  if (!grant.start) return lease;
  LOCKSTEP_ASSIGN_OR_RETURN(*start->add_files(), ArtifactToWire(*view, grant, grant.start->manifest,
                                                                "checkpoint.json", 0));
  for (const audit::CheckpointFile& file : grant.start->files) {
    LOCKSTEP_ASSIGN_OR_RETURN(*start->add_files(),
                              ArtifactToWire(*view, grant, file.sha256, file.name, file.bytes));
  }
  return lease;
}

}  // namespace lockstep::coordinator
