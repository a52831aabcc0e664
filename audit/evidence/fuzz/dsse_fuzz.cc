// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: DSSE envelopes. What is accepted is the same when it is written and read again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "audit/evidence/dsse.h"
#include "base/logging.h"
#include "nlohmann/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::audit;
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const auto envelope = ParseDsse(input);
  if (!envelope.ok()) return 0;
  LOCKSTEP_CHECK(!envelope->signatures.empty() && !envelope->payload_type.empty());
  LOCKSTEP_CHECK(envelope->signatures.size() <= kDsseSignaturesMax);
  LOCKSTEP_CHECK(ParseDsse(EncodeDsse(*envelope)).value() == *envelope);
  // Another reader, that keeps the last of two members: there were no two, so it sees the same.
  const auto json = nlohmann::json::parse(input);
  LOCKSTEP_CHECK(json["payloadType"] == envelope->payload_type);
  LOCKSTEP_CHECK(json["signatures"].size() == envelope->signatures.size());
  return 0;
}
