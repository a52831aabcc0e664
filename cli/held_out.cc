// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints on held-out texts.
#include "cli/held_out.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "audit/evidence/evaluation.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "engine/eval/checkpoint_model.h"
#include "engine/eval/json_lines.h"
#include "engine/eval/run_tokenizer.h"
#include "engine/run/evaluations.h"

namespace lockstep::cli {

absl::StatusOr<HeldOutByFile> EvaluateFiles(engine::LossSource& model,
                                            const engine::Tokenizer& tokenizer,
                                            const std::vector<std::string>& files, int64_t limit,
                                            bool quiet) {
  HeldOutByFile results;
  for (const std::string& path : files) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> texts, engine::ReadTexts(path, limit));
    int64_t bytes = 0;
    for (const std::string& text : texts) bytes += static_cast<int64_t>(text.size());
    Progress progress(path, bytes, "B", quiet);
    LOCKSTEP_ASSIGN_OR_RETURN(
        engine::HeldOutResult result,
        engine::EvaluateHeldOut(
            model, tokenizer, texts,
            {.interrupted = Interrupted, .done = [&](int64_t n) { progress.Add(n); }}));
    results.emplace_back(path, result);
  }
  return results;
}

absl::Status KeepEvaluation(const engine::RunFolder& run,
                            const audit::CheckpointManifest& checkpoint,
                            const HeldOutByFile& results, int64_t limit) {
  audit::Evaluation evaluation{.run_id = run.run_id(),
                               .next_step = checkpoint.next_step(),
                               .chain = checkpoint.chain(),
                               .limit = limit,
                               .files = {}};
  for (const auto& [path, result] : results) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, engine::kJsonLinesBytesMax));
    evaluation.files.push_back({.name = std::filesystem::path(path).filename().string(),
                                .sha256 = Sha256(AsBytes(bytes)),
                                .documents = result.documents,
                                .bytes = result.bytes,
                                .tokens = result.tokens,
                                .nats_per_token = result.NatsPerToken()});
  }
  return engine::SaveEvaluation(run, evaluation);
}

absl::StatusOr<TrainingEvaluation> TrainingEvaluation::Create(engine::Backend& backend,
                                                              const engine::RunFolder& run,
                                                              const std::vector<std::string>& files,
                                                              int64_t limit) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<std::string> expanded, engine::ExpandFolders(files));
  if (expanded.size() > audit::kHeldOutFilesMax) {
    return absl::InvalidArgumentError(absl::StrCat("--held-out: expected at most ",
                                                   audit::kHeldOutFilesMax, " files; found ",
                                                   expanded.size()));
  }
  for (const std::string& path : expanded) {
    LOCKSTEP_RETURN_IF_ERROR(engine::ReadTexts(path, /*limit=*/1).status());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto tokenizer,
                            engine::LoadRunTokenizer(run.manifest(), run.places().tokenizer));
  return TrainingEvaluation(backend, run, std::move(expanded), limit, std::move(tokenizer));
}

absl::StatusOr<double> TrainingEvaluation::Evaluate(const std::string& folder) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto model,
      engine::CheckpointModel::Load(*backend_, run_->manifest(), folder, [](int64_t) {}));
  LOCKSTEP_ASSIGN_OR_RETURN(const HeldOutByFile results,
                            EvaluateFiles(*model, *tokenizer_, files_, limit_, /*quiet=*/true));
  LOCKSTEP_RETURN_IF_ERROR(KeepEvaluation(*run_, model->checkpoint(), results, limit_));
  engine::HeldOutResult all;
  for (const auto& [path, result] : results) all.Add(result);
  return all.NatsPerToken();
}

}  // namespace lockstep::cli
