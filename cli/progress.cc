// SPDX-License-Identifier: Apache-2.0
//
// Drawing of the progress line.
#include "cli/progress.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_line.h"

namespace lockstep::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::string Amount(double amount, const std::string& unit) {
  if (unit == "B") return absl::StrFormat("%.1f MB", amount / 1e6);
  return absl::StrFormat("%.0f %s", amount, unit);
}

}  // namespace

Progress::Progress(std::string what, int64_t total, std::string unit, bool quiet)
    : what_(std::move(what)),
      total_(total),
      unit_(std::move(unit)),
      draws_(!quiet && CanShowStatusLine()),
      start_(Clock::now()) {}

Progress::~Progress() {
  if (draws_) Draw(true);
}

void Progress::Add(int64_t amount) {
  done_ += amount;
  if (!draws_) return;
  const int64_t now =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_).count();
  int64_t due = next_draw_ms_.load();
  if (now >= due && next_draw_ms_.compare_exchange_strong(due, now + 100)) Draw(false);
}

void Progress::Skip(int64_t amount) { skipped_ += amount; }

void Progress::Draw(bool last) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const auto done = static_cast<double>(done_.load());
  const double at = done + static_cast<double>(skipped_.load());
  const double rate = seconds > 0 ? done / seconds : 0;
  std::string line = absl::StrCat(what_, "  ", Amount(at, unit_));
  if (total_ > 0) {
    absl::StrAppendFormat(&line, " of %s, %.0f %%", Amount(static_cast<double>(total_), unit_),
                          100 * at / static_cast<double>(total_));
  }
  absl::StrAppend(&line, ", ", Amount(rate, unit_), "/s");
  if (total_ > 0 && rate > 0 && !last) {
    absl::StrAppendFormat(&line, ", %.0f s left", (static_cast<double>(total_) - at) / rate);
  }
  if (!last) {
    ShowStatusLine(line);
    return;
  }
  ShowStatusLine("");
  absl::StrAppend(&line, "\n");
  std::fputs(line.c_str(), stderr);
}

}  // namespace lockstep::cli
