// SPDX-License-Identifier: Apache-2.0
//
// The coordinator as a trainer sees it: TrainerService, and what AuditService says of the server,
// by gRPC on one address. Each call has a deadline and is made once; errors carry the wire's reason
// (rpc/rpc_error.h). Answers are a stranger's: digests and receipts are checked here.
#ifndef LOCKSTEP_TRAINER_COORDINATOR_CLIENT_H_
#define LOCKSTEP_TRAINER_COORDINATOR_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "audit/ledger/receipt.h"
#include "audit/log/signed_note.h"
#include "base/sha256.h"
#include "trainer/run_artifacts.h"

namespace lockstep::trainer {

struct CoordinatorAddress {
  // "https://HOST:PORT"; "http://HOST:PORT" on loopback only, since nothing is hidden on the way.
  std::string url;
  std::string ca_file;      // PEM, whom to believe; empty: the system's
  std::string certificate;  // PEM, shown to a coordinator that asks for one; with its key
  std::string certificate_key;
};

struct ServerInfo {
  audit::NoteKey log_key;    // its name is the origin
  std::string artifact_url;  // artifacts are at URL/artifact/<sha256>; empty: it takes none
};

struct RunProgress {
  uint64_t next_step = 0;
  Digest chain;
  std::vector<uint64_t> checkpoints;
};

// Any thread may call.
class CoordinatorClient {
 public:
  // Connects to nothing yet. InvalidArgument for an address that is none, or is not safe.
  static absl::StatusOr<std::unique_ptr<CoordinatorClient>> Create(
      const CoordinatorAddress& address, absl::Duration deadline);
  ~CoordinatorClient();
  CoordinatorClient(const CoordinatorClient&) = delete;
  CoordinatorClient& operator=(const CoordinatorClient&) = delete;

  // Internal for an answer that makes no sense, as below.
  absl::StatusOr<ServerInfo> GetServerInfo();

  // Each returns the receipt, if the coordinator gives one; Internal if it does not hold under
  // `log_key`: then nothing is acknowledged.
  using MaybeReceipt = std::optional<audit::Receipt>;
  absl::StatusOr<MaybeReceipt> RegisterRun(const std::string& envelope,
                                           const std::vector<RunArtifact>& artifacts,
                                           const std::vector<std::string>& mirrors,
                                           const audit::NoteKey& log_key);
  absl::StatusOr<RunProgress> GetProgress(const Digest& run_id);
  struct Published {
    uint64_t next_step = 0;
    MaybeReceipt last;
  };
  // One to 256 envelopes.
  absl::StatusOr<Published> PublishRecords(const Digest& run_id,
                                           const std::vector<std::string>& envelopes,
                                           const audit::NoteKey& log_key);
  absl::StatusOr<MaybeReceipt> AnnounceCheckpoint(const std::string& envelope,
                                                  const std::vector<RunArtifact>& artifacts,
                                                  const std::vector<std::string>& mirrors,
                                                  const audit::NoteKey& log_key);
  absl::StatusOr<MaybeReceipt> PublishEvaluation(const std::string& envelope,
                                                 const audit::NoteKey& log_key);
  // Those that the coordinator neither holds nor knows a mirror of, in the order given.
  absl::StatusOr<std::vector<RunArtifact>> Missing(const std::vector<RunArtifact>& artifacts);

  // Calls under way and all later ones end in Cancelled.
  void Cancel();

 private:
  class Calls;
  explicit CoordinatorClient(std::unique_ptr<Calls> calls);
  std::unique_ptr<Calls> calls_;
};

}  // namespace lockstep::trainer

#endif  // LOCKSTEP_TRAINER_COORDINATOR_CLIENT_H_
