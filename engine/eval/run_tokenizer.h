// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer that a run's model was trained with, and no other.
#ifndef LOCKSTEP_ENGINE_EVAL_RUN_TOKENIZER_H_
#define LOCKSTEP_ENGINE_EVAL_RUN_TOKENIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "audit/run_manifest.h"
#include "engine/tokenizer/tokenizer.h"

namespace lockstep::engine {

// From the file at `path`. FailedPrecondition if it is not the one that the manifest names, or has
// ids that the model has not; NotFound if `path` is empty; else Tokenizer::Load's errors.
absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadRunTokenizer(const audit::RunManifest& run,
                                                                  const std::string& path);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_EVAL_RUN_TOKENIZER_H_
