// SPDX-License-Identifier: Apache-2.0
//
// What is written of each step. Weight norms cost a pass over the parameters and are taken every
// kNormsEvery steps.
#include "engine/run/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "engine/run/weight_norms.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {
namespace {

constexpr uint64_t kNormsEvery = 20;

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

absl::string_view OutcomeName(audit::StepOutcome outcome) {
  switch (outcome) {
    case audit::StepOutcome::kUpdated:
      return "updated";
    case audit::StepOutcome::kSkippedNonFinite:
      return "skipped: not finite";
    case audit::StepOutcome::kSkippedSpike:
      return "skipped: spike";
    case audit::StepOutcome::kSkippedAfterSpike:
      return "skipped: after a spike";
  }
  return "";
}

}  // namespace

absl::StatusOr<MetricsWriter> MetricsWriter::Open(Backend& backend, const RunFolder& run) {
  MetricsWriter writer(backend);
  writer.path_ = run.MetricsPath();
  writer.fd_ = open(writer.path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (writer.fd_ < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", writer.path_));
  LOCKSTEP_ASSIGN_OR_RETURN(writer.events_, TensorBoardWriter::Create(run.path(), WallSeconds()));
  return writer;
}

MetricsWriter::~MetricsWriter() {
  if (fd_ >= 0) close(fd_);
}
MetricsWriter::MetricsWriter(MetricsWriter&& other) noexcept { *this = std::move(other); }
MetricsWriter& MetricsWriter::operator=(MetricsWriter&& other) noexcept {
  std::swap(backend_, other.backend_);
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(events_, other.events_);
  std::swap(weight_norms_, other.weight_norms_);
  return *this;
}

absl::Status MetricsWriter::Write(const StepResult& result, const TrainState& state,
                                  bool repeated) {
  const audit::StepRecord& record = result.record;
  const auto step = static_cast<int64_t>(record.step);
  const double now = WallSeconds();
  const double seconds = result.times.total();
  const double tokens_per_second = seconds > 0 ? static_cast<double>(record.tokens) / seconds : 0;
  nlohmann::json line = {{"step", record.step},
                         {"tokens", record.tokens_before + record.tokens},
                         {"loss", record.loss},
                         {"z_loss", record.z_loss},
                         {"gradient_norm", record.gradient_norm},
                         {"learning_rate", record.learning_rate},
                         {"outcome", OutcomeName(record.outcome)},
                         {"chain", result.chain.ToHex()},
                         {"seconds", seconds},
                         {"hash_seconds", result.times.hash},
                         {"tokens_per_second", tokens_per_second},
                         {"wall_seconds", now}};
  if (repeated) line["repeated"] = true;
  for (const auto& [tag, value] :
       {std::pair{"train/loss", record.loss}, std::pair{"train/z_loss", record.z_loss},
        std::pair{"train/gradient_norm", record.gradient_norm},
        std::pair{"train/learning_rate", record.learning_rate}}) {
    events_->AddScalar(tag, step, now, value);
  }
  events_->AddScalar("speed/tokens_per_second", step, now, static_cast<float>(tokens_per_second));

  if (record.step % kNormsEvery == 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<double> norms, WeightNorms(*backend_, state));
    nlohmann::json tensors;
    for (size_t t = 0; t < norms.size(); ++t) {
      const std::string& name = state.layout().table().tensors()[t].name;
      const double gradient = std::sqrt(result.gradient_squares[t]);
      tensors[name] = {{"gradient_norm", gradient}, {"weight_norm", norms[t]}};
      events_->AddScalar("gradient_norm/" + name, step, now, static_cast<float>(gradient));
      events_->AddScalar("weight_norm/" + name, step, now, static_cast<float>(norms[t]));
      if (weight_norms_.empty() || weight_norms_[t] == 0) continue;
      // The paper's section 3.4.3: the change of the norm in a step, relative to it.
      const double rate =
          (norms[t] - weight_norms_[t]) / weight_norms_[t] / static_cast<double>(kNormsEvery);
      tensors[name]["update_rate"] = rate;
      events_->AddScalar("update_rate/" + name, step, now, static_cast<float>(rate));
    }
    line["tensors"] = std::move(tensors);
    weight_norms_ = std::move(norms);
  }

  // NaN and Inf have no form in JSON: nlohmann writes null.
  const std::string text = line.dump() + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t put = write(fd_, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return absl::ErrnoToStatus(errno, absl::StrCat("append to ", path_));
    done += put;
  }
  return events_->Flush();
}

}  // namespace lockstep::engine
