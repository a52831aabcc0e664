// SPDX-License-Identifier: Apache-2.0
//
// Held-out texts for `lockstep eval` and `lockstep train --held-out`: a checkpoint evaluated file
// by file, and the result as a run keeps and publishes it.
#ifndef LOCKSTEP_CLI_HELD_OUT_H_
#define LOCKSTEP_CLI_HELD_OUT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/checkpoint_manifest.h"
#include "engine/backend/backend.h"
#include "engine/eval/held_out.h"
#include "engine/run/run_folder.h"
#include "engine/tokenizer/tokenizer.h"

namespace lockstep::cli {

using HeldOutByFile = std::vector<std::pair<std::string, engine::HeldOutResult>>;

// The first `limit` texts of each file, 0: all. quiet: no progress is shown.
absl::StatusOr<HeldOutByFile> EvaluateFiles(engine::LossSource& model,
                                            const engine::Tokenizer& tokenizer,
                                            const std::vector<std::string>& files, int64_t limit,
                                            bool quiet);

// To the run's folder (engine/run/evaluations.h).
absl::Status KeepEvaluation(const engine::RunFolder& run,
                            const audit::CheckpointManifest& checkpoint,
                            const HeldOutByFile& results, int64_t limit);

// Held-out texts that a run is evaluated on as it is trained: at each checkpoint, which is read
// again for it, so that this takes the memory of `lockstep eval` besides.
class TrainingEvaluation {
 public:
  // `files`: JSONL files, or folders of such. Reads the tokenizer, and whether there are texts; no
  // checkpoint yet. Backend and run outlive it.
  static absl::StatusOr<TrainingEvaluation> Create(engine::Backend& backend,
                                                   const engine::RunFolder& run,
                                                   const std::vector<std::string>& files,
                                                   int64_t limit);

  // Of the checkpoint in `folder`, kept in the run's folder: nats a token over all files.
  absl::StatusOr<double> Evaluate(const std::string& folder);

 private:
  TrainingEvaluation(engine::Backend& backend, const engine::RunFolder& run,
                     std::vector<std::string> files, int64_t limit,
                     std::shared_ptr<const engine::Tokenizer> tokenizer)
      : backend_(&backend),
        run_(&run),
        files_(std::move(files)),
        limit_(limit),
        tokenizer_(std::move(tokenizer)) {}

  engine::Backend* backend_;
  const engine::RunFolder* run_;
  std::vector<std::string> files_;
  int64_t limit_;
  std::shared_ptr<const engine::Tokenizer> tokenizer_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_HELD_OUT_H_
