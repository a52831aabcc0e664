// SPDX-License-Identifier: Apache-2.0
//
// The real clock goes on; the fake one goes where a test puts it.

#include "base/clock.h"

#include "absl/time/clock.h"
#include "base/testing/fake_clock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(RealClock, TellsTheTimeAndGoesOn) {
  const absl::Time before = absl::Now();
  const absl::Time now = RealClock().Now();
  EXPECT_GE(now, before - absl::Minutes(1));
  EXPECT_LE(now, absl::Now() + absl::Minutes(1));
  absl::Duration last = RealClock().Monotonic();
  const absl::Duration first = last;
  while (last == first) {
    const absl::Duration next = RealClock().Monotonic();
    ASSERT_GE(next, last);
    last = next;
  }
  EXPECT_LT(last - first, absl::Minutes(1));
}

TEST(FakeClock, MovesOnlyWhenTold) {
  FakeClock fake;
  const Clock& clock = fake;
  const absl::Time start = clock.Now();
  EXPECT_EQ(start, absl::FromCivil(absl::CivilDay(2000, 1, 1), absl::UTCTimeZone()));
  EXPECT_EQ(clock.Monotonic(), absl::ZeroDuration());
  fake.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Now(), start + absl::Seconds(5));
  EXPECT_EQ(clock.Monotonic(), absl::Seconds(5));
  fake.SetNow(start - absl::Hours(1));
  EXPECT_EQ(clock.Now(), start - absl::Hours(1));
  EXPECT_EQ(clock.Monotonic(), absl::Seconds(5));
}

}  // namespace
}  // namespace lockstep
