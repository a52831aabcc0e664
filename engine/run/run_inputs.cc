// SPDX-License-Identifier: Apache-2.0
//
// Data and starting states of a run.
#include "engine/run/run_inputs.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "audit/checkpoint_manifest.h"
#include "base/status.h"
#include "engine/data/open_corpus.h"
#include "engine/step_batch.h"

namespace lockstep::engine {

absl::StatusOr<StepReader> OpenRunData(const RunFolder& run,
                                       const std::optional<CorpusLocation>& corpus_at) {
  const audit::RunManifest& manifest = run.manifest();
  CorpusLocation location = corpus_at.value_or(CorpusLocation{.places = run.places().corpus});
  location.manifest = manifest.corpus;
  if (location.places.empty()) {
    return absl::NotFoundError(absl::StrCat(run.path(), "/places.json: expected where the corpus ",
                                            manifest.corpus.ToHex(), " lies"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<const CorpusReader> corpus, OpenCorpus(location),
                            "corpus");
  if (static_cast<int64_t>(corpus->manifest().vocab_size) > manifest.model.vocab) {
    return absl::FailedPreconditionError(
        absl::StrCat("corpus: expected token ids below the model's vocabulary of ",
                     manifest.model.vocab, "; its tokenizer has ", corpus->manifest().vocab_size));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(BatchSchedule schedule, ScheduleOf(manifest));
  return StepReader::Open(corpus, manifest.seed, std::move(schedule));
}

absl::StatusOr<audit::ParentSegment> ParentAt(const RunFolder& parent, uint64_t step) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<uint64_t> checkpoints, parent.Checkpoints());
  if (!std::binary_search(checkpoints.begin(), checkpoints.end(), step)) {
    return absl::NotFoundError(absl::StrCat(parent.path(), ": expected a checkpoint before step ",
                                            step, "; there are those before ",
                                            absl::StrJoin(checkpoints, ", ")));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::CheckpointManifest checkpoint,
                            ReadCheckpointManifest(parent.CheckpointPath(step)));
  return audit::ParentSegment{.run_id = parent.run_id(),
                              .step = static_cast<int64_t>(checkpoint.next_step()),
                              .tokens = static_cast<int64_t>(checkpoint.tokens()),
                              .chain = checkpoint.chain()};
}

absl::StatusOr<StartPoint> FindStart(const RunFolder& run, uint64_t step) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<uint64_t> checkpoints, run.Checkpoints());
  const auto after = std::upper_bound(checkpoints.begin(), checkpoints.end(), step);
  if (after != checkpoints.begin()) {
    return StartPoint{.step = *std::prev(after),
                      .checkpoint = run.CheckpointPath(*std::prev(after))};
  }
  if (!run.manifest().parent) return StartPoint{};
  const auto at = static_cast<uint64_t>(run.manifest().parent->step);
  if (step < at) {
    return absl::OutOfRangeError(absl::StrCat("step ", step,
                                              " is before this segment, which begins "
                                              "at step ",
                                              at, "; ask its parent's run"));
  }
  if (run.places().parent.empty()) {
    return absl::NotFoundError(
        absl::StrCat(run.path(),
                     "/places.json: expected \"parent\", the folder of the run whose state before "
                     "step ",
                     at, " this one begins with"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const RunFolder parent, RunFolder::Open(run.places().parent));
  return StartPoint{.step = at, .checkpoint = parent.CheckpointPath(at)};
}

absl::Status LoadStart(Backend& backend, const RunFolder& run, const StartPoint& start,
                       TrainState& state, StepReader& data, BytesHook read) {
  if (start.checkpoint.empty()) return state.Initialize(run.manifest(), data.cursor());
  LOCKSTEP_RETURN_IF_ERROR(LoadCheckpoint(backend, run.manifest(), start.checkpoint, state, read));
  if (state.step != start.step) {
    return absl::DataLossError(absl::StrCat(start.checkpoint, ": expected the state before step ",
                                            start.step, "; found that before step ", state.step));
  }
  return WithContext(data.Resume(state.step, state.cursor), start.checkpoint);
}

}  // namespace lockstep::engine
