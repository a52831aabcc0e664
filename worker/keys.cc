// SPDX-License-Identifier: Apache-2.0
//
// Key files and key events.
#include "worker/keys.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "audit/evidence/log_entry.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::worker {
namespace {

bool Exists(const std::string& path) {
  struct stat unused;
  return ::lstat(path.c_str(), &unused) == 0;
}

absl::Status Move(const std::string& from, const std::string& to, const std::string& folder) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("rename ", from, " to ", to));
  }
  return SyncDirectory(folder);
}

absl::StatusOr<Ed25519PrivateKey> LoadKey(const std::string& path, absl::string_view how) {
  absl::StatusOr<Ed25519PrivateKey> key = Ed25519PrivateKey::Load(path);
  if (absl::IsNotFound(key.status())) {
    return absl::NotFoundError(absl::StrCat("expected a key at ", path, "; ", how));
  }
  return key;
}

}  // namespace

absl::StatusOr<KeyFolder> KeyFolder::Open(const std::string& path) {
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(path + "/entries"));
  if (::chmod(path.c_str(), 0700) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("make ", path, " its owner's only"));
  }
  return KeyFolder(path);
}

absl::StatusOr<Ed25519PrivateKey> KeyFolder::Worker() const {
  return LoadKey(WorkerPath(), "`lockstep-worker keys init` makes one");
}

absl::StatusOr<Ed25519PrivateKey> KeyFolder::Operator() const {
  return LoadKey(OperatorPath(),
                 "`lockstep-worker keys init --operator NAME` makes one, on one of the operator's "
                 "machines; elsewhere, --operator-key names the file");
}

absl::Status KeyFolder::InitWorker() const {
  if (Exists(WorkerPath())) return Worker().status();
  return Ed25519PrivateKey::Create(WorkerPath()).status();
}

absl::Status KeyFolder::InitOperator(const std::string& name, const std::string& contact,
                                     const std::string& revocation_path) const {
  // Both are looked at first, so that no half is made.
  for (const std::string& path : {OperatorPath(), revocation_path}) {
    if (Exists(path)) {
      return absl::AlreadyExistsError(absl::StrCat(path, ": there is a key already"));
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PrivateKey revocation,
                            Ed25519PrivateKey::Create(revocation_path), "revocation key");
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PrivateKey key, Ed25519PrivateKey::Create(OperatorPath()));
  return AddEntry(audit::OperatorEvent{.operator_key = key.public_key(),
                                       .revocation_key = revocation.public_key(),
                                       .name = name,
                                       .contact = contact},
                  "operator", {&key});
}

absl::Status KeyFolder::Certify(const Ed25519PrivateKey& operator_key,
                                const std::string& hardware) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PrivateKey worker, Worker());
  return AddEntry(audit::WorkerEvent{.worker_key = worker.public_key(),
                                     .operator_key = operator_key.public_key(),
                                     .hardware = hardware},
                  "worker", {&operator_key, &worker});
}

absl::Status KeyFolder::RotateWorker() const {
  const std::string next = WorkerPath() + ".next";
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PrivateKey worker, Worker());
  // The new key is on the disk before anything names it, and the entry before the key takes over:
  // wherever this is cut off, `next` says how far it went.
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PrivateKey key, Exists(next)
                                                             ? Ed25519PrivateKey::Load(next)
                                                             : Ed25519PrivateKey::Create(next));
  const audit::RotateEvent event = {.old_key = worker.public_key(), .new_key = key.public_key()};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> entries, Entries());
  bool told = false;
  for (const std::string& bytes : entries) {
    const absl::StatusOr<audit::LogEntry> entry = audit::LogEntry::Parse(bytes);
    if (!entry.ok()) continue;
    const auto* const payload = std::get_if<audit::KeyEvent>(&entry->payload());
    told = told || (payload != nullptr && *payload == audit::KeyEvent(event));
  }
  if (!told) LOCKSTEP_RETURN_IF_ERROR(AddEntry(event, "rotate", {&worker, &key}));
  const std::string old =
      absl::StrCat(WorkerPath(), ".", worker.public_key().Id().ToHex().substr(0, 16));
  if (::link(WorkerPath().c_str(), old.c_str()) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("keep the old key as ", old));
  }
  return Move(next, WorkerPath(), path_);
}

absl::Status KeyFolder::Revoke(const Ed25519PrivateKey& signer, const Ed25519PublicKey& key,
                               const std::string& reason) const {
  return AddEntry(audit::RevokeEvent{.key = key, .reason = reason}, "revoke", {&signer});
}

absl::StatusOr<std::vector<std::string>> KeyFolder::Entries() const {
  const std::string folder = path_ + "/entries";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  std::vector<std::string> entries;
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".json")) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(std::string entry,
                              ReadFile(absl::StrCat(folder, "/", name), audit::kLogEntryBytesMax));
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::Status KeyFolder::AddEntry(const audit::KeyEvent& event, absl::string_view kind,
                                 std::vector<const Ed25519PrivateKey*> signers) const {
  LOCKSTEP_RETURN_IF_ERROR(audit::ParseKeyEvent(audit::EncodeKeyEvent(event)).status(), kind,
                           " event");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string entry, audit::MakeLogEntry(event, signers));
  const std::string folder = path_ + "/entries";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  int last = 0;
  for (const std::string& name : names) {
    int number = 0;
    if (std::sscanf(name.c_str(), "%d-", &number) == 1) last = std::max(last, number);
  }
  return WriteFileDurably(absl::StrFormat("%s/%04d-%s.json", folder, last + 1, kind),
                          AsBytes(entry));
}

}  // namespace lockstep::worker
