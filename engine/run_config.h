// SPDX-License-Identifier: Apache-2.0
//
// run.toml: what people write to start a run. A preset, and what is to be different from it. It is
// resolved once into the run's manifest (audit/run_manifest.h), which alone fixes the run.
// Format: docs/run_manifest.md.
#ifndef LOCKSTEP_ENGINE_RUN_CONFIG_H_
#define LOCKSTEP_ENGINE_RUN_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/run_manifest.h"
#include "base/sha256.h"

namespace lockstep::engine {

struct RunConfig {
  // All but the parent and the digests of corpus and tokenizer, which are zeros.
  audit::RunManifest manifest;
  std::string corpus_path;     // of the folder of token shards
  std::string tokenizer_path;  // of the tokenizer file
  std::string parent_path;     // of the parent's run folder; empty for a run that is no segment
  uint64_t parent_step = 0;    // before which the segment takes over
  std::string file;            // for messages
  bool operator==(const RunConfig&) const = default;
};

// `file` begins messages; relative paths in the text are relative to the folder it lies in.
// InvalidArgument gives the line, the key, what was expected and what was found; for a key that
// does not exist, the one that is spelt most like it.
absl::StatusOr<RunConfig> ParseRunConfig(absl::string_view text, const std::string& file);
absl::StatusOr<RunConfig> LoadRunConfig(const std::string& path);

// The manifest with what was found at the paths: two digests, and of a segment its parent's state
// (engine/run/run_inputs.h). InvalidArgument if it breaks a rule.
absl::StatusOr<audit::RunManifest> ResolveRunConfig(
    const RunConfig& config, const Digest& corpus, const Digest& tokenizer,
    const std::optional<audit::ParentSegment>& parent);

// A run.toml to begin with: of the preset, with all of its values as comments. NotFound lists the
// presets.
absl::StatusOr<std::string> ExampleRunConfig(absl::string_view preset);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_CONFIG_H_
