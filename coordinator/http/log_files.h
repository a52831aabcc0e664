// SPDX-License-Identifier: Apache-2.0
//
// The log as files (C2SP tlog-tiles; docs/artifacts.md): which paths there are, and their handler.
// What is in them is not looked at.
#ifndef LOCKSTEP_COORDINATOR_HTTP_LOG_FILES_H_
#define LOCKSTEP_COORDINATOR_HTTP_LOG_FILES_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "coordinator/http/folder.h"
#include "coordinator/http/router.h"

namespace lockstep::coordinator {

enum class LogFileKind { kNone, kCheckpoint, kFullTile, kPartialTile };

// "/checkpoint", "/tile/<L>/<N>[.p/<W>]", "/tile/entries/<N>[.p/<W>]", in their one spelling each:
// L of 0 to 63 in decimal; N in groups of three digits, "x" before all but the last, no leading
// group of zeros but "000" itself; W of 1 to 255. A stranger's text.
LogFileKind KindOfLogPath(absl::string_view path);

// GET /checkpoint and below /tile/, from files of the same paths below `folder`.
void ServeLogFiles(std::shared_ptr<const Folder> folder, Router& router);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_LOG_FILES_H_
