// SPDX-License-Identifier: Apache-2.0
//
// An audit of steps: computed again from a state that the published records commit to, and compared
// record by record.
#ifndef LOCKSTEP_ENGINE_RUN_REPLAY_H_
#define LOCKSTEP_ENGINE_RUN_REPLAY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "audit/step_record.h"
#include "audit/verdict.h"
#include "engine/backend/backend.h"
#include "engine/data/open_corpus.h"
#include "engine/memory_plan.h"
#include "engine/run/run_folder.h"
#include "engine/run/run_inputs.h"
#include "engine/train_step.h"

namespace lockstep::engine {

struct ReplayOptions {
  uint64_t begin = 0;  // the first step whose record is compared
  uint64_t end = 0;    // one past the last
  // Where to start; by default the latest place at or before `begin`. Steps between are replayed
  // and compared too.
  std::optional<StartPoint> start;
  // Where the corpus is, instead of where the run's folder says.
  std::optional<CorpusLocation> corpus;
  MemoryChoices memory;
  std::string spill_folder;
};

struct ReplayHooks {
  std::function<bool()> interrupted;
  std::function<void(const StartPoint& start)> started;
  // After each step. `difference` is null if it agrees with its record; otherwise the replay ends
  // here. `state` is that after the step, for whoever wants to save it. An error keeps the replay
  // from going on; it does not take back a mismatch.
  std::function<absl::Status(const StepResult& result, const audit::Difference* difference,
                             TrainState& state)>
      stepped;
  // Once interrupted, before the replay ends: the state is that after the last whole step (or the
  // start), for whoever wants to go on from there another time.
  std::function<void(TrainState& state)> canceled;
};

struct ReplayReport {
  audit::Verdict verdict = audit::Verdict::kInconclusive;
  uint64_t matched = 0;  // steps that agree
  StartPoint start;
  std::optional<audit::Difference> difference;  // of a mismatch
  absl::Status reason;                          // of an inconclusive one
};

// published: the records of the steps from the start on, up to the end at least, chain unbroken
// (audit/step_log.h). A checkpoint that is not the state that its record in `published` commits to
// is a mismatch, too: of the field that differs, with the step before. Whatever keeps the replay
// from its end makes it inconclusive.
ReplayReport Replay(Backend& backend, const RunFolder& run,
                    const std::vector<audit::StepRecord>& published, const ReplayOptions& options,
                    const ReplayHooks& hooks);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_REPLAY_H_
