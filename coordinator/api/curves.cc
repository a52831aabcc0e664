// SPDX-License-Identifier: Apache-2.0
//
// See curves.h.

#include "coordinator/api/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "base/status.h"
#include "coordinator/core/json_writer.h"
#include "coordinator/views/runs.h"

namespace lockstep::coordinator {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kMarkedMax = 1000;

using Points = std::span<const StepPoint>;

// Of one curve, over the finite values of each bucket; NaN where there is none.
struct Buckets {
  std::vector<double> min, max, mean;
};

Buckets Reduce(Points points, uint64_t per_bucket, float StepPoint::*field) {
  Buckets buckets;
  for (size_t first = 0; first < points.size(); first += per_bucket) {
    const Points bucket =
        points.subspan(first, std::min<size_t>(per_bucket, points.size() - first));
    double least = kNone, most = kNone, sum = 0;
    uint64_t count = 0;
    for (const StepPoint& point : bucket) {
      const double value = point.*field;
      if (!std::isfinite(value)) continue;
      least = count == 0 ? value : std::min(least, value);
      most = count == 0 ? value : std::max(most, value);
      sum += value;
      ++count;
    }
    buckets.min.push_back(least);
    buckets.max.push_back(most);
    buckets.mean.push_back(count == 0 ? kNone : sum / static_cast<double>(count));
  }
  return buckets;
}

void WriteNumbers(absl::string_view name, const std::vector<double>& values, JsonWriter& json) {
  json.ArrayField(name);
  for (const double value : values) json.Finite(value);
  json.EndArray();
}

void WriteRange(absl::string_view name, const Buckets& buckets, JsonWriter& json) {
  json.ObjectField(name);
  WriteNumbers("min", buckets.min, json);
  WriteNumbers("max", buckets.max, json);
  WriteNumbers("mean", buckets.mean, json);
  json.EndObject();
}

// The steps whose update was skipped, of one outcome or of all.
void WriteMarked(absl::string_view name, absl::string_view count_name, Points points,
                 uint64_t begin, bool spikes, JsonWriter& json) {
  uint64_t count = 0;
  json.ArrayField(name);
  for (size_t i = 0; i < points.size(); ++i) {
    const audit::StepOutcome outcome = points[i].outcome;
    const bool marked = spikes ? outcome == audit::StepOutcome::kSkippedSpike
                               : outcome != audit::StepOutcome::kUpdated;
    if (!marked || ++count > kMarkedMax) continue;
    json.BeginObject();
    json.Field("step", begin + i);
    json.Field("outcome", static_cast<int>(outcome));
    json.EndObject();
  }
  json.EndArray();
  json.Field(count_name, count);
}

// Of states within [begin, end]: each file of texts a set of its own, and all together where there
// are several.
void WriteHeldOut(const std::vector<audit::EvaluationFacts>& evaluations, JsonWriter& json) {
  json.ArrayField("held_out");
  for (const audit::EvaluationFacts& facts : evaluations) {
    const audit::Evaluation& evaluation = facts.evaluation;
    const auto write = [&](absl::string_view set, const audit::Evaluation& part) {
      json.BeginObject();
      json.Field("step", evaluation.next_step);
      json.Field("set", set);
      json.Key("nats_per_token");
      json.Finite(NatsPerToken(part));
      json.Key("bits_per_byte");
      json.Finite(BitsPerByte(part));
      json.Field("log_index", facts.log_index);
      json.EndObject();
    };
    for (const audit::HeldOutFile& file : evaluation.files) {
      audit::Evaluation part = evaluation;
      part.files = {file};
      write(file.name, part);
    }
    if (evaluation.files.size() > 1) write("all", evaluation);
  }
  json.EndArray();
}

}  // namespace

absl::StatusOr<std::string> CurvesJson(const Coordinator& coordinator, const Digest& run_id,
                                       const CurveQuery& query) {
  absl::Status status;
  uint64_t begin = 0, end = 0;
  std::vector<StepPoint> points;
  std::vector<audit::EvaluationFacts> evaluations;
  coordinator.Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
    const audit::RunLedger* run = ledger.FindRun(run_id);
    if (run == nullptr) {
      status = RunUnknown();
      return;
    }
    const std::vector<StepPoint>& all = tallies.run(tallies.PlaceOf(run_id)).points;
    const uint64_t first = run->first_step();
    end = std::clamp(query.end, first, first + all.size());
    begin = std::clamp(query.begin, first, end);
    points.assign(all.begin() + static_cast<ptrdiff_t>(begin - first),
                  all.begin() + static_cast<ptrdiff_t>(end - first));
    for (const audit::EvaluationFacts& facts : run->evaluations()) {
      const uint64_t step = facts.evaluation.next_step;
      if (step >= begin && step <= end) evaluations.push_back(facts);
    }
  });
  LOCKSTEP_RETURN_IF_ERROR(status);
  const uint64_t per_bucket =
      std::max<uint64_t>((points.size() + query.buckets - 1) / query.buckets, 1);
  JsonWriter json;
  json.BeginObject();
  json.Field("begin", begin);
  json.Field("end", end);
  json.Field("bucket_steps", per_bucket);
  json.ArrayField("step");
  std::vector<double> learning_rate;
  for (uint64_t i = 0; i < points.size(); i += per_bucket) {
    json.Value(begin + i);
    learning_rate.push_back(points[std::min(i + per_bucket, points.size()) - 1].learning_rate);
  }
  json.EndArray();
  WriteRange("loss", Reduce(points, per_bucket, &StepPoint::loss), json);
  WriteRange("gradient_norm", Reduce(points, per_bucket, &StepPoint::gradient_norm), json);
  json.ObjectField("learning_rate");
  WriteNumbers("last", learning_rate, json);
  json.EndObject();
  json.ObjectField("z_loss");
  WriteNumbers("mean", Reduce(points, per_bucket, &StepPoint::z_loss).mean, json);
  json.EndObject();
  WriteMarked("skipped", "skipped_count", points, begin, false, json);
  WriteMarked("spikes", "spike_count", points, begin, true, json);
  WriteHeldOut(evaluations, json);
  json.EndObject();
  return json.Take();
}

}  // namespace lockstep::coordinator
