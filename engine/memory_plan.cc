// SPDX-License-Identifier: Apache-2.0
//
// Sizes, from the same code that carves the memory where there is such.
#include "engine/memory_plan.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/model/model.h"
#include "engine/model/parameters.h"
#include "engine/reduce/gradient_reducer.h"
#include "kernels/cross_entropy/lm_head.h"

namespace lockstep::engine {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// Scratch of the largest operations: logits of a chunk; both rotated operands of a weight gradient.
int64_t WorkingBytes(const audit::RunManifest& manifest) {
  const audit::ModelConfig& c = manifest.model;
  const int64_t tokens = manifest.topology.micro_batch * c.seq_len;
  const int64_t logits = std::min(kernels::LmHeadChunk(c.vocab), tokens) * c.vocab * 4;
  const int64_t widest = std::max({2 * c.ffn_width, c.qkv_width(), c.width});
  const int64_t rotated = manifest.precision == audit::Precision::kInt8 ? 2 * tokens * widest : 0;
  const int64_t packed = 2 * widest * c.width * 4;
  return std::max(logits, rotated) + packed;
}

}  // namespace

MemoryPlan PlanMemory(const audit::RunManifest& manifest, const MemoryChoices& choices) {
  const ParameterLayout layout(manifest.model);
  const int64_t flat = layout.flat_elements() * 4;
  const int64_t window = kPieceElements * 4;
  MemoryPlan plan = {.choices = choices};
  plan.parameters = layout.flat_elements() * 2;
  const bool f32 = manifest.parameter_storage == audit::ParameterStorage::kF32;
  const int64_t arrays = f32 ? 3 : 2;
  plan.state = arrays * (choices.spill_state ? 2 * window : flat);
  plan.disk += choices.spill_state ? arrays * flat : 0;
  const bool accumulates =
      std::any_of(manifest.batch.begin(), manifest.batch.end(),
                  [&](const auto& phase) { return manifest.AccumulationOf(phase) > 1; });
  plan.gradients = flat + (accumulates ? layout.elements_max() * 4 : 0);
  const int64_t partials = GradientReducer::PartialsMax(manifest.topology);
  plan.partials = partials * (choices.spill_partials ? 2 * window : flat);
  plan.disk += choices.spill_partials ? partials * flat : 0;
  plan.model = Model::BytesNeeded(
      manifest, {.windows = manifest.topology.micro_batch, .recompute = choices.recompute});
  plan.working = WorkingBytes(manifest);
  return plan;
}

absl::StatusOr<MemoryPlan> FitMemory(const audit::RunManifest& manifest, int64_t bytes_available) {
  MemoryPlan plan;
  MemoryChoices choices;
  for (bool* next : {static_cast<bool*>(nullptr), &choices.spill_partials, &choices.recompute,
                     &choices.spill_state}) {
    if (next != nullptr) *next = true;
    plan = PlanMemory(manifest, choices);
    if (plan.memory() <= bytes_available) return plan;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("this run needs more memory than there is: expected at least ", plan.memory(),
                   " bytes, found ", bytes_available, "\n", plan.ToTable()));
}

std::string MemoryPlan::ToTable() const {
  const auto line = [](absl::string_view what, int64_t bytes, absl::string_view note) {
    return absl::StrFormat("  %-22s %9.2f GiB  %s\n", what, static_cast<double>(bytes) / kGiB,
                           note);
  };
  return absl::StrCat(
      line("parameters", parameters, "bf16, as the model reads them"),
      line("state", state, choices.spill_state ? "moments in files, a piece at a time" : ""),
      line("gradients", gradients, ""),
      line("partial gradients", partials,
           choices.spill_partials ? "in files, a piece at a time" : ""),
      line("activations, weights", model,
           choices.recompute ? "layers are computed again on the way back" : ""),
      line("working memory", working, ""), line("memory", memory(), ""), line("disk", disk, ""));
}

std::optional<int64_t> AvailableMemory() {
  std::ifstream info("/proc/meminfo");
  std::string line;
  while (std::getline(info, line)) {
    std::istringstream fields(line);
    std::string name;
    int64_t kilobytes = 0;
    if (fields >> name >> kilobytes && name == "MemAvailable:") return kilobytes * 1024;
  }
  return std::nullopt;
}

std::optional<int64_t> MemoryForRun() {
  const std::optional<int64_t> available = AvailableMemory();
  if (!available) return std::nullopt;
  return *available / 10 * 9;
}

}  // namespace lockstep::engine
