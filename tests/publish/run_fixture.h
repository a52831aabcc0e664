// SPDX-License-Identifier: Apache-2.0
//
// A run folder as training leaves it, without training: a small corpus, records that follow each
// other, and states of a few bytes. For tests only.
#ifndef LOCKSTEP_TESTS_PUBLISH_RUN_FIXTURE_H_
#define LOCKSTEP_TESTS_PUBLISH_RUN_FIXTURE_H_

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "audit/checkpoint_manifest.h"
#include "audit/testing/small_log.h"
#include "base/testing/temporary_folder.h"
#include "engine/data/testing/memory_corpus.h"
#include "engine/run/evaluations.h"
#include "engine/run/run_folder.h"

namespace lockstep::testing {

class RunFixture {
 public:
  RunFixture() {
    namespace memory = engine::testing;
    const memory::MemoryCorpus corpus = memory::MakeMemoryCorpus(
        {{.name = "a", .shards = {{{1, 2, 3}, {4, 5}}, {{6, 7, 8}}}, .share = std::nullopt}});
    WriteBytes(folder_ / "tokenizer", "tokenizer");
    WriteBytes(folder_ / "corpus/manifest.json", engine::SerializeManifest(*corpus.manifest));
    for (const auto& [id, bytes] : corpus.files->files) {
      WriteBytes(folder_ / ("corpus/" + engine::NameOf(*corpus.manifest, id)), bytes);
      artifacts_.push_back(Sha256(AsBytes(bytes)));
    }
    audit::RunManifest manifest = audit::Preset("golden").value();
    manifest.batch.resize(1);  // longer than the preset
    manifest.batch[0].until_tokens = manifest.recipe.total_tokens = 1'000'000'000'000;
    manifest.corpus = engine::ManifestDigest(*corpus.manifest);
    manifest.tokenizer = Sha256(AsBytes("tokenizer"));
    artifacts_.push_back(manifest.corpus);
    artifacts_.push_back(manifest.tokenizer);
    registration_ = audit::TestRegistration();
    registration_.manifest = manifest;
    registration_.genesis->cursor = Sha256(AsBytes(Cursor(0)));
    run_ = std::make_unique<engine::RunFolder>(
        engine::RunFolder::Create(
            folder_ / "run", manifest,
            {.corpus = {folder_ / "corpus"}, .tokenizer = folder_ / "tokenizer", .parent = ""})
            .value());
  }

  const engine::RunFolder& run() const { return *run_; }
  std::string operator/(absl::string_view name) const { return folder_ / name; }
  const std::vector<audit::StepRecord>& records() const { return records_; }
  // Digests of everything that an auditor needs.
  const std::vector<Digest>& artifacts() const { return artifacts_; }

  // As training goes on; with a part of the next record, as it is while it writes.
  void Train(int steps) {
    std::ofstream log(run_->StepLogPath(), std::ios::binary | std::ios::app);
    for (int i = 0; i < steps; ++i) {
      audit::StepRecord record =
          audit::TestRecord(registration_, records_.empty() ? nullptr : &records_.back());
      record.cursor = Sha256(AsBytes(Cursor(record.step + 1)));
      records_.push_back(record);
      log << audit::EncodeStepRecord(record);
    }
  }
  // As `lockstep train --held-out` keeps it, of the state after what was trained so far.
  void Evaluate(double nats_per_token) {
    const audit::Evaluation evaluation{
        .run_id = run_->run_id(),
        .next_step = records_.size(),
        .chain = records_.empty() ? registration_.first_chain() : ChainAfter(records_.back()),
        .files = {{.name = "texts.jsonl",
                   .sha256 = Sha256(AsBytes("texts")),
                   .documents = 1,
                   .bytes = 100,
                   .tokens = 30,
                   .nats_per_token = nats_per_token}}};
    LOCKSTEP_CHECK(engine::SaveEvaluation(*run_, evaluation).ok());
  }
  // The state after what was trained so far.
  void Save() {
    const uint64_t step = records_.size();
    audit::CheckpointManifest manifest;
    manifest.run_id = run_->run_id();
    if (records_.empty()) {
      manifest.origin = audit::InitialState{.parameters = registration_.genesis->parameters,
                                            .first_moment = registration_.genesis->first_moment,
                                            .second_moment = registration_.genesis->second_moment};
    } else {
      manifest.origin = records_.back();
    }
    manifest.cursor = Cursor(step);
    // Whole or not there, as training does it.
    const std::string folder = run_->CheckpointPath(step) + ".new";
    for (const char* const name : audit::kCheckpointFiles) {
      const std::string bytes = absl::StrCat(name, " before step ", step);
      WriteBytes(absl::StrCat(folder, "/", name), bytes);
      manifest.files.push_back({.name = name,
                                .bytes = static_cast<int64_t>(bytes.size()),
                                .sha256 = Sha256(AsBytes(bytes))});
      artifacts_.push_back(manifest.files.back().sha256);
    }
    const std::string text = audit::EncodeCheckpointManifest(manifest);
    WriteBytes(folder + "/checkpoint.json", text);
    std::filesystem::rename(folder, run_->CheckpointPath(step));
    artifacts_.push_back(Sha256(AsBytes(text)));
  }

 private:
  static std::string Cursor(uint64_t step) { return absl::StrCat("cursor before ", step); }

  TemporaryFolder folder_;
  std::unique_ptr<engine::RunFolder> run_;
  audit::RunRegistration registration_;
  std::vector<audit::StepRecord> records_;
  std::vector<Digest> artifacts_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_PUBLISH_RUN_FIXTURE_H_
