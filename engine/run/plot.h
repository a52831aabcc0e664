// SPDX-License-Identifier: Apache-2.0
//
// Runs as a picture: loss, gradient norm and learning rate against consumed tokens, from their step
// records, in one SVG file that needs nothing else.
#ifndef LOCKSTEP_ENGINE_RUN_PLOT_H_
#define LOCKSTEP_ENGINE_RUN_PLOT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "audit/step_record.h"

namespace lockstep::engine {

struct PlotRun {
  std::string label;  // any bytes
  std::vector<audit::StepRecord> records;
};

// An SVG document: UTF-8, well-formed, the same bytes for the same runs. Loss: each step faintly,
// and the mean over the last RunningMeanSteps. Gradient norm: logarithmic, steps marked whose
// update was skipped. What is not finite has no point; a line with more points than the picture has
// columns keeps the extremes of each.
std::string PlotRuns(const std::vector<PlotRun>& runs);

// Steps that the running mean is over: a hundredth of the run, one at least.
int64_t RunningMeanSteps(int64_t steps);

// Round numbers (1, 2, 5 times a power of ten apart) that cover low to high, about `count` of them.
// low < high, both finite.
std::vector<double> NiceTicks(double low, double high, int count);

// As the text of an XML element or attribute: markup escaped, what XML cannot hold replaced.
std::string XmlText(absl::string_view bytes);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_RUN_PLOT_H_
