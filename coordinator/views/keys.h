// SPDX-License-Identifier: Apache-2.0
//
// What the public is told of operators and their workers, for gRPC and JSON alike.

#ifndef LOCKSTEP_COORDINATOR_VIEWS_KEYS_H_
#define LOCKSTEP_COORDINATOR_VIEWS_KEYS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "audit/ledger/ledger.h"
#include "coordinator/core/coordinator.h"

namespace lockstep::coordinator {

// What came of a key's reports, or of all keys of an operator, over all runs.
struct KeyStanding {
  Credit credit;
  std::map<std::string, uint64_t> rejected_why;  // by reason; "BAD_OPENING" is Worth::kVoid
  std::vector<std::string> backends;             // attested with, by name
  int64_t last_seen_ms = kTimeUnknown;

  uint64_t Rejected() const;
};

struct OperatorSummary {
  uint32_t id = audit::kNoId;
  Ed25519PublicKey key;  // the present one
  std::string name;      // a stranger's text, as the next
  std::string contact;
  uint64_t since = 0;                   // log index of its registration
  uint64_t until = audit::kNeverEnded;  // of its revocation
  int64_t registered_ms = kTimeUnknown;
  uint64_t worker_keys = 0;  // it has had
  KeyStanding standing;
};

// Of operators `begin` to `end` - 1, by id. Within Coordinator::Read; goes over all keys.
std::vector<OperatorSummary> SummarizeOperators(const audit::Ledger& ledger, const Tallies& tallies,
                                                uint32_t begin, uint32_t end);

struct WorkerSummary {
  uint32_t key_id = audit::kNoId;
  Ed25519PublicKey key;
  Ed25519PublicKey operator_key;  // its operator's present one
  std::string operator_name;      // a stranger's text, as the next
  std::string hardware;
  bool ended = false;
  uint64_t since = 0;  // log index
  // By which entry it ended, or its operator did; kNeverEnded if neither has.
  uint64_t until = audit::kNeverEnded;
  int64_t registered_ms = kTimeUnknown;
  KeyStanding standing;
};

// `key_id` is a worker's.
WorkerSummary SummarizeWorker(const audit::Ledger& ledger, const Tallies& tallies, uint32_t key_id);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_VIEWS_KEYS_H_
