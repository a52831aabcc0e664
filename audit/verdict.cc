// SPDX-License-Identifier: Apache-2.0
//
// Records compared field by field, leaves one by one.
#include "audit/verdict.h"

#include <bit>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep::audit {
namespace {

// The first difference, as the fields go by.
class Comparison {
 public:
  explicit Comparison(uint64_t step) : step_(step) {}

  void Field(absl::string_view name, const Digest& a, const Digest& b) {
    Text(name, a.ToHex(), b.ToHex());
  }
  void Field(absl::string_view name, uint64_t a, uint64_t b) {
    Text(name, absl::StrCat(a), absl::StrCat(b));
  }
  void Field(absl::string_view name, float a, float b) {
    const auto text = [](float x) {
      return absl::StrFormat("%.9g (0x%08x)", x, std::bit_cast<uint32_t>(x));
    };
    Text(name, text(a), text(b));
  }
  std::optional<Difference> Take() { return std::move(difference_); }

 private:
  void Text(absl::string_view name, std::string expected, std::string found) {
    if (difference_ || expected == found) return;
    difference_ = {.step = step_,
                   .field = std::string(name),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .place = ""};
  }

  uint64_t step_;
  std::optional<Difference> difference_;
};

std::string TensorPlace(const TensorTable& tensors, const std::vector<Digest>& a,
                        const std::vector<Digest>& b) {
  if (a.size() != b.size() || static_cast<int64_t>(a.size()) != tensors.chunks()) return "";
  const std::optional<int64_t> leaf = FirstDifference(a, b);
  if (!leaf) return "";
  const TensorTable::Place place = tensors.PlaceOfLeaf(*leaf);
  const TensorInfo& tensor = tensors.tensors()[place.tensor];
  return absl::StrCat("tensor ", tensor.name, ", chunk ", place.chunk, " of ",
                      ChunksOf(tensor.elements));
}

// Within a micro-batch, in the order of its passes: forward from the first layer up, losses, back
// from the last layer down.
std::string LeafPlace(const TranscriptLeaf& a, const TranscriptLeaf& b) {
  const auto boundary = [&](size_t l) {
    return l + 1 == a.residual.size() ? std::string("after the last layer")
                                      : absl::StrCat("before layer ", l);
  };
  for (size_t l = 0; l < a.residual.size(); ++l) {
    if (a.residual[l] != b.residual[l]) return absl::StrCat("residual stream ", boundary(l));
  }
  if (a.losses != b.losses || a.z_losses != b.z_losses) return "losses";
  for (size_t l = a.dresidual.size(); l-- > 0;) {
    if (a.dresidual[l] != b.dresidual[l]) {
      return absl::StrCat("gradient of the residual stream ", boundary(l));
    }
  }
  return "";
}

std::string TranscriptPlace(const std::vector<TranscriptLeaf>& a,
                            const std::vector<TranscriptLeaf>& b) {
  if (a.size() != b.size()) {
    return absl::StrCat(a.size(), " micro-batches published, ", b.size(), " replayed");
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (a[i].rank != b[i].rank || a[i].micro_batch != b[i].micro_batch ||
        a[i].residual.size() != b[i].residual.size()) {
      return absl::StrCat("leaf ", i, " is of another micro-batch or model");
    }
    return absl::StrCat("rank ", a[i].rank, ", micro-batch ", a[i].micro_batch, ", ",
                        LeafPlace(a[i], b[i]));
  }
  return "";
}

}  // namespace

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kMatch:
      return "match";
    case Verdict::kMismatch:
      return "mismatch";
    case Verdict::kInconclusive:
      return "inconclusive";
  }
  return "";
}

std::optional<Difference> CompareRecords(const StepRecord& a, const StepRecord& b) {
  Comparison compare(a.step);
  compare.Field("step", a.step, b.step);
  compare.Field("previous_chain", a.previous_chain, b.previous_chain);
  compare.Field("tokens_before", a.tokens_before, b.tokens_before);
  compare.Field("tokens", a.tokens, b.tokens);
  compare.Field("windows", a.windows, b.windows);
  compare.Field("cursor", a.cursor, b.cursor);
  compare.Field("transcript", a.transcript, b.transcript);
  compare.Field("loss", a.loss, b.loss);
  compare.Field("z_loss", a.z_loss, b.z_loss);
  compare.Field("gradient_norm", a.gradient_norm, b.gradient_norm);
  compare.Field("gradient", a.gradient, b.gradient);
  compare.Field("outcome", static_cast<uint64_t>(a.outcome), static_cast<uint64_t>(b.outcome));
  compare.Field("spike.skips_left", uint64_t{a.spike.skips_left}, uint64_t{b.spike.skips_left});
  compare.Field("spike.events", uint64_t{a.spike.events}, uint64_t{b.spike.events});
  compare.Field("spike.events_since", a.spike.events_since, b.spike.events_since);
  compare.Field("learning_rate", a.learning_rate, b.learning_rate);
  compare.Field("updates", a.updates, b.updates);
  compare.Field("parameters", a.parameters, b.parameters);
  compare.Field("first_moment", a.first_moment, b.first_moment);
  compare.Field("second_moment", a.second_moment, b.second_moment);
  return compare.Take();
}

void LocateDifference(const TensorTable& tensors, const StepLeaves& published,
                      const StepLeaves& replayed, Difference* difference) {
  const std::string& field = difference->field;
  std::string& place = difference->place;
  if (field == "transcript" || field == "loss" || field == "z_loss") {
    place = TranscriptPlace(published.transcript, replayed.transcript);
  } else if (field == "gradient" || field == "gradient_norm") {
    place = TensorPlace(tensors, published.gradient, replayed.gradient);
  } else if (field == "parameters") {
    place = TensorPlace(tensors, published.parameters, replayed.parameters);
  } else if (field == "first_moment") {
    place = TensorPlace(tensors, published.first_moment, replayed.first_moment);
  } else if (field == "second_moment") {
    place = TensorPlace(tensors, published.second_moment, replayed.second_moment);
  }
}

}  // namespace lockstep::audit
