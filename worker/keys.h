// SPDX-License-Identifier: Apache-2.0
//
// The keys of a machine and of the operator behind it, and the log entries that make them known
// (docs/attestation.md, "Keys"). A folder:
//
//   worker.key        signs attestations and requests; made here and never leaves
//   operator.key      stands for the operator, on one machine at least; others have none
//   entries/0001-operator.json, ...   key events to tell each coordinator, in this order
//
// The revocation key is written where the operator says, to be taken off line; nothing here needs
// it again but `keys revoke --with`. No key is ever printed, and none is an argument of a program.
#ifndef LOCKSTEP_WORKER_KEYS_H_
#define LOCKSTEP_WORKER_KEYS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/evidence/key_event.h"
#include "base/ed25519.h"

namespace lockstep::worker {

class KeyFolder {
 public:
  // Makes the folder, for its owner only, if it is not there.
  static absl::StatusOr<KeyFolder> Open(const std::string& path);

  std::string WorkerPath() const { return path_ + "/worker.key"; }
  std::string OperatorPath() const { return path_ + "/operator.key"; }

  // NotFound says how to make one; others are Ed25519PrivateKey::Load's.
  absl::StatusOr<Ed25519PrivateKey> Worker() const;
  absl::StatusOr<Ed25519PrivateKey> Operator() const;

  // The worker's key, if there is none yet.
  absl::Status InitWorker() const;
  // An operator's key, with its revocation key as a new file at `revocation_path`, and the entry
  // that makes both known. AlreadyExists if there is either file.
  absl::Status InitOperator(const std::string& name, const std::string& contact,
                            const std::string& revocation_path) const;
  // Ties the worker's key to `operator_key`: the entry has both signatures.
  absl::Status Certify(const Ed25519PrivateKey& operator_key, const std::string& hardware) const;
  // A new worker's key in the place of the old one, which ends; the old file stays as
  // worker.key.<first digits of its id>. Cut off in the middle, it is finished by the next call.
  absl::Status RotateWorker() const;
  // Ends `key`; signed by one of those that may (docs/attestation.md).
  absl::Status Revoke(const Ed25519PrivateKey& signer, const Ed25519PublicKey& key,
                      const std::string& reason) const;

  // What coordinators are to be told, in order.
  absl::StatusOr<std::vector<std::string>> Entries() const;

 private:
  explicit KeyFolder(std::string path) : path_(std::move(path)) {}
  absl::Status AddEntry(const audit::KeyEvent& event, absl::string_view kind,
                        std::vector<const Ed25519PrivateKey*> signers) const;

  std::string path_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_KEYS_H_
