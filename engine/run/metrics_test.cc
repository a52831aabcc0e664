// SPDX-License-Identifier: Apache-2.0
//
// metrics.jsonl: a line a step that reads as JSON whatever the numbers are, appended to what is
// there; and the norms in it. A whole run's is looked at in tests/run_tools_test.py.
#include "engine/run/metrics.h"

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "engine/backend/cpu_backend.h"
#include "engine/run/weight_norms.h"
#include "engine/testing/golden_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {
namespace {

using Json = nlohmann::json;

class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest()
      : golden_(*backend_),
        run_(*RunFolder::Create(folder_ / "run", golden_.manifest(), RunPlaces{})) {}

  std::vector<Json> Lines() const {
    std::vector<Json> lines;
    const std::string text = ReadBytes(run_.MetricsPath());
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      lines.push_back(Json::parse(std::string(line)));
    }
    return lines;
  }

  TemporaryFolder folder_;
  const std::unique_ptr<Backend> backend_ = *CreateCpuBackend(2);
  golden::GoldenRun golden_;
  const RunFolder run_;
};

TEST_F(MetricsTest, ALineAStepAppended) {
  StepResult first = golden_.Step();
  {
    auto writer = MetricsWriter::Open(*backend_, run_);
    ASSERT_THAT(writer, IsOk());
    ASSERT_THAT(writer->Write(first, golden_.state(), false), IsOk());
  }
  auto writer = MetricsWriter::Open(*backend_, run_);
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(writer->Write(first, golden_.state(), true), IsOk());
  const StepResult second = golden_.Step();
  ASSERT_THAT(writer->Write(second, golden_.state(), false), IsOk());

  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["step"], 0);
  EXPECT_FALSE(lines[0].contains("repeated"));
  EXPECT_EQ(lines[1]["step"], 0);
  EXPECT_EQ(lines[1]["repeated"], true);
  EXPECT_EQ(lines[2]["step"], 1);
  EXPECT_EQ(lines[2]["tokens"], 2048);
  EXPECT_EQ(lines[2]["chain"], second.chain.ToHex());
  // All binary32 digits are there.
  EXPECT_EQ(lines[2]["loss"].get<float>(), second.record.loss);
  EXPECT_EQ(lines[2]["gradient_norm"].get<float>(), second.record.gradient_norm);
  EXPECT_EQ(lines[0]["tensors"].size(), static_cast<size_t>(golden_.step().layout().tensors()));
  EXPECT_FALSE(lines[2].contains("tensors"));
}

TEST_F(MetricsTest, WhatIsNotFiniteIsNull) {
  StepResult result = golden_.Step();
  result.record.loss = std::numeric_limits<float>::quiet_NaN();
  result.record.gradient_norm = std::numeric_limits<float>::infinity();
  result.record.outcome = audit::StepOutcome::kSkippedNonFinite;
  auto writer = MetricsWriter::Open(*backend_, run_);
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(writer->Write(result, golden_.state(), false), IsOk());
  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0]["loss"].is_null());
  EXPECT_TRUE(lines[0]["gradient_norm"].is_null());
  EXPECT_EQ(lines[0]["outcome"], "skipped: not finite");
}

TEST_F(MetricsTest, AFullDiskIsAnError) {
  const StepResult result = golden_.Step();
  auto writer = MetricsWriter::Open(*backend_, run_);
  ASSERT_THAT(writer, IsOk());
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small = {.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = writer->Write(result, golden_.state(), false);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(run_.MetricsPath()));
}

TEST_F(MetricsTest, WeightNormsAreEuclidean) {
  golden_.Step();
  const TrainState& state = golden_.state();
  const ParameterLayout& layout = golden_.step().layout();
  const auto norms = WeightNorms(*backend_, state);
  ASSERT_THAT(norms, IsOk());
  ASSERT_EQ(norms->size(), static_cast<size_t>(layout.tensors()));
  for (int64_t t = 0; t < layout.tensors(); ++t) {
    double squares = 0;
    for (int64_t i = 0; i < layout.elements(t); ++i) {
      const double value = kernels::ToFloat(state.working()[layout.offset(t) + i]);
      squares += value * value;
    }
    EXPECT_NEAR((*norms)[t], std::sqrt(squares), 1e-6 * std::sqrt(squares)) << t;
  }
}

}  // namespace
}  // namespace lockstep::engine
