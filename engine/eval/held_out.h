// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy of texts that a model was not trained on, in the windows of its training. What is
// counted and how: docs/evaluation.md.
#ifndef LOCKSTEP_ENGINE_EVAL_HELD_OUT_H_
#define LOCKSTEP_ENGINE_EVAL_HELD_OUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/eval/loss_source.h"
#include "engine/tokenizer/tokenizer.h"

namespace lockstep::engine {

struct HeldOutResult {
  int64_t documents = 0;
  int64_t bytes = 0;   // of the texts
  int64_t tokens = 0;  // predicted ones: the texts' and a separator after each
  double nats = 0;     // their cross-entropy, added up

  // Of a result with tokens and bytes.
  double NatsPerToken() const { return nats / static_cast<double>(tokens); }
  double BitsPerByte() const;
  void Add(const HeldOutResult& other);
};

// The texts as one stream: a separator, then each text and a separator. Windows of T inputs follow
// each other in it, each a token's step behind its targets, so that every token after the first is
// predicted once; the last window is filled up with separators that do not count. Batches are of
// model.batch_windows() windows, the last one of those that are left. Losses are added up as
// doubles in the stream's order. hooks.done counts bytes of text.
absl::StatusOr<HeldOutResult> EvaluateHeldOut(LossSource& model, const Tokenizer& tokenizer,
                                              const std::vector<std::string>& texts,
                                              const EvalHooks& hooks);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_EVAL_HELD_OUT_H_
