// SPDX-License-Identifier: Apache-2.0
//
// The fields of a run manifest's parts, written once: their names in JSON, in run.toml and in
// messages, what they mean, and the range that each must keep. Encoding, reading, checking and the
// reader of run.toml walk these lists. Rules between fields are in run_manifest.cc.
#ifndef LOCKSTEP_AUDIT_RUN_MANIFEST_FIELDS_H_
#define LOCKSTEP_AUDIT_RUN_MANIFEST_FIELDS_H_

#include <cstdint>

#include "audit/run_manifest.h"

namespace lockstep::audit {

// Both ends of a range belong to it.
struct IntegerField {
  const char* name;
  int64_t least;
  int64_t most;
  const char* meaning;
};
struct NumberField {
  const char* name;
  double least;
  double most;
  const char* meaning;
};

// Tokens and steps: far more than any run, and no sum or product of what is allowed overflows.
inline constexpr int64_t kTokensMax = 1'000'000'000'000'000;

// Calls visit(IntegerField, int64_t&) or visit(NumberField, double&) for each field; the part is
// const or not, and so are the references.
template <typename Model, typename Visitor>
void VisitModelFields(Model& m, Visitor&& visit) {
  visit(IntegerField{"layers", 1, 4096, ""}, m.layers);
  visit(IntegerField{"width", 1, 65536, "of the residual stream"}, m.width);
  visit(IntegerField{"query_heads", 1, 4096, "a multiple of kv_heads"}, m.query_heads);
  visit(IntegerField{"kv_heads", 1, 4096, ""}, m.kv_heads);
  visit(IntegerField{"head_dim", 16, 256, "a multiple of 16"}, m.head_dim);
  visit(IntegerField{"ffn_width", 1, 262144, ""}, m.ffn_width);
  visit(IntegerField{"vocab", 2, 1 << 24, "the tokenizer's"}, m.vocab);
  visit(IntegerField{"seq_len", 1, 1 << 20, "tokens of a window"}, m.seq_len);
  visit(IntegerField{"window", 1, 1 << 20, "keys that a sliding-window query sees, itself too"},
        m.window);
  visit(IntegerField{"full_every", 0, 4096,
                     "every n-th layer is fully causal, and so is the last; 0: only the last"},
        m.full_every);
  visit(NumberField{"rope_theta", 1, 1e12, ""}, m.rope_theta);
  visit(NumberField{"norm_eps", 1e-12, 0.1, ""}, m.norm_eps);
  visit(NumberField{"init_std", 1e-6, 1, "of the normal distribution, cut at two of it"},
        m.init_std);
}

template <typename RecipeType, typename Visitor>
void VisitRecipeFields(RecipeType& r, Visitor&& visit) {
  visit(NumberField{"peak_lr", 1e-12, 1, ""}, r.peak_lr);
  visit(NumberField{"final_lr_fraction", 0, 1, "of peak_lr, at total_tokens"}, r.final_lr_fraction);
  visit(IntegerField{"warmup_tokens", 0, kTokensMax, "over which the rate rises from 0"},
        r.warmup_tokens);
  visit(IntegerField{"total_tokens", 1, kTokensMax, "where the cosine ends"}, r.total_tokens);
  visit(NumberField{"beta1", 0.001, 0.999999, ""}, r.beta1);
  visit(NumberField{"beta2", 0.001, 0.999999, ""}, r.beta2);
  visit(NumberField{"eps", 1e-30, 1, ""}, r.eps);
  visit(NumberField{"weight_decay", 0, 10, "of linear layers and head"}, r.weight_decay);
  visit(NumberField{"clip_norm", 1e-6, 1e6, ""}, r.clip_norm);
  visit(NumberField{"z_loss", 0, 1, "its coefficient"}, r.z_loss);
  visit(NumberField{"spike_norm", 1e-6, 1e30, "a gradient norm above it skips updates"},
        r.spike_norm);
  visit(IntegerField{"spike_skip_steps", 1, 1'000'000, "that a spike skips, its own among them"},
        r.spike_skip_steps);
  visit(IntegerField{"spike_halt_events", 0, 1'000'000,
                     "more spikes than this within spike_halt_steps stop the run; 0: never"},
        r.spike_halt_events);
  visit(IntegerField{"spike_halt_steps", 0, kTokensMax, "0 if spike_halt_events is"},
        r.spike_halt_steps);
  visit(IntegerField{"dead_tensor_steps", 0, 1'000'000'000,
                     "in a row without any gradient of a tensor stop the run; 0: never"},
        r.dead_tensor_steps);
}

template <typename Phase, typename Visitor>
void VisitBatchFields(Phase& p, Visitor&& visit) {
  visit(
      IntegerField{"windows_per_step", 1, 1 << 20, "a multiple of replicas * shards * micro_batch"},
      p.windows_per_step);
  visit(IntegerField{"until_tokens", 1, kTokensMax, "consumed; the last phase's end the run"},
        p.until_tokens);
}

template <typename TopologyType, typename Visitor>
void VisitTopologyFields(TopologyType& t, Visitor&& visit) {
  visit(IntegerField{"replicas", 1, 4096, "dp_replicate"}, t.replicas);
  visit(IntegerField{"shards", 1, 4096, "dp_shard"}, t.shards);
  visit(IntegerField{"micro_batch", 1, 65536, "windows"}, t.micro_batch);
}

inline constexpr IntegerField kCheckpointEveryField = {"checkpoint_every", 1, 1'000'000'000,
                                                       "steps"};
// Of every random number of the run: an integer that JSON keeps exactly.
inline constexpr IntegerField kSeedField = {"seed", 0, (int64_t{1} << 53) - 1, ""};

inline constexpr size_t kBatchPhasesMax = 64;
inline constexpr size_t kRunNameBytesMax = 64;

// The words of the two enums.
const char* PrecisionName(Precision precision);              // "int8", "bf16"
const char* ParameterStorageName(ParameterStorage storage);  // "bf16", "f32"

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_RUN_MANIFEST_FIELDS_H_
