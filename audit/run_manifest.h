// SPDX-License-Identifier: Apache-2.0
//
// What fixes a run: the model, the recipe, the data and the logical topology, and nothing about
// machines. Written as canonical JSON (base/canonical_json.h); the SHA-256 of that text is the
// run's id. Format and rules: docs/run_manifest.md. A run whose recipe or topology changes midway
// goes on as a new segment, with a manifest of its own that names its parent.
#ifndef LOCKSTEP_AUDIT_RUN_MANIFEST_H_
#define LOCKSTEP_AUDIT_RUN_MANIFEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"

namespace lockstep::audit {

// The numerics contract that this build follows (kernels/README.md).
inline constexpr char kNumericsVersion[] = "lockstep-numerics-1";

// The network: the paper, section 3.1, Tables 2 and 3. Letters used for shapes everywhere:
//   L layers, C width, Hq and Hkv query and key/value heads, Dh head_dim, F ffn_width, V vocab,
//   T seq_len.
struct ModelConfig {
  int64_t layers = 0;       // L
  int64_t width = 0;        // C
  int64_t query_heads = 0;  // Hq, a multiple of kv_heads
  int64_t kv_heads = 0;     // Hkv
  int64_t head_dim = 0;     // Dh, a multiple of 16, at most 256
  int64_t ffn_width = 0;    // F
  int64_t vocab = 0;        // V
  int64_t seq_len = 0;      // T
  int64_t window = 0;       // keys that a query of a sliding-window layer sees, itself among them
  int64_t full_every = 0;  // every n-th layer is fully causal, and so is the last; 0: only the last
  double rope_theta = 0;
  double norm_eps = 0;
  double init_std = 0;  // of the normal distribution, which is cut at two of it
  bool operator==(const ModelConfig&) const = default;

  int64_t query_width() const { return query_heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
  int64_t qkv_width() const { return query_width() + 2 * kv_width(); }
  // The window of layer l, counted from 0; 0: fully causal.
  int64_t WindowOfLayer(int64_t l) const {
    const bool full = l + 1 == layers || (full_every > 0 && (l + 1) % full_every == 0);
    return full ? 0 : window;
  }
};

enum class Precision { kInt8, kBf16 };        // of the blocks' linear layers
enum class ParameterStorage { kBf16, kF32 };  // of the parameters between steps

// The optimizer and its rules: the paper, section 3.2 and 3.4.2.
struct Recipe {
  double peak_lr = 0;
  double final_lr_fraction = 0;  // of peak_lr, at total_tokens
  int64_t warmup_tokens = 0;     // consumed tokens over which the rate rises linearly from 0
  int64_t total_tokens = 0;      // where the cosine ends; the batch phases may end before it
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double weight_decay = 0;  // of linear layers and head; embedding and norms have none
  double clip_norm = 0;
  double z_loss = 0;  // its coefficient
  // A gradient norm above spike_norm, or one that is not finite, skips this update and those of the
  // next spike_skip_steps - 1 steps. More than spike_halt_events such events within
  // spike_halt_steps steps stop the run. 0 events: never.
  double spike_norm = 0;
  int64_t spike_skip_steps = 0;
  int64_t spike_halt_events = 0;
  int64_t spike_halt_steps = 0;
  // Steps in a row in which a tensor's gradient is all zero before the run stops. 0: never.
  int64_t dead_tensor_steps = 0;
  bool operator==(const Recipe&) const = default;
};

// Windows a step takes until the run has consumed so many tokens; the last phase ends the run.
struct BatchPhaseConfig {
  int64_t windows_per_step = 0;
  int64_t until_tokens = 0;
  bool operator==(const BatchPhaseConfig&) const = default;
};

// The ranks that a step is reduced over. They are logical: any number of processes computes them.
struct Topology {
  int64_t replicas = 0;     // dp_replicate
  int64_t shards = 0;       // dp_shard
  int64_t micro_batch = 0;  // windows
  bool operator==(const Topology&) const = default;
  int64_t ranks() const { return replicas * shards; }
};

// Where a segment takes over: the state after `step` steps of the parent, which had consumed
// `tokens` of the same data stream.
struct ParentSegment {
  Digest run_id;
  int64_t step = 0;
  int64_t tokens = 0;  // a multiple of seq_len
  Digest chain;
  bool operator==(const ParentSegment&) const = default;
};

struct RunManifest {
  std::string name;
  std::string numerics = kNumericsVersion;
  ModelConfig model;
  Precision precision = Precision::kInt8;
  ParameterStorage parameter_storage = ParameterStorage::kBf16;
  Recipe recipe;
  std::vector<BatchPhaseConfig> batch;
  Topology topology;
  uint64_t seed = 0;             // at most 2^53 - 1, which JSON keeps exactly
  Digest corpus;                 // of the corpus manifest (docs/shards.md)
  Digest tokenizer;              // of the tokenizer file (docs/tokenizer.md)
  int64_t checkpoint_every = 0;  // steps
  std::optional<ParentSegment> parent;
  bool operator==(const RunManifest&) const = default;

  // Micro-batches that each rank takes in a step of the phase. Whole, in a valid manifest.
  int64_t AccumulationOf(const BatchPhaseConfig& phase) const {
    return phase.windows_per_step / (topology.ranks() * topology.micro_batch);
  }
};

inline constexpr size_t kRunManifestBytesMax = 65536;

// The canonical text of a valid manifest.
std::string EncodeRunManifest(const RunManifest& manifest);

// Accepts what EncodeRunManifest writes of a valid manifest. Untrusted input; DataLoss names the
// field, what was expected and what was found.
absl::StatusOr<RunManifest> ParseRunManifest(absl::string_view text);

// Every rule that ParseRunManifest holds beyond the form: the range of each field
// (run_manifest_fields.h) and the rules between them. InvalidArgument names the field.
absl::Status ValidateRunManifest(const RunManifest& manifest);

// SHA-256 of the canonical text.
Digest RunIdOf(const RunManifest& manifest);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_RUN_MANIFEST_H_
