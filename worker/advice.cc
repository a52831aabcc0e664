// SPDX-License-Identifier: Apache-2.0
//
// Reasons and what they mean.
#include "worker/advice.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rpc/rpc_error.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kRetryAfterMax = absl::Hours(1);

struct Advice {
  absl::string_view reason;
  absl::string_view text;
};

constexpr Advice kAdvice[] = {
    {"KEY_IN_USE",
     "another process works with this worker's key. After a restart of this machine, or a move of "
     "the data folder, that was this worker itself: it goes on by itself. If the data folder was "
     "copied, let only one of the two run, and give the other a folder and a key of its own "
     "(`lockstep-worker keys init --data-folder DIR`, then `keys certify`)"},
    {"KEY_UNKNOWN",
     "the coordinator does not know this worker's key: `lockstep-worker keys certify` ties it to "
     "its operator; then start the daemon again"},
    {"OPERATOR_UNKNOWN",
     "the coordinator does not know the operator that this worker was certified by: start the "
     "worker on the machine where `keys init --operator` was run once, so that it is told"},
    {"KEY_REVOKED",
     "this worker's key, or its operator's, was ended: nothing that it signs counts any more. "
     "`lockstep-worker keys init --data-folder DIR` makes another"},
    {"WRONG_ROLE",
     "this key is known to the coordinator, but not as a worker's: each worker has a key of its "
     "own"},
    {"QUOTA_EXCEEDED",
     "the coordinator takes no more keys of this operator: end one that is not used any more "
     "(`lockstep-worker keys revoke`)"},
    {"BACKEND_UNKNOWN",
     "the coordinator does not know this processor's kind: one of the two programs is too old"},
};

}  // namespace

std::string AdviceOn(const absl::Status& status) {
  const std::string reason = rpc::ReasonOf(status);
  for (const Advice& advice : kAdvice) {
    if (advice.reason == reason) return std::string(advice.text);
  }
  return "";
}

std::string Words(const absl::Status& status) {
  const std::string reason = rpc::ReasonOf(status);
  return absl::StrCat(reason.empty() ? absl::StatusCodeToString(status.code()) : reason, ": ",
                      status.message());
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const rpc::Metadata metadata = rpc::MetadataOf(status);
  const auto found = metadata.find("retry_after_ms");
  int64_t ms = 0;
  if (found == metadata.end() || !absl::SimpleAtoi(found->second, &ms) || ms < 0) {
    return std::nullopt;
  }
  return std::min(absl::Milliseconds(ms), kRetryAfterMax);
}

}  // namespace lockstep::worker
