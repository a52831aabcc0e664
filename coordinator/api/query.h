// SPDX-License-Identifier: Apache-2.0
//
// The parameters behind a "?", read by name. The first thing that is amiss stays, and every read
// after it gives a harmless default: ask for all, then for status().

#ifndef LOCKSTEP_COORDINATOR_API_QUERY_H_
#define LOCKSTEP_COORDINATOR_API_QUERY_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/evidence/quorum.h"
#include "base/sha256.h"
#include "coordinator/http/request_head.h"

namespace lockstep::coordinator {

// Every number of the API is below this: JSON readers take it as it is written.
inline constexpr uint64_t kApiNumberMax = (uint64_t{1} << 53) - 1;

// InvalidArgument with the reason REQUEST_INVALID.
absl::Status RequestIsInvalid(absl::string_view message);

// 64 lower-case hexadecimal digits; decimal digits without sign or leading zeros, up to
// kApiNumberMax. REQUEST_INVALID, naming `what`, for others.
absl::StatusOr<Digest> ParseDigest(absl::string_view text, absl::string_view what);
absl::StatusOr<uint64_t> ParseNumber(absl::string_view text, absl::string_view what);

class Query {
 public:
  // `query` as it was sent; `known`: the names that may be there, each once.
  Query(absl::string_view query, std::initializer_list<absl::string_view> known);

  std::optional<uint64_t> Number(absl::string_view name, uint64_t least = 0,
                                 uint64_t most = kApiNumberMax);
  std::optional<Digest> Key(absl::string_view name);
  std::optional<audit::StepState> State(absl::string_view name);
  // One of `choices`: which.
  std::optional<size_t> Choice(absl::string_view name,
                               std::initializer_list<absl::string_view> choices);
  std::optional<std::string> Text(absl::string_view name) const;
  // "1": true; "0" or not there: false.
  bool Flag(absl::string_view name);

  // Something else is amiss with what was read.
  void Fail(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }
  const absl::Status& status() const { return status_; }

 private:
  QueryParameters parameters_;
  absl::Status status_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_API_QUERY_H_
