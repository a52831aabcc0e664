// SPDX-License-Identifier: Apache-2.0
//
// The log over spdlog: one logger on standard error, two patterns, and the escaping that keeps a
// message on its line. See logging.h.

#include "base/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_line.h"

namespace lockstep {
namespace {

constexpr std::array<absl::string_view, 5> kLevelNames = {"debug", "info", "warning", "error",
                                                          "off"};
constexpr std::array<absl::string_view, 2> kFormatNames = {"text", "json"};

constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%eZ %L %t %s:%#] %v";
constexpr char kJsonPattern[] =
    R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","thread":%t,"source":"%s:%#","message":"%v"})";

// The place of `word` in `names`, or nothing.
template <size_t kSize>
std::optional<int> Find(const std::array<absl::string_view, kSize>& names, absl::string_view word) {
  for (size_t i = 0; i < kSize; ++i) {
    if (names[i] == word) return static_cast<int>(i);
  }
  return std::nullopt;
}

absl::string_view Environment(const char* name, absl::string_view otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : absl::string_view(value);
}

// Bytes of the well-formed UTF-8 sequence at the start of `s` (Unicode 15, table 3-7), or 0.
size_t Utf8Length(absl::string_view s) {
  const auto byte = [s](size_t i) { return i < s.size() ? static_cast<uint8_t>(s[i]) : 0; };
  const auto follows = [&byte](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const bool overlong = lead == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = lead == 0xed && byte(1) > 0x9f;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const bool overlong = lead == 0xf0 && byte(1) < 0x90;
    const bool too_large = lead == 0xf4 && byte(1) > 0x8f;
    return follows(1) && follows(2) && follows(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

std::string EscapeText(absl::string_view message) {
  std::string line;
  line.reserve(message.size());
  for (const char c : message) {
    if (c == '\n') {
      line += "\\n";
    } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) {
      line += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    } else {
      line += c;
    }
  }
  return line;
}

std::string EscapeJson(absl::string_view message) {
  std::string line;
  line.reserve(message.size());
  while (!message.empty()) {
    const size_t length = Utf8Length(message);
    const char c = message[0];
    if (length == 0) {
      line += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (static_cast<uint8_t>(c) < 0x20) {
      line += fmt::format("\\u{:04x}", c);
    } else {
      line.append(message.data(), length);
    }
    message.remove_prefix(std::max<size_t>(length, 1));
  }
  return line;
}

class Log {
 public:
  // Never destroyed, so that the last static destructor may still log.
  static Log& Get() {
    static Log* const log = new Log;
    return *log;
  }

  absl::Status SetUp(absl::string_view level, absl::string_view format) {
    if (level.empty()) level = Environment("LOCKSTEP_LOG_LEVEL", "info");
    if (format.empty()) format = Environment("LOCKSTEP_LOG_FORMAT", "text");
    const std::optional<int> new_level = Find(kLevelNames, level);
    if (!new_level) {
      return absl::InvalidArgumentError(
          absl::StrCat("log level is debug, info, warning, error or off, and not \"", level, "\""));
    }
    const std::optional<int> new_format = Find(kFormatNames, format);
    if (!new_format) {
      return absl::InvalidArgumentError(
          absl::StrCat("log format is text or json, and not \"", format, "\""));
    }
    level_ = static_cast<LogLevel>(*new_level);
    json_ = *new_format == 1;
    logger_.set_pattern(json_ ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc);
    return absl::OkStatus();
  }

  bool Enabled(LogLevel level) const { return level >= level_; }

  void Write(spdlog::level::level_enum level, const char* file, int line,
             absl::string_view message) {
    const std::string escaped = json_ ? EscapeJson(message) : EscapeText(message);
    WriteAboveStatusLine([&] {
      logger_.log(spdlog::source_loc(file, line, ""), level, spdlog::string_view_t(escaped));
    });
  }

  void Flush() { logger_.flush(); }

 private:
  Log() : logger_("lockstep", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_level(spdlog::level::trace);
    logger_.set_pattern(kTextPattern, spdlog::pattern_time_type::utc);
    const absl::Status status = SetUp("", "");
    if (!status.ok()) Write(spdlog::level::warn, __FILE__, __LINE__, status.message());
  }

  spdlog::logger logger_;
  std::atomic<LogLevel> level_{LogLevel::kInfo};
  std::atomic<bool> json_{false};
};

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    default:
      return spdlog::level::err;
  }
}

}  // namespace

absl::Status SetUpLogging(absl::string_view level, absl::string_view format) {
  return Log::Get().SetUp(level, format);
}

bool LogEnabled(LogLevel level) { return Log::Get().Enabled(level); }

void LogLine(LogLevel level, const char* file, int line, absl::string_view message) {
  Log::Get().Write(SpdlogLevel(level), file, line, message);
}

void CheckFailed(const char* file, int line, absl::string_view condition,
                 absl::string_view message) {
  Log::Get().Write(spdlog::level::critical, file, line,
                   absl::StrCat("check failed: ", condition, message.empty() ? "" : ": ", message));
  Log::Get().Flush();
  std::abort();
}

}  // namespace lockstep
