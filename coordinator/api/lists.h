// SPDX-License-Identifier: Apache-2.0
//
// The lists of the API, each as a source of rows from a place on: pages and exports read the same
// one. A source holds the coordinator's lock for short whiles only, whatever the filters, and what
// comes to its list after it was made is not in it.

#ifndef LOCKSTEP_COORDINATOR_API_LISTS_H_
#define LOCKSTEP_COORDINATOR_API_LISTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/api/fields.h"
#include "coordinator/core/coordinator.h"

namespace lockstep::coordinator {

template <typename Row, typename Place = uint64_t>
struct RowsFrom {
  std::vector<Row> rows;
  std::optional<Place> next = std::nullopt;  // place of the page after; none: this was the last
};

// At most `limit` rows from `place` on; the first page where it is not given. A page may have fewer
// and still have a next one.
template <typename Row, typename Place = uint64_t>
using Source =
    std::function<absl::StatusOr<RowsFrom<Row, Place>>(std::optional<Place> place, size_t limit)>;

// All sources: the coordinator outlives them. RUN_UNKNOWN where the run is not there.
absl::StatusOr<Source<StepSummary>> StepsOf(const Coordinator& coordinator, const Digest& run,
                                            std::optional<uint64_t> begin,
                                            std::optional<audit::StepState> state);

struct AttestationFilter {
  std::optional<Digest> operator_key;  // any that the operator has had
  std::optional<Digest> worker_key;
  std::optional<std::string> backend;
  std::optional<bool> match;
  std::optional<uint64_t> step;
  bool newest = false;  // first
};
absl::StatusOr<Source<AttestationSummary>> AttestationsOf(const Coordinator& coordinator,
                                                          const Digest& run,
                                                          const AttestationFilter& filter);
// The newest of a key that is known (an operator's or a worker's), over all runs.
absl::StatusOr<std::vector<AttestationSummary>> NewestAttestationsOf(
    const Coordinator& coordinator, const AttestationFilter& filter, size_t limit);

// Of all runs where none is given.
absl::StatusOr<Source<DisputeSummary>> DisputesOf(const Coordinator& coordinator,
                                                  const std::optional<Digest>& run, bool newest);

absl::StatusOr<Source<LeaseSummary, LeasePlace>> LeasesOf(const Coordinator& coordinator,
                                                          const LeaseFilter& filter);

Source<OperatorRow> Operators(const Coordinator& coordinator);
Source<WorkerRow> Workers(const Coordinator& coordinator);

Source<EntryRow> LogEntries(const Coordinator& coordinator, std::optional<uint64_t> begin,
                            bool newest);

// KEY_UNKNOWN if there is no such operator or worker.
absl::StatusOr<OperatorRow> FindOperator(const Coordinator& coordinator, const Digest& key);
absl::StatusOr<WorkerRow> FindWorker(const Coordinator& coordinator, const Digest& key);
// All workers of an operator, by its id.
absl::StatusOr<std::vector<WorkerRow>> WorkersOf(const Coordinator& coordinator,
                                                 uint32_t operator_id);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_API_LISTS_H_
