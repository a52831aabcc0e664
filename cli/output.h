// SPDX-License-Identifier: Apache-2.0
//
// What commands print: bytes as they are, JSON by the line, and bytes in quotes for a reader.
#ifndef LOCKSTEP_CLI_OUTPUT_H_
#define LOCKSTEP_CLI_OUTPUT_H_

#include <cerrno>
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {

// To standard output, at once; an error if it does not take them (a full disk, a closed pipe).
inline absl::Status Print(absl::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() ||
      std::fflush(stdout) != 0) {
    return absl::ErrnoToStatus(errno, "cannot write to standard output");
  }
  return absl::OkStatus();
}

// On one line. Text that is not UTF-8 has U+FFFD in place of what is wrong.
inline absl::Status PrintJson(const nlohmann::json& value) {
  return Print(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

// In quotes, with escapes for what a terminal would not show.
inline std::string Quoted(absl::string_view bytes) {
  // An apostrophe needs none between double quotes.
  return absl::StrCat("\"", absl::StrReplaceAll(absl::Utf8SafeCHexEscape(bytes), {{"\\'", "'"}}),
                      "\"");
}

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_OUTPUT_H_
