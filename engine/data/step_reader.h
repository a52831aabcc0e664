// SPDX-License-Identifier: Apache-2.0
//
// The data of training steps, for the trainer and for the auditor alike: open a corpus with a
// run's seed and schedule, go to a step, take its windows. A stream (stream.h) and a schedule
// (schedule.h) put together; which rank computes what is the caller's.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(StepReader data, StepReader::Open(corpus, seed, schedule));
//   LOCKSTEP_RETURN_IF_ERROR(data.Resume(state.step, state.cursor));
//   LOCKSTEP_ASSIGN_OR_RETURN(const Step step, data.Next());
//   for (uint64_t m = rank; m < step.windows(); m += ranks) data.ReadWindow(step, m, tokens);
//   // step.after is the cursor of the state after the step, CursorDigest(step.after) its digest.
#ifndef LOCKSTEP_ENGINE_DATA_STEP_READER_H_
#define LOCKSTEP_ENGINE_DATA_STEP_READER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/data/cursor.h"
#include "engine/data/schedule.h"
#include "engine/data/shard_reader.h"
#include "engine/data/stream.h"

namespace lockstep::engine {

// What a step consumes: its windows' documents, and the stream before and after. No tokens.
struct Step {
  uint64_t step = 0;
  StepWindows range;
  StreamCursor before;
  StreamCursor after;
  std::vector<TokenSpan> spans;  // of all windows, one after another
  std::vector<uint64_t> starts;  // [windows() + 1]: where each window's begin

  uint64_t windows() const { return range.end - range.begin; }
  // The documents behind the step's window m, in order; m < windows().
  std::span<const TokenSpan> Trace(uint64_t m) const {
    return std::span(spans).subspan(starts[m], starts[m + 1] - starts[m]);
  }
};

// Not for several threads at once, but for ReadWindow.
class StepReader {
 public:
  // Stands before the schedule's first step, which is the run's first (a schedule that starts
  // elsewhere needs Resume first: FailedPrecondition until then). The sequence length is the
  // schedule's. Errors of Stream::Open.
  static absl::StatusOr<StepReader> Open(std::shared_ptr<const CorpusReader> corpus, uint64_t seed,
                                         BatchSchedule schedule);

  uint64_t step() const { return step_; }  // the next one
  const StreamCursor& cursor() const { return stream_.cursor(); }
  const BatchSchedule& schedule() const { return schedule_; }
  const CorpusReader& corpus() const { return stream_.corpus(); }
  uint64_t window_tokens() const { return stream_.window_tokens(); }  // seq_len + 1

  // To `step`, whose state has this cursor, on any number of ranks. FailedPrecondition if the
  // cursor is another step's; errors of Stream::Seek. After an error nothing has moved.
  absl::Status Resume(uint64_t step, const StreamCursor& cursor);

  // To a later step (or the run's end), by look-ups of indices alone. Hooks as for WalkTo.
  absl::Status SkipTo(uint64_t step, absl::FunctionRef<void(int64_t windows)> progress,
                      absl::FunctionRef<bool()> interrupted);

  // The next step. OutOfRange at the end of the run. After an error the reader is where it was, and
  // the call may be made again.
  absl::StatusOr<Step> Next();

  // Tokens of the step's window m, m < step.windows(): inputs are out[0 ... seq_len - 1], labels
  // out[1 ... seq_len]. out: [window_tokens()]. Any thread, at any time.
  absl::Status ReadWindow(const Step& step, uint64_t m, std::span<int32_t> out) const;

 private:
  StepReader(Stream stream, BatchSchedule schedule);

  Stream stream_;
  BatchSchedule schedule_;
  uint64_t step_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_STEP_READER_H_
