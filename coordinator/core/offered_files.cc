// SPDX-License-Identifier: Apache-2.0
//
// Files that workers bring for the states they offer: which ones are wanted, and when they go.

#include <algorithm>
#include <set>

#include "coordinator/core/coordinator.h"
#include "coordinator/core/work.h"

namespace lockstep::coordinator {
namespace {

using audit::CheckpointFacts;

std::vector<Digest> FilesOf(const audit::CheckpointAnnouncement& state) {
  std::vector<Digest> files = {state.manifest};
  for (const audit::CheckpointFile& file : state.files) files.push_back(file.sha256);
  return files;
}

bool HasFile(const audit::CheckpointAnnouncement& state, const Digest& digest, uint64_t bytes) {
  if (digest == state.manifest) return bytes > 0 && bytes <= audit::kCheckpointManifestBytesMax;
  return std::any_of(state.files.begin(), state.files.end(), [&](const auto& file) {
    return file.sha256 == digest && static_cast<uint64_t>(file.bytes) == bytes;
  });
}

}  // namespace

void Coordinator::IndexState(uint32_t run, uint32_t checkpoint) {
  const StateRef ref{.run = run, .checkpoint = checkpoint};
  for (const Digest& digest : FilesOf(StateOf(ref).announcement)) {
    states_by_file_[digest].push_back(ref);
  }
}

const CheckpointFacts& Coordinator::StateOf(const StateRef& ref) const {
  return ledger_.runs()[ref.run].checkpoints()[ref.checkpoint];
}

const std::vector<Coordinator::StateRef>& Coordinator::StatesWith(const Digest& digest) const {
  static const std::vector<StateRef> none;
  const auto found = states_by_file_.find(digest);
  return found == states_by_file_.end() ? none : found->second;
}

bool Coordinator::IsTrainers(const CheckpointFacts& state) const {
  return ArtifactSourceOf(state) == state.announcement.run_id;
}

absl::Status Coordinator::CheckUpload(const Ed25519PublicKey& key, const Digest& digest,
                                      uint64_t bytes) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Uploader uploader, UploaderOf(key));
  if (uploader.trains) return absl::OkStatus();
  const absl::ReaderMutexLock lock(&mutex_);
  const auto& keys = ledger_.keys().keys();
  const uint32_t operator_id = keys[ledger_.keys().Find(key)].operator_id;
  for (const StateRef& ref : StatesWith(digest)) {
    const CheckpointFacts& state = StateOf(ref);
    const bool wanted = keys[state.key_id].operator_id == operator_id && !IsTrainers(state) &&
                        !doubted_.contains(state.log_index);
    if (wanted && HasFile(state.announcement, digest, bytes)) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      "a worker brings the files of states that its operator has offered, and no others");
}

absl::StatusOr<bool> Coordinator::MayGo(StoreView& view, const Digest& digest, bool old) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<ArtifactRow> rows, view.ArtifactByTrainers(digest));
  if (!rows.empty()) return false;
  {
    const absl::ReaderMutexLock lock(&mutex_);
    if (relied_on_.contains(digest)) return false;
  }
  for (const StateRef& ref : StatesWith(digest)) {
    const CheckpointFacts& state = StateOf(ref);
    if (IsTrainers(state)) return false;
    if (!old && !doubted_.contains(state.log_index)) return false;
  }
  return true;
}

absl::Status Coordinator::EndStateWithout(StoreView& view, const StateRef& ref) {
  const audit::RunLedger& run = ledger_.runs()[ref.run];
  const audit::CheckpointAnnouncement& state = StateOf(ref).announcement;
  const Digest source = ArtifactSourceOf(StateOf(ref));
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointFacts* const other,
                            StateAt(view, run.run_id(), state.next_step));
  const bool is_initial =
      state.next_step == run.first_step() && !run.registration().manifest.parent;
  if (other == nullptr && !is_initial) {
    const absl::Status dropped = table_.DropState(run.run_id(), state.next_step - run.first_step());
    if (!dropped.ok() && !absl::IsNotFound(dropped)) return dropped;
  }
  const bool waits = std::any_of(waiting_.begin(), waiting_.end(), [&](const WaitingState& w) {
    return w.source == source && w.announcement == state;
  });
  if (!waits) {
    waiting_.push_back(
        {.run = run.run_id(), .step = state.next_step, .announcement = state, .source = source});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Digest>> Coordinator::GiveUpArtifacts(
    const std::vector<std::pair<Digest, bool>>& artifacts) {
  return Write<std::vector<Digest>>(0, 1, [&](Work& work) -> absl::StatusOr<std::vector<Digest>> {
    given_up_.clear();
    std::set<Digest> in_use;
    for (const auto& [id, lease] : live_) {
      LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointFacts* const start,
                                StateAt(work.view(), lease->row.run, lease->row.first_step));
      if (start == nullptr) continue;
      for (const Digest& digest : FilesOf(start->announcement)) in_use.insert(digest);
    }
    std::vector<Digest> gone;
    for (const auto& [digest, old] : artifacts) {
      if (in_use.contains(digest)) continue;
      LOCKSTEP_ASSIGN_OR_RETURN(const bool may_go, MayGo(work.view(), digest, old));
      if (may_go) gone.push_back(digest);
    }
    given_up_.insert(gone.begin(), gone.end());
    for (const Digest& digest : gone) {
      for (const StateRef& ref : StatesWith(digest)) {
        LOCKSTEP_RETURN_IF_ERROR(EndStateWithout(work.view(), ref));
      }
    }
    return gone;
  });
}

}  // namespace lockstep::coordinator
