// SPDX-License-Identifier: Apache-2.0
//
// What the public is told of leases, for gRPC and JSON alike: which came to a result, which did
// not, and why, in the words of who held them.

#ifndef LOCKSTEP_COORDINATOR_VIEWS_LEASES_H_
#define LOCKSTEP_COORDINATOR_VIEWS_LEASES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/core/coordinator.h"

namespace lockstep::coordinator {

// As kLeaseStates has it.
absl::string_view LeaseStateName(LeaseState state);

struct LeaseSummary {
  Digest run;
  uint64_t first_step = 0;
  uint64_t end_step = 0;  // one past the last
  LeaseState state = LeaseState::kLive;
  Ed25519PublicKey worker_key;
  Ed25519PublicKey operator_key;  // its operator's present one
  std::string operator_name;      // a stranger's text, as the next
  std::string hardware;
  // Classes that the worker has attested with, by name: what a lease's holder runs on is not kept.
  std::vector<std::string> backends;
  int64_t granted_ms = 0;  // since the epoch, as the next
  int64_t ended_ms = 0;    // 0 while it lives
  std::string detail;      // what its holder said of the end: a stranger's text
};

struct LeaseFilter {
  std::optional<Digest> run = std::nullopt;           // without: of all runs
  std::optional<Digest> operator_key = std::nullopt;  // any that the operator has had
  std::optional<Digest> worker_key = std::nullopt;
  // Without any: all that have ended. Live ones are listed by themselves only.
  std::vector<LeaseState> states = {};
};

// Behind which lease a page begins. Those that end later stand before it.
struct LeasePlace {
  int64_t ended_ms = 0;  // 0 among live ones
  std::string lease_id;

  std::string ToText() const;
  static std::optional<LeasePlace> Parse(absl::string_view text);
};

struct LeasePage {
  std::vector<LeaseSummary> leases;
  std::optional<LeasePlace> next;  // none: this was the last
};

// At most `limit` behind `after`, the last ended first; live ones in no order that means anything.
// A page looks at some thousand leases at most: with a filter it may have fewer than `limit`, or
// none, and still have a next one. RUN_UNKNOWN where the run is not there.
absl::StatusOr<LeasePage> ReadLeases(const Coordinator& coordinator, const LeaseFilter& filter,
                                     const std::optional<LeasePlace>& after, size_t limit);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_VIEWS_LEASES_H_
