// SPDX-License-Identifier: Apache-2.0
//
// Evaluations as files.
#include "engine/run/evaluations.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/bytes.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 16;

std::string FolderOf(const RunFolder& run) { return run.path() + "/evaluations"; }

}  // namespace

absl::Status SaveEvaluation(const RunFolder& run, const audit::Evaluation& evaluation) {
  for (const audit::HeldOutFile& file : evaluation.files) {
    if (!std::isfinite(file.nats_per_token)) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.name, ": the loss is not finite, and so is not kept as an evaluation"));
    }
  }
  const std::string text = audit::EncodeEvaluation(evaluation);
  // What nobody would take must not be kept: such as a file's name with a control character.
  const absl::Status valid = audit::ParseEvaluation(text).status();
  if (!valid.ok()) return absl::InvalidArgumentError(valid.message());
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(FolderOf(run)));
  const std::string name = absl::StrFormat("%08d-%s.json", evaluation.next_step,
                                           audit::TextsOf(evaluation).ToHex().substr(0, 16));
  return WriteFileDurably(absl::StrCat(FolderOf(run), "/", name), AsBytes(text));
}

absl::StatusOr<std::vector<std::string>> ListEvaluations(const RunFolder& run) {
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(FolderOf(run));
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  LOCKSTEP_RETURN_IF_ERROR(names.status());
  std::vector<std::string> evaluations;
  for (const std::string& name : *names) {
    if (absl::EndsWith(name, ".json") && !absl::StartsWith(name, ".")) {
      evaluations.emplace_back(absl::StripSuffix(name, ".json"));
    }
  }
  std::sort(evaluations.begin(), evaluations.end());
  return evaluations;
}

absl::StatusOr<audit::Evaluation> ReadEvaluation(const RunFolder& run, const std::string& name) {
  const std::string path = absl::StrCat(FolderOf(run), "/", name, ".json");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  LOCKSTEP_ASSIGN_OR_RETURN(audit::Evaluation evaluation, audit::ParseEvaluation(text), path);
  if (evaluation.run_id == run.run_id()) return evaluation;
  return absl::DataLossError(absl::StrCat(path, ": expected run ", run.run_id().ToHex(), "; found ",
                                          evaluation.run_id.ToHex()));
}

}  // namespace lockstep::engine
