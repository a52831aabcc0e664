// SPDX-License-Identifier: Apache-2.0
//
// Names, configuration, and the tensors' bytes behind a new header.
#include "engine/state/export.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/model/parameters.h"
#include "engine/state/checkpoint_parameters.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {
namespace {

using Json = nlohmann::json;

absl::Status WriteWeights(Backend& backend, const audit::RunManifest& run,
                          const std::string& checkpoint, const std::string& path, BytesHook read,
                          ExportReport* report) {
  // The metadata is of the checkpoint, so its manifest is read before the tensors; ReadParameters
  // reads it again and holds the tensors against it.
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointManifest manifest,
                            ReadCheckpointManifest(checkpoint));
  const ParameterLayout layout(run.model);
  SafetensorsHeader header = ExportHeader(run.model);
  header.metadata = {{"format", "pt"},
                     {"lockstep_run", audit::RunIdOf(run).ToHex()},
                     {"lockstep_chain", manifest.chain().ToHex()},
                     {"lockstep_step", absl::StrCat(manifest.next_step())}};
  LOCKSTEP_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Create(path));
  const std::string head = EncodeSafetensorsHeader(header);
  LOCKSTEP_RETURN_IF_ERROR(file.Append(AsBytes(head)));
  std::vector<uint8_t> host;
  const auto append = [&](const Piece& piece, const BFloat16* data) {
    host.resize(piece.count * sizeof(BFloat16));
    backend.CopyOut(host.data(), data, host.size());
    return file.Append(host);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(report->manifest,
                            ReadParameters(backend, run, layout, checkpoint, append, read));
  if (report->manifest != manifest) {
    return absl::FailedPreconditionError(
        absl::StrCat(checkpoint, ": was changed while it was read"));
  }
  LOCKSTEP_RETURN_IF_ERROR(file.Commit());
  report->tensors = static_cast<int64_t>(header.entries.size());
  report->parameters = layout.elements();
  report->bytes = static_cast<int64_t>(head.size() + header.entries.back().end);
  return absl::OkStatus();
}

}  // namespace

SafetensorsHeader ExportHeader(const audit::ModelConfig& c) {
  SafetensorsHeader header;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    header.entries.push_back(
        {.name = name + ".weight", .type = TensorType::kBf16, .shape = std::move(shape)});
  };
  add("model.embed_tokens", {c.vocab, c.width});
  add("model.embed_norm", {c.width});
  for (int64_t l = 0; l < c.layers; ++l) {
    const std::string layer = absl::StrCat("model.layers.", l, ".");
    add(layer + "input_layernorm", {c.width});
    add(layer + "self_attn.q_proj", {c.query_width(), c.width});
    add(layer + "self_attn.k_proj", {c.kv_width(), c.width});
    add(layer + "self_attn.v_proj", {c.kv_width(), c.width});
    add(layer + "self_attn.o_proj", {c.width, c.query_width()});
    add(layer + "post_attention_layernorm", {c.width});
    add(layer + "mlp.gate_proj", {c.ffn_width, c.width});
    add(layer + "mlp.up_proj", {c.ffn_width, c.width});
    add(layer + "mlp.down_proj", {c.width, c.ffn_width});
  }
  add("model.norm", {c.width});
  add("lm_head", {c.vocab, c.width});
  return header;
}

std::string ExportConfig(const audit::RunManifest& run, int32_t end_of_text) {
  const audit::ModelConfig& c = run.model;
  Json layer_types = Json::array();
  for (int64_t l = 0; l < c.layers; ++l) {
    layer_types.push_back(c.WindowOfLayer(l) == 0 ? "full_attention" : "sliding_attention");
  }
  const Json config = {
      {"architectures", {"LockstepForCausalLM"}},
      {"model_type", "lockstep"},
      {"torch_dtype", "bfloat16"},
      {"num_hidden_layers", c.layers},
      {"hidden_size", c.width},
      {"num_attention_heads", c.query_heads},
      {"num_key_value_heads", c.kv_heads},
      {"head_dim", c.head_dim},
      {"intermediate_size", c.ffn_width},
      {"vocab_size", c.vocab},
      {"max_position_embeddings", c.seq_len},
      {"sliding_window", c.window},
      {"layer_types", layer_types},
      {"rope_theta", c.rope_theta},
      {"rms_norm_eps", c.norm_eps},
      {"initializer_range", c.init_std},
      {"hidden_act", "silu"},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"tie_word_embeddings", false},
      {"qk_norm", "rms_without_gain"},
      {"embedding_norm", true},
      {"bos_token_id", end_of_text},
      {"eos_token_id", end_of_text},
      {"linear_precision", run.precision == audit::Precision::kInt8 ? "int8" : "bf16"},
      {"numerics", run.numerics}};
  return config.dump(2) + "\n";
}

absl::StatusOr<ExportReport> ExportCheckpoint(Backend& backend, const audit::RunManifest& run,
                                              const std::string& checkpoint,
                                              absl::string_view tokenizer_json, int32_t end_of_text,
                                              const std::string& out, BytesHook read) {
  ExportReport report;
  LOCKSTEP_ASSIGN_OR_RETURN(DurableDirectory directory, DurableDirectory::Create(out));
  LOCKSTEP_RETURN_IF_ERROR(WriteWeights(
      backend, run, checkpoint, directory.temporary() + "/model.safetensors", read, &report));
  const std::string config = ExportConfig(run, end_of_text);
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFileDurably(directory.temporary() + "/config.json", AsBytes(config)));
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFileDurably(directory.temporary() + "/tokenizer.json", AsBytes(tokenizer_json)));
  LOCKSTEP_RETURN_IF_ERROR(directory.Commit());
  return report;
}

}  // namespace lockstep::engine
