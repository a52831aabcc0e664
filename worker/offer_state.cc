// SPDX-License-Identifier: Apache-2.0
//
// Announcement and uploads.
#include "worker/offer_state.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "audit/checkpoint_manifest.h"
#include "audit/evidence/log_entry.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/state/checkpoint.h"
#include "net/artifact_upload.h"

namespace lockstep::worker {

absl::Status OfferState(Coordinator& coordinator, const ServerInfo& server, net::HttpClient& client,
                        const Ed25519PrivateKey& key, const std::string& folder) {
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointManifest manifest,
                            engine::ReadCheckpointManifest(folder));
  const std::string manifest_path = absl::StrCat(folder, "/", audit::kCheckpointManifestFile);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(manifest_path, audit::kCheckpointManifestBytesMax));
  const audit::CheckpointAnnouncement announcement = {.run_id = manifest.run_id,
                                                      .next_step = manifest.next_step(),
                                                      .chain = manifest.chain(),
                                                      .manifest = Sha256(AsBytes(text)),
                                                      .files = manifest.files};
  v1::OfferStateRequest request;
  const Ed25519PrivateKey* const signers[] = {&key};
  LOCKSTEP_ASSIGN_OR_RETURN(*request.mutable_envelope(),
                            audit::MakeLogEntry(announcement, signers));
  std::vector<audit::CheckpointFile> files = manifest.files;
  files.push_back({.name = audit::kCheckpointManifestFile,
                   .bytes = static_cast<int64_t>(text.size()),
                   .sha256 = announcement.manifest});
  for (const audit::CheckpointFile& file : files) {
    v1::Artifact* const artifact = request.add_artifacts();
    artifact->set_sha256(file.sha256.bytes.data(), file.sha256.bytes.size());
    artifact->set_size(static_cast<uint64_t>(file.bytes));
    artifact->set_name(file.name);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const v1::OfferStateResponse answer, coordinator.OfferState(request));

  // Its own base URL: artifacts are at URL/artifact/<sha256>.
  absl::string_view address = server.artifact_url;
  absl::ConsumeSuffix(&address, "/");
  const net::UploadOptions options = {
      .address = std::string(address),
      .audience = server.origin,
      .signer = {.key = key.public_key().bytes,
                 .sign = [&key](ByteSpan bytes) -> absl::StatusOr<std::array<uint8_t, 64>> {
                   return key.Sign(bytes);
                 }}};
  for (const std::string& wanted : answer.upload()) {
    const auto file = std::find_if(files.begin(), files.end(), [&](const auto& candidate) {
      return AsChars(candidate.sha256.bytes) == wanted;
    });
    if (file == files.end()) {
      return absl::DataLossError(absl::StrCat(
          server.origin, ": expected to be asked for files of the state; found another digest"));
    }
    LOCKSTEP_RETURN_IF_ERROR(
        net::UploadArtifact(client, options, file->sha256, absl::StrCat(folder, "/", file->name)));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
