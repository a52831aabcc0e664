// SPDX-License-Identifier: Apache-2.0
//
// The last line of a terminal, redrawn in place while lines of the log go by above it. On anything
// else than a terminal, and with NO_COLOR (no-color.org), there is none.
#ifndef LOCKSTEP_BASE_STATUS_LINE_H_
#define LOCKSTEP_BASE_STATUS_LINE_H_

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Whether ShowStatusLine draws: standard error is a terminal, and NO_COLOR is empty or not set.
bool CanShowStatusLine();

// Shows `text` in the place of what was shown before, cut to the terminal's width; empty: nothing.
// Bytes that are not printable ASCII are shown as '?'. From any thread.
void ShowStatusLine(absl::string_view text);

// Calls `write`, which writes whole lines to standard error, with the status line out of the way.
// The log does so with each of its lines.
void WriteAboveStatusLine(absl::FunctionRef<void()> write);

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_STATUS_LINE_H_
