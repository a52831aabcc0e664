// SPDX-License-Identifier: Apache-2.0
//
// Any bytes behind a "?": every read gives a value within its bounds, or none; and what is refused
// has a reason.
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/logging.h"
#include "coordinator/api/query.h"
#include "rpc/rpc_error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace coordinator = lockstep::coordinator;
  coordinator::Query query(lockstep::AsChars({data, size}),
                           {"limit", "page", "operator", "state", "newest", "backend"});
  const std::optional<uint64_t> limit = query.Number("limit", 1, 1000);
  LOCKSTEP_CHECK(!limit || (*limit >= 1 && *limit <= 1000));
  const std::optional<uint64_t> page = query.Number("page");
  LOCKSTEP_CHECK(!page || *page <= coordinator::kApiNumberMax);
  const auto key = query.Key("operator");
  LOCKSTEP_CHECK(!key || query.Text("operator") == key->ToHex());
  const auto state = query.State("state");
  LOCKSTEP_CHECK(!state || query.Text("state") == lockstep::audit::StepStateName(*state));
  query.Flag("newest");
  const bool refused = !query.status().ok();
  LOCKSTEP_CHECK(!refused || lockstep::rpc::ReasonOf(query.status()) == "REQUEST_INVALID");
  return 0;
}
