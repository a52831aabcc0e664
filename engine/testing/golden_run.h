// SPDX-License-Identifier: Apache-2.0
//
// The golden run: the preset of that name, over a corpus made from the counter stream, whose chain
// of step records is a constant of this repository. Every backend, compiler, thread count, memory
// choice and placement must arrive at it. For tests.
#ifndef LOCKSTEP_ENGINE_TESTING_GOLDEN_RUN_H_
#define LOCKSTEP_ENGINE_TESTING_GOLDEN_RUN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "audit/presets.h"
#include "audit/run_manifest.h"
#include "base/logging.h"
#include "base/status.h"
#include "engine/backend/backend.h"
#include "engine/data/step_reader.h"
#include "engine/data/testing/memory_corpus.h"
#include "engine/state/checkpoint.h"
#include "engine/state/train_state.h"
#include "engine/step_batch.h"
#include "engine/train_step.h"
#include "kernels/random/random.h"

namespace lockstep::golden {

// Two sources of documents of 1 to 150 tokens, in each of which the next token is mostly a function
// of the last: something to learn.
inline engine::testing::MemoryCorpus GoldenCorpus() {
  constexpr uint64_t kSeed = 20260915;
  const auto document = [&](uint64_t stream, int64_t d, uint64_t vocab) {
    engine::testing::Tokens tokens;
    const auto length = static_cast<int64_t>(1 + kernels::RandomBelow(kSeed, stream, d << 20, 150));
    uint64_t token = kernels::RandomBelow(kSeed, stream, (d << 20) + 1, vocab - 1);
    for (int64_t t = 0; t < length; ++t) {
      const uint64_t at = (static_cast<uint64_t>(d) << 20) + 2 + t;
      const uint64_t noise = kernels::RandomBelow(kSeed, stream, at, 1000);
      token = noise < 800 ? (token * 5 + 17) % (vocab - 1) : (noise * 7919) % (vocab - 1);
      tokens.push_back(static_cast<int32_t>(1 + token));  // 0 is the separator
    }
    return tokens;
  };
  std::vector<engine::testing::MemorySource> sources(2);
  sources[0].name = "code";
  sources[1].name = "prose";
  for (size_t s = 0; s < sources.size(); ++s) {
    for (int64_t shard = 0; shard < 3; ++shard) {
      std::vector<engine::testing::Tokens>& documents = sources[s].shards.emplace_back();
      for (int64_t d = 0; d < (s == 0 ? 40 : 120); ++d) {
        documents.push_back(document(100 + s, shard * 1000 + d, s == 0 ? 512 : 300));
      }
    }
  }
  return engine::testing::MakeMemoryCorpus(sources, 512);
}

struct GoldenChoices {
  bool recompute = false;
  std::string spill_folder;  // for state and partial gradients; empty: in memory
};

// A run that has begun, and can be stepped.
class GoldenRun {
 public:
  explicit GoldenRun(engine::Backend& backend, const GoldenChoices& choices = {},
                     const audit::RunManifest& manifest = Manifest())
      : backend_(backend), corpus_(GoldenCorpus()), manifest_(manifest) {
    auto reader =
        engine::StepReader::Open(corpus_.reader, manifest_.seed, *engine::ScheduleOf(manifest_));
    LOCKSTEP_CHECK(reader.ok(), "{}", reader.status());
    data_ = std::make_unique<engine::StepReader>(*std::move(reader));
    step_ = *engine::TrainStep::Create(
        backend, manifest_, {.recompute = choices.recompute, .spill_folder = choices.spill_folder});
    state_ = *engine::TrainState::Create(backend, manifest_, step_->layout(), choices.spill_folder);
    LOCKSTEP_CHECK(state_->Initialize(manifest_, data_->cursor()).ok(), "initialize");
  }

  static audit::RunManifest Manifest() {
    audit::RunManifest manifest = *audit::Preset("golden");
    manifest.corpus = GoldenCorpus().reader->digest();
    manifest.tokenizer = Sha256(AsBytes("golden"));
    return manifest;
  }

  engine::StepResult Step() {
    const auto batch = engine::ReadStepBatch(*data_);
    LOCKSTEP_CHECK(batch.ok(), "{}", batch.status());
    auto result = step_->Run(*state_, *batch, [] { return false; });
    LOCKSTEP_CHECK(result.ok(), "{}", result.status());
    return *std::move(result);
  }

  // The state after the step with this record, as a checkpoint; and the run from one.
  absl::Status Save(const audit::StepRecord& last, const std::string& folder) {
    return engine::SaveCheckpoint(backend_, manifest_, *state_, &last, folder, [](int64_t) {});
  }
  absl::Status Resume(const std::string& folder) {
    LOCKSTEP_RETURN_IF_ERROR(
        engine::LoadCheckpoint(backend_, manifest_, folder, *state_, [](int64_t) {}));
    step_->ParametersChanged();
    return data_->Resume(state_->step, state_->cursor);
  }

  const audit::RunManifest& manifest() const { return manifest_; }
  engine::TrainState& state() { return *state_; }
  engine::TrainStep& step() { return *step_; }
  engine::StepReader& data() { return *data_; }

 private:
  engine::Backend& backend_;
  engine::testing::MemoryCorpus corpus_;
  audit::RunManifest manifest_;
  std::unique_ptr<engine::StepReader> data_;
  std::unique_ptr<engine::TrainStep> step_;
  std::unique_ptr<engine::TrainState> state_;
};

}  // namespace lockstep::golden

#endif  // LOCKSTEP_ENGINE_TESTING_GOLDEN_RUN_H_
