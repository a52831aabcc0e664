// SPDX-License-Identifier: Apache-2.0
//
// Any text as a path of the log: what is accepted is safe, whole and of the letters of the format.
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/logging.h"
#include "coordinator/http/log_files.h"
#include "coordinator/http/request_head.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace coordinator = lockstep::coordinator;
  const absl::string_view path = lockstep::AsChars({data, size});
  const coordinator::LogFileKind kind = coordinator::KindOfLogPath(path);
  if (kind == coordinator::LogFileKind::kNone) return 0;
  LOCKSTEP_CHECK(coordinator::IsSafePath(path));
  LOCKSTEP_CHECK(path.back() != '/');
  if (kind == coordinator::LogFileKind::kCheckpoint) return 0;
  for (const char c : path) {
    LOCKSTEP_CHECK((c >= '0' && c <= '9') || c == '/' || c == '.' || (c >= 'a' && c <= 'z'));
  }
  return 0;
}
