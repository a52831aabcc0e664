// SPDX-License-Identifier: Apache-2.0
//
// The rules, and what they say of themselves.
#include "worker/guest_rules.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace lockstep::worker {
namespace {

constexpr int kMinutesADay = 24 * 60;

// "07:30"; two digits each.
std::optional<int> ParseMinute(absl::string_view text) {
  int hour = 0;
  int minute = 0;
  if (text.size() != 5 || text[2] != ':' || !absl::SimpleAtoi(text.substr(0, 2), &hour) ||
      !absl::SimpleAtoi(text.substr(3), &minute) || hour < 0 || minute < 0 || hour > 23 ||
      minute > 59) {
    return std::nullopt;
  }
  return hour * 60 + minute;
}

bool Within(const Hours& hours, int minute) {
  return hours.begin < hours.end ? minute >= hours.begin && minute < hours.end
                                 : minute >= hours.begin || minute < hours.end;
}

std::string MinuteText(int minute) {
  return absl::StrFormat("%02d:%02d", minute / 60 % 24, minute % 60);
}

std::string GiB(uint64_t bytes) {
  return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1024.0 * 1024 * 1024));
}

}  // namespace

absl::StatusOr<Hours> ParseHours(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  if (parts.size() == 2) {
    const std::optional<int> begin = ParseMinute(parts[0]);
    const std::optional<int> end = ParseMinute(parts[1]);
    if (begin && end && *begin != *end) return Hours{.begin = *begin, .end = *end};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected hours such as 22:00-07:00; found \"", text, "\""));
}

absl::string_view PauseReasonName(PauseReason reason) {
  switch (reason) {
    case PauseReason::kNone:
      return "";
    case PauseReason::kActivity:
      return "user activity";
    case PauseReason::kBattery:
      return "on battery";
    case PauseReason::kLoad:
      return "other load";
    case PauseReason::kSchedule:
      return "schedule";
    case PauseReason::kDisk:
      return "low disk";
  }
  return "";
}

GuestDecision DecideGuest(const GuestOptions& options, const MachineState& machine,
                          PauseReason before) {
  if (machine.disk_free_bytes && *machine.disk_free_bytes < options.disk_free_bytes_min) {
    return {.reason = PauseReason::kDisk,
            .detail = absl::StrCat(GiB(*machine.disk_free_bytes), " free, ",
                                   GiB(options.disk_free_bytes_min), " are to stay so")};
  }
  if (options.pause_on_battery && machine.on_battery.value_or(false)) {
    return {.reason = PauseReason::kBattery, .detail = "the machine runs on its battery"};
  }
  const int minute = machine.minute_of_day % kMinutesADay;
  if (!options.hours.empty() &&
      std::none_of(options.hours.begin(), options.hours.end(),
                   [&](const Hours& hours) { return Within(hours, minute); })) {
    return {.reason = PauseReason::kSchedule,
            .detail = absl::StrCat(MinuteText(minute), " is outside the hours of work")};
  }
  if (options.pause_on_activity && machine.user_idle && *machine.user_idle < options.idle_min) {
    return {.reason = PauseReason::kActivity,
            .detail = absl::StrCat(
                "somebody used the machine ",
                absl::FormatDuration(absl::Trunc(*machine.user_idle, absl::Seconds(1))), " ago")};
  }
  const double load_max = before == PauseReason::kLoad
                              ? options.other_load_max * options.load_hysteresis
                              : options.other_load_max;
  if (options.other_load_max < 1 && machine.other_load && *machine.other_load > load_max) {
    return {.reason = PauseReason::kLoad,
            .detail = absl::StrFormat("other programs use %.0f%% of the CPUs",
                                      100 * *machine.other_load)};
  }
  return {};
}

}  // namespace lockstep::worker
