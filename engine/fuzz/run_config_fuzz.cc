// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: run.toml. Whatever it says, it is read or refused with a message; what was read is a
// run whose manifest can be written and read.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "audit/run_manifest.h"
#include "base/logging.h"
#include "engine/run_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<engine::RunConfig> config = engine::ParseRunConfig(text, "/folder/run.toml");
  if (!config.ok()) {
    LOCKSTEP_CHECK(absl::IsInvalidArgument(config.status()), "{}", config.status());
    LOCKSTEP_CHECK(config.status().message().find("/folder/run.toml") == 0, "{}", config.status());
    return 0;
  }
  const std::string manifest = audit::EncodeRunManifest(config->manifest);
  LOCKSTEP_CHECK(audit::ParseRunManifest(manifest).value() == config->manifest);
  return 0;
}
