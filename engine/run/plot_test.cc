// SPDX-License-Identifier: Apache-2.0
//
// Plots: their axes, what is drawn of which step, and that hostile labels stay text. That they are
// well-formed XML is tested with a parser in tests/run_tools_test.py.
#include "engine/run/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<audit::StepRecord> Records(int64_t steps) {
  std::vector<audit::StepRecord> records(steps);
  for (int64_t s = 0; s < steps; ++s) {
    records[s].step = s;
    records[s].tokens_before = s * 1000;
    records[s].tokens = 1000;
    records[s].loss = 8.0f - 0.001f * static_cast<float>(s);
    records[s].gradient_norm = 1.0f + 0.5f * static_cast<float>(s % 3);
    records[s].learning_rate = 1e-3f;
  }
  return records;
}

int64_t Count(const std::string& text, const std::string& part) {
  return static_cast<int64_t>(std::vector<std::string>(absl::StrSplit(text, part)).size()) - 1;
}

std::vector<std::string> Lines(const std::string& text) { return absl::StrSplit(text, '\n'); }

int64_t PointsMax(const std::string& svg) {
  int64_t most = 0;
  for (const std::string& line : Lines(svg)) {
    if (!line.starts_with("<polyline")) continue;
    most = std::max<int64_t>(most, std::count(line.begin(), line.end(), ','));
  }
  return most;
}

TEST(NiceTicks, AreRoundAndCoverTheRange) {
  EXPECT_THAT(NiceTicks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(NiceTicks(2.13, 8.37, 6), ElementsAre(2, 4, 6, 8, 10));
  EXPECT_THAT(NiceTicks(-0.5, 0.5, 4), ElementsAre(-0.5, 0, 0.5));
  EXPECT_THAT(NiceTicks(0, 0.003, 3), ElementsAre(0, 0.001, 0.002, 0.003));
  for (double high = 1e-7; high < 1e13; high *= 1.7) {
    const std::vector<double> ticks = NiceTicks(high / 3, high, 6);
    EXPECT_LE(ticks.front(), high / 3 * (1 + 1e-6)) << high;
    EXPECT_GE(ticks.back(), high * (1 - 1e-6)) << high;
    EXPECT_GE(ticks.size(), 3u) << high;
    EXPECT_LE(ticks.size(), 9u) << high;
  }
}

TEST(RunningMeanSteps, IsAHundredthOfTheRun) {
  EXPECT_EQ(RunningMeanSteps(0), 1);
  EXPECT_EQ(RunningMeanSteps(199), 1);
  EXPECT_EQ(RunningMeanSteps(200), 2);
  EXPECT_EQ(RunningMeanSteps(1500), 15);
}

TEST(XmlText, EscapesMarkupAndReplacesWhatXmlCannotHold) {
  EXPECT_EQ(XmlText("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&apos;");
  EXPECT_EQ(XmlText("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(XmlText(absl::string_view("\0\x1b[1m\n", 6)),
            "\xef\xbf\xbd\xef\xbf\xbd[1m\xef\xbf\xbd");
  EXPECT_EQ(XmlText("\xff"), "\xef\xbf\xbd");
  EXPECT_EQ(XmlText("\xef\xbf\xbf"), "\xef\xbf\xbd");
}

TEST(PlotRuns, DrawsEachPanelForEachRun) {
  const std::string svg = PlotRuns({{"first", Records(40)}, {"second", Records(30)}});
  EXPECT_THAT(svg, HasSubstr("first: 40 steps"));
  EXPECT_THAT(svg, HasSubstr("second: 30 steps"));
  EXPECT_EQ(Count(svg, "<polyline"), 6);  // three panels, two runs
  EXPECT_EQ(Count(svg, "class=\"title\""), 3);
  EXPECT_THAT(svg, Not(HasSubstr("class=\"skip\"")));
  EXPECT_EQ(svg, PlotRuns({{"first", Records(40)}, {"second", Records(30)}}));
}

TEST(PlotRuns, ALongRunHasEachStepFaintlyAndTheirMean) {
  const std::string svg = PlotRuns({{"long", Records(50'000)}});
  EXPECT_EQ(Count(svg, "<polyline"), 4);
  EXPECT_EQ(Count(svg, "stroke-opacity:0.30"), 1);
  EXPECT_LE(PointsMax(svg), 4 * 2 * 960);
  EXPECT_LT(svg.size(), size_t{400'000});
}

// The mean over all steps of a flat stretch is its value: the mean's line lies on the steps' line.
TEST(PlotRuns, TheMeanOfWhatDoesNotChangeIsItself) {
  std::vector<audit::StepRecord> records = Records(400);
  for (audit::StepRecord& record : records) record.loss = 4;
  const std::string svg = PlotRuns({{"flat", records}});
  const std::vector<std::string> parts = absl::StrSplit(svg, "<polyline points=\"");
  ASSERT_EQ(parts.size(), 5u);
  const auto points = [](const std::string& part) { return part.substr(0, part.find('"')); };
  EXPECT_EQ(points(parts[1]), points(parts[2]));
}

TEST(PlotRuns, SkippedStepsAreMarkedAndWhatIsNotFiniteHasNoPoint) {
  std::vector<audit::StepRecord> records = Records(20);
  records[5].outcome = audit::StepOutcome::kSkippedSpike;
  records[5].gradient_norm = 80;
  records[6].outcome = audit::StepOutcome::kSkippedNonFinite;
  records[6].gradient_norm = std::numeric_limits<float>::quiet_NaN();
  records[6].loss = std::numeric_limits<float>::infinity();
  const std::string svg = PlotRuns({{"spiky", records}});
  EXPECT_EQ(Count(svg, "class=\"skip\""), 3);  // two, and the legend's
  EXPECT_THAT(svg, HasSubstr("<title>step 5: update skipped, norm 80</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>step 6: update skipped, norm nan</title>"));
  for (const std::string& line : Lines(svg)) {
    if (!line.starts_with("<polyline") && !line.starts_with("<line")) continue;
    EXPECT_THAT(line, Not(HasSubstr("nan")));
    EXPECT_THAT(line, Not(HasSubstr("inf")));
  }
}

TEST(PlotRuns, StandsWithoutRecordsAndWithOne) {
  for (const int64_t steps : {0, 1}) {
    const std::string svg = PlotRuns({{"short", Records(steps)}});
    EXPECT_THAT(svg, Not(HasSubstr("nan"))) << steps;
    EXPECT_THAT(svg, Not(HasSubstr("inf"))) << steps;
  }
  EXPECT_THAT(PlotRuns({}), HasSubstr("</svg>"));
}

TEST(PlotRuns, LabelsStayText) {
  const std::string svg = PlotRuns({{"</text><script>alert(1)</script>", Records(3)}});
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;"));
}

}  // namespace
}  // namespace lockstep::engine
