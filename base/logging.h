// SPDX-License-Identifier: Apache-2.0
//
// Log lines on standard error, as text or as JSON, and the check for our own bugs. Format strings
// are fmt's, checked at compile time; arguments are evaluated only if the line is wanted. spdlog
// writes the lines and stays out of this header.
//
//   LOCKSTEP_LOG_INFO("checkpoint of step {} written, {} bytes", step, bytes);
//   LOCKSTEP_CHECK(index < size, "index {} of {}", index, size);

#ifndef LOCKSTEP_BASE_LOGGING_H_
#define LOCKSTEP_BASE_LOGGING_H_

#include <fmt/format.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#define LOCKSTEP_LOG_DEBUG(...) LOCKSTEP_LOG_(kDebug, __VA_ARGS__)
#define LOCKSTEP_LOG_INFO(...) LOCKSTEP_LOG_(kInfo, __VA_ARGS__)
#define LOCKSTEP_LOG_WARNING(...) LOCKSTEP_LOG_(kWarning, __VA_ARGS__)
#define LOCKSTEP_LOG_ERROR(...) LOCKSTEP_LOG_(kError, __VA_ARGS__)

// Ends the program, with a message if one is given, unless `condition` holds. Only for what our own
// code guarantees: nothing that comes from a peer, a file or a configuration may reach a check.
#define LOCKSTEP_CHECK(condition, ...)                                                        \
  do {                                                                                        \
    if (!(condition)) [[unlikely]] {                                                          \
      ::lockstep::CheckFailed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
    }                                                                                         \
  } while (false)

#define LOCKSTEP_LOG_(level, ...)                                          \
  do {                                                                     \
    if (::lockstep::LogEnabled(::lockstep::LogLevel::level)) {             \
      ::lockstep::LogLine(::lockstep::LogLevel::level, __FILE__, __LINE__, \
                          ::fmt::format(__VA_ARGS__));                     \
    }                                                                      \
  } while (false)

namespace lockstep {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// Sets the level (debug, info, warning, error, off) and the form (text, json) of the log. An empty
// argument takes the environment's LOCKSTEP_LOG_LEVEL or LOCKSTEP_LOG_FORMAT, and without that
// "info" and "text". An unknown word is an error that names the choices, and changes nothing. A
// program calls this with its flags before it starts threads; one that does not call it, or a test,
// logs as for two empty arguments (with a warning, should the environment be wrong).
absl::Status SetUpLogging(absl::string_view level, absl::string_view format);

// What the macros call. Safe from any thread. A message is one line: control characters in it, and
// in JSON also bytes that are not UTF-8, are escaped, so that no peer can forge a line.
bool LogEnabled(LogLevel level);
void LogLine(LogLevel level, const char* file, int line, absl::string_view message);
[[noreturn]] void CheckFailed(const char* file, int line, absl::string_view condition,
                              absl::string_view message);

}  // namespace lockstep

// What is often logged and fmt does not know.
template <>
struct fmt::formatter<absl::Status> : fmt::formatter<fmt::string_view> {
  template <typename Context>
  auto format(const absl::Status& status, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(
        status.ToString(absl::StatusToStringMode::kWithNoExtraData), context);
  }
};

#if !defined(ABSL_USES_STD_STRING_VIEW)
template <>
struct fmt::formatter<absl::string_view> : fmt::formatter<fmt::string_view> {
  template <typename Context>
  auto format(absl::string_view text, Context& context) const {
    return fmt::formatter<fmt::string_view>::format({text.data(), text.size()}, context);
  }
};
#endif

#endif  // LOCKSTEP_BASE_LOGGING_H_
