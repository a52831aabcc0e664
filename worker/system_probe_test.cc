// SPDX-License-Identifier: Apache-2.0
#include "worker/system_probe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/fake_clock.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

class SystemProbeTest : public ::testing::Test {
 protected:
  std::unique_ptr<SystemProbe> Make() {
    return MakeLinuxProbe({.root = root_.path(),
                           .disk_folder = root_.path(),
                           .clock = &clock_,
                           .own_cpu_time = [this] { return own_; },
                           .time_zone = absl::UTCTimeZone()});
  }
  void Supply(const std::string& name, const std::string& type, const std::string& file,
              const std::string& value) {
    WriteBytes(root_ / ("sys/class/power_supply/" + name + "/type"), type + "\n");
    WriteBytes(root_ / ("sys/class/power_supply/" + name + "/" + file), value + "\n");
  }
  void Terminal(const std::string& name, absl::Time accessed) {
    WriteBytes(root_ / name, "");
    const timespec times[2] = {absl::ToTimespec(accessed), absl::ToTimespec(accessed)};
    ASSERT_EQ(utimensat(AT_FDCWD, (root_ / name).c_str(), times, 0), 0);
  }

  TemporaryFolder root_;
  FakeClock clock_;
  absl::Duration own_ = absl::ZeroDuration();
};

TEST_F(SystemProbeTest, AMachineThatSaysNothing) {
  const MachineState state = Make()->Read();
  EXPECT_EQ(state.user_idle, std::nullopt);
  EXPECT_EQ(state.on_battery, std::nullopt);
  EXPECT_EQ(state.other_load, std::nullopt);
  EXPECT_GT(state.disk_free_bytes.value_or(0), 0u);
  EXPECT_EQ(state.minute_of_day, 0);
}

TEST_F(SystemProbeTest, TheLatestTerminalCounts) {
  Terminal("dev/tty1", clock_.Now() - absl::Minutes(9));
  Terminal("dev/pts/0", clock_.Now() - absl::Minutes(3));
  Terminal("dev/pts/ptmx", clock_.Now());  // touched by opening terminals, not by people
  Terminal("dev/tty", clock_.Now());       // everybody's own
  EXPECT_EQ(Make()->Read().user_idle, absl::Minutes(3));
  clock_.SetNow(clock_.Now() - absl::Hours(24));  // set back: just now, and not in the future
  EXPECT_EQ(Make()->Read().user_idle, absl::ZeroDuration());
}

TEST_F(SystemProbeTest, BatteryMeansDischargingWithoutMains) {
  Supply("BAT0", "Battery", "status", "Discharging");
  EXPECT_EQ(Make()->Read().on_battery, true);
  Supply("AC", "Mains", "online", "1");
  EXPECT_EQ(Make()->Read().on_battery, false);
  Supply("AC", "Mains", "online", "0");
  EXPECT_EQ(Make()->Read().on_battery, true);
  Supply("BAT0", "Battery", "scope", "Device");
  EXPECT_EQ(Make()->Read().on_battery, false);
}

TEST_F(SystemProbeTest, LoadIsThatOfOthers) {
  const std::unique_ptr<SystemProbe> probe = Make();
  const double second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto stat = [&](double user, double idle) {
    WriteBytes(root_ / "proc/stat", "cpu  " + std::to_string(user * second) + " 0 0 " +
                                        std::to_string(idle * second) +
                                        " 0 0 0 0 0 0\ncpu0 1 2 3\n");
  };
  stat(100, 100);
  EXPECT_EQ(probe->Read().other_load, std::nullopt);
  stat(107, 103);  // ten seconds of CPU, seven of them used, five by this process
  own_ = absl::Seconds(5);
  EXPECT_NEAR(probe->Read().other_load.value(), 0.2, 1e-6);
  EXPECT_NEAR(probe->Read().other_load.value(), 0.2, 1e-6);  // within one tick
  stat(107, 113);
  own_ = absl::Seconds(6);
  EXPECT_EQ(probe->Read().other_load, 0.0);
}

}  // namespace
}  // namespace lockstep::worker
