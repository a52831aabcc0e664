// SPDX-License-Identifier: Apache-2.0
//
// A lease as the coordinator gave it, checked in itself: what to replay, from where, and against
// what. The coordinator is a stranger: nothing of it is believed beyond what it costs to try.
#ifndef LOCKSTEP_WORKER_LEASE_H_
#define LOCKSTEP_WORKER_LEASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "audit/evidence/run_registration.h"
#include "audit/step_record.h"
#include "base/sha256.h"
#include "lockstep/v1/audit.pb.h"

namespace lockstep::worker {

struct LeaseFile {
  std::string name;
  Digest sha256;
  uint64_t bytes = 0;
  std::vector<std::string> mirrors;  // places: an artifact is at PLACE/<sha256>
};

struct WorkLease {
  std::string id;  // 16 bytes
  Digest nonce;
  Digest run_id;
  audit::RunRegistration registration;
  uint64_t begin = 0;  // steps to attest: [begin, end)
  uint64_t end = 0;
  uint64_t start_step = 0;                 // before which the state stands that it starts from
  std::vector<LeaseFile> start_files;      // that state's checkpoint; none: the initial state
  std::vector<std::string> mirrors;        // of the run's other artifacts, likewise
  std::vector<audit::StepRecord> records;  // of the steps from start_step to end, their chain whole
  std::vector<bool> trainer_signed;        // of records: whether a key of the trainer's signed it
  absl::Duration heartbeat;
  absl::Duration lifetime;

  std::string id_hex() const;  // as attestations name it
};

// Where the artifacts of a coordinator or mirror are, from its base URL: BASE/artifact
// (docs/artifacts.md).
std::string ArtifactPlace(absl::string_view base);

inline constexpr uint64_t kLeaseStepsMax = uint64_t{1} << 16;

// Untrusted input. DataLoss names what was expected and what was found.
//
// The run's registration must be signed by its trainer and have this run's id; each rotation of the
// trainer's key by the key before it and the one after. Records are not held
// to the trainer's signature: an attestation names its record by digest, and what the trainer did
// not sign is worth nothing in the log, whatever is said of it. Coordinators make use of that, with
// records that are false on purpose, to find workers who do not look.
absl::StatusOr<WorkLease> ReadLease(const v1::Lease& lease);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LEASE_H_
