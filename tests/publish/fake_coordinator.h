// SPDX-License-Identifier: Apache-2.0
//
// A coordinator for tests of the publisher: the real gRPC service, the real ledger behind it, and a
// real store of artifacts; a log in memory, and whatever wrong thing a test wants it to do. For
// tests only.
#ifndef LOCKSTEP_TESTS_PUBLISH_FAKE_COORDINATOR_H_
#define LOCKSTEP_TESTS_PUBLISH_FAKE_COORDINATOR_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/ledger/ledger.h"
#include "audit/log/signed_note.h"
#include "base/merkle.h"
#include "base/sha256.h"
#include "coordinator/http/artifact_store.h"
#include "coordinator/http/server.h"
#include "lockstep/v1/audit.grpc.pb.h"
#include "lockstep/v1/trainer.grpc.pb.h"

namespace lockstep::testing {

enum class Fault {
  kNone,
  kRefuse,      // UNAVAILABLE, and nothing has happened
  kDieAfter,    // it happens, and the answer is UNAVAILABLE
  kSilent,      // nothing happens, until the caller gives up
  kForget,      // it wakes up empty
  kBadReceipt,  // it happens, and the receipt is for something else
  kInternal,    // an error without a reason
};

class FakeCoordinator {
 public:
  // Artifacts lie below `folder`. Serves at once.
  explicit FakeCoordinator(const std::string& folder);
  ~FakeCoordinator();

  // gRPC goes away, and comes back at the same address with what it had.
  void Stop();
  void Start();

  std::string url() const;

  // What to do with each call, by the method's name; called by several threads, one at a time.
  void SetFault(std::function<Fault(absl::string_view method)> fault);
  // Answers to a run that is known are NotFound for RUN_UNKNOWN and so on; this makes it sign with
  // another log's key.
  void BecomeAnotherLog();
  // GetProgress names no states.
  void HideCheckpoints();
  // Files are taken at another address from now on, and at the old one no more.
  void MoveArtifacts();
  // QueryArtifacts says that nothing is missing: somebody else has all.
  void WantNothing();

  // As they stand now.
  std::vector<std::string> entries() const;
  uint64_t records() const;
  std::vector<uint64_t> checkpoints() const;
  std::map<std::string, int> calls() const;
  std::vector<std::string> mirrors() const;  // of all artifacts that were named
  bool Holds(const Digest& artifact) const;
  audit::NoteKey log_key() const;
  std::string Checkpoint() const;  // the signed head
  // Puts an entry into the log in the trainer's stead.
  absl::Status Append(const std::string& entry);
  // Loses all entries from this one on.
  void LoseFrom(size_t entry);

 private:
  class Trainer;
  class Audit;

  // Runs `work` as the fault says.
  grpc::Status Serve(grpc::ServerContext* context, absl::string_view method,
                     const std::function<absl::Status()>& work);
  // The entry's receipt; appended unless it is there.
  absl::StatusOr<v1::Receipt> Take(const std::string& entry);
  const audit::RunLedger* FindRun(const std::string& id) const;
  void Rebuild(const std::vector<std::string>& entries);
  std::unique_ptr<coordinator::HttpServer> ServeFiles();

  const std::unique_ptr<coordinator::ArtifactStore> store_;
  int port_ = 0;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Audit> audit_;
  std::unique_ptr<grpc::Server> server_;

  mutable std::mutex mutex_;  // over all that follows
  std::unique_ptr<coordinator::HttpServer> http_;
  std::function<Fault(absl::string_view)> fault_;
  std::unique_ptr<Ed25519PrivateKey> key_;
  std::unique_ptr<audit::Ledger> ledger_;
  std::vector<std::string> entries_;
  MerkleTree tree_;
  bool bad_receipt_ = false;
  bool wants_nothing_ = false;
  bool hides_checkpoints_ = false;
  std::map<std::string, int> calls_;
  std::vector<std::string> mirrors_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_PUBLISH_FAKE_COORDINATOR_H_
