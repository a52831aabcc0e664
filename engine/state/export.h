// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint's model as other tools take it: weights in one safetensors file under the names that
// are usual there, the architecture as config.json, the tokenizer as tokenizer.json. What the files
// hold, and what a model must compute with them: docs/checkpoint.md. It is no state: nothing can be
// trained on or replayed from it.
#ifndef LOCKSTEP_ENGINE_STATE_EXPORT_H_
#define LOCKSTEP_ENGINE_STATE_EXPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/checkpoint_manifest.h"
#include "audit/run_manifest.h"
#include "engine/backend/backend.h"
#include "engine/state/checkpoint.h"
#include "engine/state/safetensors.h"

namespace lockstep::engine {

struct ExportReport {
  audit::CheckpointManifest manifest;
  int64_t tensors = 0;
  int64_t parameters = 0;
  int64_t bytes = 0;  // of model.safetensors
};

// The header of model.safetensors without its metadata: a run's tensors in canonical order, with
// queries, keys, values, and gate, up, apart. Since these lie one after another in the rows of the
// fused tensors, the data that follows is the bf16 bytes of the canonical tensors as they are.
SafetensorsHeader ExportHeader(const audit::ModelConfig& config);

// config.json. end_of_text: the tokenizer's id of it.
std::string ExportConfig(const audit::RunManifest& run, int32_t end_of_text);

// Writes `out`, which must not exist, whole or not at all. The parameters are proved as
// ReadParameters does, and its errors passed on. tokenizer_json: of the run's tokenizer
// (engine/tokenizer/formats.h).
absl::StatusOr<ExportReport> ExportCheckpoint(Backend& backend, const audit::RunManifest& run,
                                              const std::string& checkpoint,
                                              absl::string_view tokenizer_json, int32_t end_of_text,
                                              const std::string& out, BytesHook read);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_STATE_EXPORT_H_
