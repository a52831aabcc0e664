// SPDX-License-Identifier: Apache-2.0
//
// Drawing and erasing.
#include "base/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace lockstep {
namespace {

constexpr char kErase[] = "\r\033[K";

ABSL_CONST_INIT absl::Mutex mutex(absl::kConstInit);

// What is shown. Never destroyed, so that the last static destructor may still log.
std::string& Shown() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
  static auto* const shown = new std::string();
  return *shown;
}

size_t Columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void Write(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

bool CanShowStatusLine() {
  static const bool can = [] {
    const char* const no_color = std::getenv("NO_COLOR");
    return ::isatty(STDERR_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
  }();
  return can;
}

void ShowStatusLine(absl::string_view text) {
  if (!CanShowStatusLine()) return;
  const absl::MutexLock lock(&mutex);
  // The last column stays free: a full line would wrap.
  std::string line(text.substr(0, Columns() - 1));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  if (line == Shown()) return;
  Write(kErase + line);
  Shown() = line;
}

void WriteAboveStatusLine(absl::FunctionRef<void()> write) {
  const absl::MutexLock lock(&mutex);
  if (Shown().empty()) {
    write();
    return;
  }
  Write(kErase);
  write();
  Write(Shown());
}

}  // namespace lockstep
