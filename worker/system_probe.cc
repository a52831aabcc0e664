// SPDX-License-Identifier: Apache-2.0
//
// /proc, /sys, /dev.
#include "worker/system_probe.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/directory.h"

namespace lockstep::worker {
namespace {

std::string ReadWord(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

absl::Duration ProcessCpuTime() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return absl::ZeroDuration();
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

// Of all CPUs together, in ticks.
struct CpuTicks {
  double busy = 0;
  double total = 0;
};

class LinuxProbe final : public SystemProbe {
 public:
  explicit LinuxProbe(const LinuxProbeOptions& options) : options_(options) {
    if (!options_.own_cpu_time) options_.own_cpu_time = ProcessCpuTime;
  }

  MachineState Read() override {
    MachineState state;
    state.user_idle = UserIdle();
    state.on_battery = OnBattery();
    state.other_load = OtherLoad();
    struct statvfs disk {};
    if (::statvfs(options_.disk_folder.c_str(), &disk) == 0) {
      state.disk_free_bytes = uint64_t{disk.f_bavail} * disk.f_frsize;
    }
    const absl::CivilSecond local = absl::ToCivilSecond(options_.clock->Now(), options_.time_zone);
    state.minute_of_day = local.hour() * 60 + local.minute();
    return state;
  }

 private:
  std::optional<absl::Duration> UserIdle() const {
    std::optional<absl::Time> last;
    const auto look = [&](const std::string& folder, bool (*wanted)(absl::string_view)) {
      const absl::StatusOr<std::vector<std::string>> names = ListDirectory(folder);
      if (!names.ok()) return;
      for (const std::string& name : *names) {
        struct stat file {};
        if (!wanted(name) || ::stat(absl::StrCat(folder, "/", name).c_str(), &file) != 0) continue;
        const absl::Time at = absl::TimeFromTimespec(file.st_atim);
        last = std::max(last.value_or(at), at);
      }
    };
    look(options_.root + "/dev", [](absl::string_view name) {
      return absl::StartsWith(name, "tty") && name.size() > 3 && absl::ascii_isdigit(name[3]);
    });
    look(options_.root + "/dev/pts", [](absl::string_view name) { return name != "ptmx"; });
    if (!last) return std::nullopt;
    return std::max(options_.clock->Now() - *last, absl::ZeroDuration());
  }

  std::optional<bool> OnBattery() const {
    const std::string folder = options_.root + "/sys/class/power_supply";
    const absl::StatusOr<std::vector<std::string>> names = ListDirectory(folder);
    if (!names.ok()) return std::nullopt;
    bool mains = false;
    bool discharging = false;
    for (const std::string& name : *names) {
      const std::string supply = absl::StrCat(folder, "/", name);
      const std::string type = ReadWord(supply + "/type");
      if (type == "Mains" || type == "USB") mains |= ReadWord(supply + "/online") == "1";
      // A mouse has a battery, too; it is not the machine's.
      if (type == "Battery" && ReadWord(supply + "/scope") != "Device") {
        discharging |= ReadWord(supply + "/status") == "Discharging";
      }
    }
    return discharging && !mains;
  }

  std::optional<double> OtherLoad() {
    std::ifstream file(options_.root + "/proc/stat");
    std::string line;
    if (!std::getline(file, line) || !absl::StartsWith(line, "cpu ")) return std::nullopt;
    std::istringstream words(line.substr(4));
    // user nice system idle iowait irq softirq steal; guests are in user already.
    std::vector<double> ticks;
    for (double value = 0; ticks.size() < 8 && words >> value;) ticks.push_back(value);
    if (ticks.size() < 5) return std::nullopt;
    CpuTicks now;
    for (size_t i = 0; i < ticks.size(); ++i) {
      now.total += ticks[i];
      if (i != 3 && i != 4) now.busy += ticks[i];
    }
    const double own =
        absl::ToDoubleSeconds(options_.own_cpu_time()) * static_cast<double>(TicksPerSecond());
    const std::optional<CpuTicks> before = last_ticks_;
    const double own_before = last_own_;
    // Two looks in one tick have nothing to divide by.
    if (before && now.total <= before->total) return last_load_;
    last_ticks_ = now;
    last_own_ = own;
    if (!before) return std::nullopt;
    const double other = (now.busy - before->busy) - (own - own_before);
    last_load_ = std::clamp(other / (now.total - before->total), 0.0, 1.0);
    return last_load_;
  }

  static long TicksPerSecond() { return ::sysconf(_SC_CLK_TCK); }

  LinuxProbeOptions options_;
  std::optional<CpuTicks> last_ticks_;
  double last_own_ = 0;
  std::optional<double> last_load_;
};

// ioprio_set(2), which the C library does not wrap.
constexpr int kIoPriorityWhoProcess = 1;
constexpr int kIoPriorityIdle = 3 << 13;

}  // namespace

std::unique_ptr<SystemProbe> MakeLinuxProbe(const LinuxProbeOptions& options) {
  return std::make_unique<LinuxProbe>(options);
}

absl::Status LowerPriority() {
  if (::setpriority(PRIO_PROCESS, 0, 19) != 0) {
    return absl::ErrnoToStatus(errno, "lower the priority");
  }
  if (::syscall(SYS_ioprio_set, kIoPriorityWhoProcess, 0, kIoPriorityIdle) != 0) {
    return absl::ErrnoToStatus(errno, "lower the priority of input and output");
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
