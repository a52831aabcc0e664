// SPDX-License-Identifier: Apache-2.0
//
// What a run's states were found to predict of held-out texts, kept in the run's folder until
// somebody publishes it: RUN/evaluations/STEP-TEXTS.json, each the payload of a log's entry
// (audit/evidence/evaluation.h). TEXTS tells texts apart, so that one state evaluated twice on the
// same texts is one file, with the same bytes.
#ifndef LOCKSTEP_ENGINE_RUN_EVALUATIONS_H_
#define LOCKSTEP_ENGINE_RUN_EVALUATIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "audit/evidence/evaluation.h"
#include "engine/run/run_folder.h"

namespace lockstep::engine {

// On the disk when OK. InvalidArgument for one that has no text, such as of losses that are not
// finite.
absl::Status SaveEvaluation(const RunFolder& run, const audit::Evaluation& evaluation);

// Those in the folder, by name without its ".json", in order: ascending steps.
absl::StatusOr<std::vector<std::string>> ListEvaluations(const RunFolder& run);

// DataLoss if the file is damaged, or is of another run.
absl::StatusOr<audit::Evaluation> ReadEvaluation(const RunFolder& run, const std::string& name);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_EVALUATIONS_H_
