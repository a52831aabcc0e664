// SPDX-License-Identifier: Apache-2.0
#include "worker/guest_rules.h"

#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/backoff.h"

namespace lockstep::worker {
namespace {

using ::testing::HasSubstr;

MachineState Quiet() {
  return {.user_idle = absl::Hours(1),
          .on_battery = false,
          .other_load = 0.0,
          .disk_free_bytes = uint64_t{100} << 30,
          .minute_of_day = 12 * 60};
}

PauseReason Decide(const GuestOptions& options, const MachineState& machine,
                   PauseReason before = PauseReason::kNone) {
  return DecideGuest(options, machine, before).reason;
}

TEST(GuestRules, HoursAreReadStrictly) {
  EXPECT_THAT(ParseHours("22:00-07:30"), IsOkAndHolds(Hours{.begin = 1320, .end = 450}));
  for (const char* bad : {"", "22-7", "22:00", "24:00-07:00", "22:00-07:60", "22:00-22:00",
                          "-1:00-07:00", "22:00-07:00-08:00", " 2:00-07:00x", "22:00-07:00 "}) {
    EXPECT_THAT(ParseHours(bad), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

TEST(GuestRules, AQuietMachineIsWorkedOn) {
  EXPECT_EQ(Decide({}, Quiet()), PauseReason::kNone);
  EXPECT_EQ(Decide({}, MachineState{}), PauseReason::kNone);  // one that says nothing, too
}

TEST(GuestRules, EachReason) {
  MachineState machine = Quiet();
  machine.user_idle = absl::Seconds(40);
  EXPECT_EQ(Decide({}, machine), PauseReason::kActivity);
  EXPECT_THAT(DecideGuest({}, machine, PauseReason::kNone).detail, HasSubstr("40s"));
  EXPECT_EQ(Decide({.pause_on_activity = false}, machine), PauseReason::kNone);
  machine.user_idle = absl::Minutes(5);
  EXPECT_EQ(Decide({}, machine), PauseReason::kNone);

  machine = Quiet();
  machine.on_battery = true;
  EXPECT_EQ(Decide({}, machine), PauseReason::kBattery);
  EXPECT_EQ(Decide({.pause_on_battery = false}, machine), PauseReason::kNone);

  machine = Quiet();
  machine.disk_free_bytes = (uint64_t{5} << 30) - 1;
  machine.on_battery = true;  // the disk comes first
  EXPECT_EQ(Decide({}, machine), PauseReason::kDisk);
}

TEST(GuestRules, HoursGoOverMidnight) {
  const GuestOptions options = {.hours = {{.begin = 22 * 60, .end = 7 * 60}}};
  MachineState machine = Quiet();
  for (const auto& [minute, works] : std::initializer_list<std::pair<int, bool>>{
           {22 * 60 - 1, false}, {22 * 60, true}, {0, true}, {7 * 60 - 1, true}, {7 * 60, false}}) {
    machine.minute_of_day = minute;
    EXPECT_EQ(Decide(options, machine) == PauseReason::kNone, works) << minute;
  }
}

TEST(GuestRules, LoadHasHysteresis) {
  const GuestOptions options = {.other_load_max = 0.5, .load_hysteresis = 0.5};
  MachineState machine = Quiet();
  machine.other_load = 0.4;
  EXPECT_EQ(Decide(options, machine), PauseReason::kNone);
  EXPECT_EQ(Decide(options, machine, PauseReason::kLoad), PauseReason::kLoad);
  machine.other_load = 0.2;
  EXPECT_EQ(Decide(options, machine, PauseReason::kLoad), PauseReason::kNone);
  machine.other_load = 1.0;
  EXPECT_EQ(Decide(options, machine), PauseReason::kLoad);
  EXPECT_EQ(Decide({.other_load_max = 1}, machine), PauseReason::kNone);
}

TEST(Backoff, DoublesUpToItsLimitAndIsJittered) {
  double draw = 0;
  Backoff backoff({.first = absl::Seconds(1), .most = absl::Seconds(5)}, [&] { return draw; });
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(500));
  EXPECT_EQ(backoff.Next(), absl::Seconds(1));
  draw = 0.5;
  EXPECT_EQ(backoff.Next(), absl::Seconds(3));
  EXPECT_EQ(backoff.Next(), absl::Seconds(3.75));
  EXPECT_EQ(backoff.Next(), absl::Seconds(3.75));
  backoff.Reset();
  draw = 0;
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(500));
}

}  // namespace
}  // namespace lockstep::worker
