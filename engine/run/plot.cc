// SPDX-License-Identifier: Apache-2.0
//
// Three panels, one above the other, with one axis of tokens.
#include "engine/run/plot.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {
namespace {

using audit::StepOutcome;
using audit::StepRecord;

// Told apart by those who do not see all colours, too, and dark enough for white.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#b8860b", "#3b9ad9", "#7f3c8d", "#4d4d4d"};
constexpr double kWidth = 960;
constexpr double kLeft = 76;
constexpr double kRight = kWidth - 24;
constexpr double kLegendRow = 20;
constexpr double kGap = 52;  // between panels, for a title and the tick labels above it

struct Point {
  double x = 0;
  double y = 0;
};

double TokensAfter(const StepRecord& record) {
  return static_cast<double>(record.tokens_before + record.tokens);
}

// A value's place on the picture.
struct Axis {
  double low = 0;
  double high = 1;
  double from = 0;  // where `low` is
  double to = 1;
  bool logarithmic = false;
  std::vector<double> ticks;

  double At(double value) const {
    const double share =
        logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + share * (to - from);
  }
};

Axis LinearAxis(double low, double high, int ticks) {
  if (!(low < high)) {
    const double margin = low == 0 ? 1 : std::abs(low) / 10;
    low -= margin;
    high += margin;
  }
  Axis axis;
  axis.ticks = NiceTicks(low, high, ticks);
  axis.low = axis.ticks.front();
  axis.high = axis.ticks.back();
  return axis;
}

// Powers of ten, with 2 and 5 of each where there are few.
Axis LogAxis(double low, double high) {
  Axis axis;
  axis.logarithmic = true;
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = std::max(static_cast<int>(std::ceil(std::log10(high))), first + 1);
  const int every = std::max(1, (last - first) / 8);
  for (int power = first; power <= last; power += every) {
    for (const int digit : {1, 2, 5}) {
      if (digit > 1 && (last - first > 2 || power == last)) break;
      axis.ticks.push_back(digit * std::pow(10.0, power));
    }
  }
  axis.low = axis.ticks.front();
  axis.high = std::max(axis.ticks.back(), std::pow(10.0, last));
  return axis;
}

// 0, 250k, 1.5M, 40B.
std::string TokenLabel(double tokens) {
  for (const auto& [unit, name] :
       {std::pair{1e12, "T"}, std::pair{1e9, "B"}, std::pair{1e6, "M"}, std::pair{1e3, "k"}}) {
    if (tokens >= unit) return absl::StrFormat("%.4g%s", tokens / unit, name);
  }
  return absl::StrFormat("%.4g", tokens);
}

std::string Line(double x1, double y1, double x2, double y2, absl::string_view kind) {
  return absl::StrFormat("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                         kind, x1, y1, x2, y2);
}

std::string Text(double x, double y, absl::string_view kind, absl::string_view text) {
  return absl::StrFormat("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", kind, x, y,
                         XmlText(text));
}

// First, least, greatest and last of each half unit of width, in their order.
std::vector<Point> Thinned(const std::vector<Point>& points) {
  std::vector<Point> kept;
  for (size_t begin = 0; begin < points.size();) {
    const double column = std::floor(points[begin].x * 2);
    size_t end = begin;
    size_t least = begin;
    size_t greatest = begin;
    for (; end < points.size() && std::floor(points[end].x * 2) == column; ++end) {
      if (points[end].y < points[least].y) least = end;
      if (points[end].y > points[greatest].y) greatest = end;
    }
    size_t at[] = {begin, least, greatest, end - 1};
    std::sort(std::begin(at), std::end(at));
    const auto* const last = std::unique(std::begin(at), std::end(at));
    for (const size_t* i = at; i != last; ++i) kept.push_back(points[*i]);
    begin = end;
  }
  return kept;
}

std::string Curve(const std::vector<Point>& points, absl::string_view style) {
  std::string path;
  for (const Point& point : Thinned(points)) {
    absl::StrAppendFormat(&path, "%s%.1f,%.1f", path.empty() ? "" : " ", point.x, point.y);
  }
  return path.empty() ? ""
                      : absl::StrCat("<polyline points=\"", path, "\" style=\"", style, "\"/>\n");
}

std::string Stroke(size_t run, double width, double opacity) {
  const size_t colours = std::size(kColours);
  return absl::StrFormat("stroke:%s;stroke-width:%.1f;stroke-opacity:%.2f%s",
                         kColours[run % colours], width, opacity,
                         run / colours % 2 == 1 ? ";stroke-dasharray:6 3" : "");
}

struct Panel {
  const char* title;
  double height;
  bool logarithmic;
  bool means;  // each step faintly, and their running mean
  bool skips;  // marks of steps whose update was skipped
  std::function<double(const StepRecord&)> value;
};

class Picture {
 public:
  explicit Picture(const std::vector<PlotRun>& runs) : runs_(runs) {}

  std::string Draw() {
    const Panel panels[] = {
        {"training loss, nats a token", 300, false, true, false,
         [](const StepRecord& r) { return static_cast<double>(r.loss); }},
        {"gradient norm, before the clip", 220, true, false, true,
         [](const StepRecord& r) { return static_cast<double>(r.gradient_norm); }},
        {"learning rate", 130, false, false, false,
         [](const StepRecord& r) { return static_cast<double>(r.learning_rate); }}};
    SetTokens();
    Legend();
    for (const Panel& panel : panels) Draw(panel);
    body_ += Text((kLeft + kRight) / 2, top_ + 38, "middle", "consumed tokens");
    return Document(top_ + 54);
  }

 private:
  std::string Document(double height) const {
    return absl::StrCat(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
        absl::StrFormat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                        "viewBox=\"0 0 %.0f %.0f\">\n",
                        kWidth, height, kWidth, height),
        "<style>\n"
        "text { font: 12px sans-serif; fill: #222222 }\n"
        ".title { font-weight: bold }\n"
        ".left { text-anchor: end }\n"
        ".middle { text-anchor: middle }\n"
        ".grid { stroke: #dddddd }\n"
        ".frame { stroke: #888888 }\n"
        "polyline { fill: none; stroke-linejoin: round }\n"
        "</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        body_, "</svg>\n");
  }

  void SetTokens() {
    double low = 0;
    double high = 0;
    bool any = false;
    for (const PlotRun& run : runs_) {
      if (run.records.empty()) continue;
      const double first = TokensAfter(run.records.front());
      low = any ? std::min(low, first) : first;
      high = std::max(high, TokensAfter(run.records.back()));
      any = true;
    }
    // From zero, unless the runs begin far from it, as a segment does.
    if (low < high / 3) low = 0;
    tokens_ = LinearAxis(low, high, 8);
    tokens_.low = low < high ? low : tokens_.low;
    tokens_.high = low < high ? high : tokens_.high;
    tokens_.from = kLeft;
    tokens_.to = kRight;
  }

  void Legend() {
    bool skipped = false;
    double y = 26;
    for (size_t r = 0; r < runs_.size(); ++r) {
      const std::vector<StepRecord>& records = runs_[r].records;
      body_ +=
          absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" style=\"%s\"/>\n",
                          kLeft, y - 4, kLeft + 28, y - 4, Stroke(r, 2.5, 1));
      body_ += Text(kLeft + 36, y, "label", absl::StrCat(runs_[r].label, ": ", StateOf(records)));
      y += kLegendRow;
      for (const StepRecord& record : records) skipped |= record.outcome != StepOutcome::kUpdated;
    }
    if (skipped) {
      body_ += Mark(kLeft + 14, y - 1, "#222222", "");
      body_ += Text(kLeft + 36, y, "label", "the step's update was skipped");
      y += kLegendRow;
    }
    top_ = y - kLegendRow;
  }

  static std::string StateOf(const std::vector<StepRecord>& records) {
    if (records.empty()) return "no step yet";
    const int64_t mean = RunningMeanSteps(static_cast<int64_t>(records.size()));
    return absl::StrFormat("%d steps; last loss %.4f%s", records.size(), LastMean(records),
                           mean > 1 ? absl::StrFormat(", mean of %d", mean) : std::string());
  }

  static double LastMean(const std::vector<StepRecord>& records) {
    const auto steps = static_cast<int64_t>(records.size());
    const int64_t count = RunningMeanSteps(steps);
    double sum = 0;
    for (int64_t i = steps - count; i < steps; ++i) sum += records[i].loss;
    return sum / static_cast<double>(count);
  }

  void Draw(const Panel& panel) {
    const double top = top_ + kGap;
    const double bottom = top + panel.height;
    const Axis axis = AxisOf(panel, top, bottom);
    body_ += Text(kLeft, top - 10, "title", panel.title);
    for (const double tick : axis.ticks) {
      body_ += Line(kLeft, axis.At(tick), kRight, axis.At(tick), "grid");
      body_ += Text(kLeft - 8, axis.At(tick) + 4, "left", absl::StrFormat("%.4g", tick));
    }
    for (const double tick : tokens_.ticks) {
      if (tick < tokens_.low || tick > tokens_.high) continue;
      body_ += Line(tokens_.At(tick), top, tokens_.At(tick), bottom, "grid");
      body_ += Text(tokens_.At(tick), bottom + 17, "middle", TokenLabel(tick));
    }
    body_ += Line(kLeft, bottom, kRight, bottom, "frame");
    body_ += Line(kLeft, top, kLeft, bottom, "frame");
    for (size_t r = 0; r < runs_.size(); ++r) Draw(panel, axis, r);
    top_ = bottom;
  }

  Axis AxisOf(const Panel& panel, double top, double bottom) const {
    std::optional<double> low;
    std::optional<double> high;
    for (const PlotRun& run : runs_) {
      for (const StepRecord& record : run.records) {
        const double value = panel.value(record);
        if (!Shown(panel, value)) continue;
        low = low ? std::min(*low, value) : value;
        high = high ? std::max(*high, value) : value;
      }
    }
    Axis axis = panel.logarithmic ? LogAxis(low.value_or(0.1), high.value_or(1))
                                  : LinearAxis(low.value_or(0), high.value_or(1), 6);
    axis.from = bottom;
    axis.to = top;
    return axis;
  }

  static bool Shown(const Panel& panel, double value) {
    return std::isfinite(value) && (!panel.logarithmic || value > 0);
  }

  void Draw(const Panel& panel, const Axis& axis, size_t run) {
    const std::vector<StepRecord>& records = runs_[run].records;
    const int64_t window = panel.means ? RunningMeanSteps(static_cast<int64_t>(records.size())) : 1;
    std::vector<Point> points;
    std::vector<Point> means;
    std::vector<double> last;  // values of the mean's window, in a ring
    double sum = 0;
    for (const StepRecord& record : records) {
      const double value = panel.value(record);
      if (!Shown(panel, value)) continue;
      const double x = tokens_.At(TokensAfter(record));
      sum += value;
      if (points.size() >= static_cast<size_t>(window)) sum -= last[points.size() % window];
      last.resize(std::max(last.size(), std::min<size_t>(points.size() + 1, window)));
      last[points.size() % window] = value;
      points.push_back({x, axis.At(value)});
      means.push_back({x, axis.At(sum / static_cast<double>(last.size()))});
    }
    if (window > 1) body_ += Curve(points, Stroke(run, 0.8, 0.3));
    body_ += Curve(window > 1 ? means : points, Stroke(run, panel.means ? 1.8 : 1.2, 1));
    if (panel.skips) Marks(panel, axis, run);
  }

  void Marks(const Panel& panel, const Axis& axis, size_t run) {
    for (const StepRecord& record : runs_[run].records) {
      if (record.outcome == StepOutcome::kUpdated) continue;
      const double value = panel.value(record);
      // What has no place stands at the top.
      const double y = Shown(panel, value) ? axis.At(value) : axis.to;
      body_ += Mark(tokens_.At(TokensAfter(record)), y, kColours[run % std::size(kColours)],
                    absl::StrFormat("step %d: update skipped, norm %g", record.step, value));
    }
  }

  static std::string Mark(double x, double y, absl::string_view colour, absl::string_view note) {
    return absl::StrFormat(
        "<path class=\"skip\" d=\"M%.1f,%.1f l-4,-7 h8 z\" style=\"fill:#ffffff;stroke:%s\">"
        "<title>%s</title></path>\n",
        x, y, colour, XmlText(note));
  }

  const std::vector<PlotRun>& runs_;
  Axis tokens_;
  std::string body_;
  double top_ = 0;  // where the last panel ended
};

}  // namespace

int64_t RunningMeanSteps(int64_t steps) { return std::max<int64_t>(1, steps / 100); }

std::vector<double> NiceTicks(double low, double high, int count) {
  const double raw = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double unit = power;
  for (const double digit : {10.0, 5.0, 2.0}) {
    if (raw <= digit * power) unit = digit * power;
  }
  if (raw <= power) unit = power;
  const auto first = static_cast<int64_t>(std::floor(low / unit + 1e-9));
  const auto last = static_cast<int64_t>(std::ceil(high / unit - 1e-9));
  std::vector<double> ticks;
  for (int64_t i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * unit);
  return ticks;
}

std::string XmlText(absl::string_view bytes) {
  using Json = nlohmann::json;
  // A round trip that leaves valid UTF-8, U+FFFD in place of the rest.
  const std::string valid =
      Json::parse(Json(std::string(bytes)).dump(-1, ' ', false, Json::error_handler_t::replace))
          .get<std::string>();
  std::string text;
  for (const char c : valid) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      text += "\xef\xbf\xbd";
    } else {
      text += c;
    }
  }
  return absl::StrReplaceAll(text, {{"&", "&amp;"},
                                    {"<", "&lt;"},
                                    {">", "&gt;"},
                                    {"\"", "&quot;"},
                                    {"'", "&apos;"},
                                    {"\xef\xbf\xbe", "\xef\xbf\xbd"},
                                    {"\xef\xbf\xbf", "\xef\xbf\xbd"}});
}

std::string PlotRuns(const std::vector<PlotRun>& runs) { return Picture(runs).Draw(); }

}  // namespace lockstep::engine
