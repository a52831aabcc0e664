// SPDX-License-Identifier: Apache-2.0
//
// Context for errors. See status.h.

#include "base/status.h"

#include "absl/strings/cord.h"

namespace lockstep {

absl::Status WithContext(absl::Status status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status result(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&result](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

}  // namespace lockstep
