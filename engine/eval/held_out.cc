// SPDX-License-Identifier: Apache-2.0
//
// One stream, cut into batches as it grows.
#include "engine/eval/held_out.h"

#include <algorithm>
#include <numbers>

#include "base/status.h"
#include "kernels/cross_entropy/cross_entropy.h"

namespace lockstep::engine {
namespace {

class Stream {
 public:
  Stream(LossSource& model, int32_t separator, const EvalHooks& hooks, HeldOutResult* result)
      : model_(model), separator_(separator), hooks_(hooks), result_(*result) {
    tokens_.push_back(separator);
  }

  absl::Status Append(const std::vector<int32_t>& ids) {
    tokens_.insert(tokens_.end(), ids.begin(), ids.end());
    tokens_.push_back(separator_);
    const int64_t batch = model_.batch_windows() * model_.seq_len();
    size_t begin = 0;
    while (static_cast<int64_t>(tokens_.size() - begin) > batch) {
      LOCKSTEP_RETURN_IF_ERROR(Batch(begin, batch));
      begin += batch;
    }
    tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<int64_t>(begin));
    return absl::OkStatus();
  }

  absl::Status Finish() {
    const auto targets = static_cast<int64_t>(tokens_.size()) - 1;
    return targets > 0 ? Batch(0, targets) : absl::OkStatus();
  }

 private:
  // The targets of tokens_[begin, begin + count), which are those after them.
  absl::Status Batch(size_t begin, int64_t count) {
    LOCKSTEP_RETURN_IF_ERROR(hooks_.CheckInterrupted());
    const int64_t length = model_.seq_len();
    const int64_t padded = (count + length - 1) / length * length;
    std::vector<int32_t> inputs(padded, separator_);
    std::vector<int32_t> targets(padded, kernels::kIgnoredTarget);
    const auto from = tokens_.begin() + static_cast<int64_t>(begin);
    std::copy_n(from, count, inputs.begin());
    std::copy_n(from + 1, count, targets.begin());
    std::vector<float> losses(padded);
    LOCKSTEP_RETURN_IF_ERROR(model_.Losses(length, inputs, targets, losses));
    for (int64_t i = 0; i < count; ++i) result_.nats += losses[i];
    result_.tokens += count;
    return absl::OkStatus();
  }

  LossSource& model_;
  const int32_t separator_;
  const EvalHooks& hooks_;
  HeldOutResult& result_;
  std::vector<int32_t> tokens_;  // from the last one that was a target on
};

}  // namespace

double HeldOutResult::BitsPerByte() const {
  return nats / std::numbers::ln2 / static_cast<double>(bytes);
}

void HeldOutResult::Add(const HeldOutResult& other) {
  documents += other.documents;
  bytes += other.bytes;
  tokens += other.tokens;
  nats += other.nats;
}

absl::StatusOr<HeldOutResult> EvaluateHeldOut(LossSource& model, const Tokenizer& tokenizer,
                                              const std::vector<std::string>& texts,
                                              const EvalHooks& hooks) {
  HeldOutResult result;
  Stream stream(model, tokenizer.end_of_text(), hooks, &result);
  std::vector<int32_t> ids;
  for (const std::string& text : texts) {
    ids.clear();
    tokenizer.Encode(text, &ids);
    LOCKSTEP_RETURN_IF_ERROR(stream.Append(ids));
    ++result.documents;
    result.bytes += static_cast<int64_t>(text.size());
    hooks.Done(static_cast<int64_t>(text.size()));
  }
  LOCKSTEP_RETURN_IF_ERROR(stream.Finish());
  return result;
}

}  // namespace lockstep::engine
