// SPDX-License-Identifier: Apache-2.0
//
// From the message to a lease that can be worked on.
#include "worker/lease.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "audit/checkpoint_manifest.h"
#include "audit/evidence/log_entry.h"
#include "base/encoding.h"
#include "base/status.h"

namespace lockstep::worker {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{1} << 44;
constexpr int kMirrorsMax = 16;
constexpr int kRotationsMax = 64;
constexpr size_t kMirrorBytesMax = 2048;

absl::Status Bad(absl::string_view what, absl::string_view expected, absl::string_view found) {
  return absl::DataLossError(
      absl::StrCat("lease: ", what, ": expected ", expected, "; found ", found));
}

absl::Status ReadMirrors(const v1::Artifact& artifact, std::vector<std::string>* mirrors) {
  // There are enough without the others, whoever named them.
  const int count = std::min(artifact.mirrors_size(), kMirrorsMax);
  for (int i = 0; i < count; ++i) {
    const std::string& mirror = artifact.mirrors(i);
    const bool http = absl::StartsWith(mirror, "https://") || absl::StartsWith(mirror, "http://");
    if (!http || mirror.size() > kMirrorBytesMax) return Bad("mirror", "an address", mirror);
    const std::string place = ArtifactPlace(mirror);
    if (std::find(mirrors->begin(), mirrors->end(), place) == mirrors->end()) {
      mirrors->push_back(place);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadStart(const v1::StartState& start, WorkLease* out) {
  out->start_step = start.step();
  if (start.files_size() == 0) {
    if (out->start_step == 0 && !out->registration.manifest.parent) return absl::OkStatus();
    return Bad("start", "the files of a checkpoint", "none");
  }
  std::set<std::string> awaited(std::begin(audit::kCheckpointFiles),
                                std::end(audit::kCheckpointFiles));
  awaited.insert(audit::kCheckpointManifestFile);
  for (const v1::Artifact& file : start.files()) {
    if (awaited.erase(file.name()) == 0) {
      return Bad("start", "the files of a checkpoint, once each", file.name());
    }
    if (file.size() == 0 || file.size() > kFileBytesMax) {
      return Bad(file.name(), "a size", absl::StrCat(file.size()));
    }
    LeaseFile& read = out->start_files.emplace_back();
    read.name = file.name();
    read.bytes = file.size();
    LOCKSTEP_ASSIGN_OR_RETURN(read.sha256, Digest::FromBytes(AsBytes(file.sha256())),
                              "lease: ", read.name);
    LOCKSTEP_RETURN_IF_ERROR(ReadMirrors(file, &read.mirrors));
  }
  if (!awaited.empty()) return Bad("start", *awaited.begin(), "nothing of that name");
  return absl::OkStatus();
}

// The trainer's keys, from that of the registration on.
absl::StatusOr<std::vector<Ed25519PublicKey>> ReadTrainerKeys(const v1::Lease& lease,
                                                              const WorkLease& out) {
  std::vector<Ed25519PublicKey> keys = {out.registration.trainer_key};
  if (lease.trainer_rotations_size() > kRotationsMax) {
    return Bad("trainer_rotations", absl::StrCat("at most ", kRotationsMax),
               absl::StrCat(lease.trainer_rotations_size()));
  }
  for (const std::string& bytes : lease.trainer_rotations()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogEntry entry, audit::LogEntry::Parse(bytes),
                              "lease: rotation of the trainer's key");
    const auto* const event = std::get_if<audit::KeyEvent>(&entry.payload());
    const auto* const rotation =
        event == nullptr ? nullptr : std::get_if<audit::RotateEvent>(event);
    if (rotation == nullptr || rotation->old_key != keys.back() ||
        !entry.IsSignedBy(rotation->old_key) || !entry.IsSignedBy(rotation->new_key)) {
      return Bad("trainer_rotations",
                 absl::StrCat("a rotation of ", keys.back().ToHex(), " that both keys signed"),
                 "another entry");
    }
    keys.push_back(rotation->new_key);
  }
  return keys;
}

absl::Status ReadRecords(const v1::Lease& lease, WorkLease* out) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Ed25519PublicKey> keys, ReadTrainerKeys(lease, *out));
  const uint64_t count = out->end - out->start_step;
  if (static_cast<uint64_t>(lease.records_size()) < count) {
    return Bad("records", absl::StrCat(count), absl::StrCat(lease.records_size()));
  }
  for (uint64_t i = 0; i < count; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogEntry entry,
                              audit::LogEntry::Parse(lease.records(static_cast<int>(i))),
                              "lease: record ", i);
    const auto* const record = std::get_if<audit::PublishedRecord>(&entry.payload());
    if (record == nullptr || record->run_id != out->run_id ||
        record->record.step != out->start_step + i) {
      return Bad("records", absl::StrCat("that of step ", out->start_step + i, " of the run"),
                 "another entry");
    }
    const auto signs = [&](const auto& key) {
      const std::vector<Digest>& ids = entry.signer_ids();
      return std::find(ids.begin(), ids.end(), key.Id()) != ids.end();
    };
    // Else the evidence against it would be taken for the answer to a test.
    if (std::none_of(keys.begin(), keys.end(), signs)) {
      return Bad("records", "signatures said to be by a key of the trainer",
                 absl::StrCat("another key's under step ", record->record.step));
    }
    if (i > 0 && record->record.previous_chain != audit::ChainAfter(out->records.back())) {
      return Bad("records", "an unbroken chain",
                 absl::StrCat("a break before step ", record->record.step));
    }
    out->records.push_back(record->record);
    out->trainer_signed.push_back(std::any_of(
        keys.begin(), keys.end(), [&](const auto& key) { return entry.IsSignedBy(key); }));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ArtifactPlace(absl::string_view base) {
  absl::ConsumeSuffix(&base, "/");
  return absl::StrCat(base, "/artifact");
}

std::string WorkLease::id_hex() const { return HexEncode(AsBytes(id)); }

absl::StatusOr<WorkLease> ReadLease(const v1::Lease& lease) {
  WorkLease out;
  out.id = lease.lease_id();
  if (out.id.size() != 16) return Bad("id", "16 bytes", absl::StrCat(out.id.size()));
  LOCKSTEP_ASSIGN_OR_RETURN(out.nonce, Digest::FromBytes(AsBytes(lease.nonce())), "lease: nonce");
  LOCKSTEP_ASSIGN_OR_RETURN(out.run_id, Digest::FromBytes(AsBytes(lease.run_id())), "lease: run");
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogEntry run, audit::LogEntry::Parse(lease.run_envelope()),
                            "lease: run");
  const auto* const registration = std::get_if<audit::RunRegistration>(&run.payload());
  if (registration == nullptr || audit::RunIdOf(registration->manifest) != out.run_id) {
    return Bad("run", "the registration of the run", "another entry");
  }
  if (!run.IsSignedBy(registration->trainer_key)) {
    return Bad("run", "a registration signed by the trainer", "one that is not");
  }
  out.registration = *registration;
  out.begin = lease.begin_step();
  out.end = lease.end_step();
  const uint64_t start = lease.start().step();
  if (!(out.registration.first_step() <= start && start <= out.begin && out.begin < out.end) ||
      out.end - start > kLeaseStepsMax) {
    return Bad("steps", absl::StrCat("a start, a first and a last of at most ", kLeaseStepsMax),
               absl::StrCat("start ", start, ", steps ", out.begin, " to ", out.end));
  }
  // (Far more than a day is a mistake, and would overflow sums of times.)
  if (lease.heartbeat_ms() < 100 || lease.heartbeat_ms() > 86'400'000 || lease.lifetime_ms() <= 0) {
    return Bad("heartbeat", "100 ms to a day", absl::StrCat(lease.heartbeat_ms(), " ms"));
  }
  out.heartbeat = absl::Milliseconds(lease.heartbeat_ms());
  out.lifetime = absl::Milliseconds(lease.lifetime_ms());
  for (const v1::Artifact& artifact : lease.artifacts()) {
    LOCKSTEP_RETURN_IF_ERROR(ReadMirrors(artifact, &out.mirrors));
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadStart(lease.start(), &out));
  LOCKSTEP_RETURN_IF_ERROR(ReadRecords(lease, &out));
  return out;
}

}  // namespace lockstep::worker
