// SPDX-License-Identifier: Apache-2.0
//
// Words for a status.
#include "worker/status_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace lockstep::worker {
namespace {

using nlohmann::json;

// What is not there, or of another kind, is null, 0 or empty: the daemon may be of another version.
json Field(const json& object, const char* name) {
  return object.is_object() ? object.value(name, json()) : json();
}
uint64_t Number(const json& object, const char* name) {
  const json value = Field(object, name);
  return value.is_number_integer() && value >= 0 ? value.get<uint64_t>() : 0;
}
std::string Text(const json& object, const char* name) {
  const json value = Field(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::string Seconds(double seconds) {
  return absl::FormatDuration(absl::Seconds(std::max<int64_t>(1, static_cast<int64_t>(seconds))));
}

struct LeaseWords {
  std::string run;    // "run 1a2b3c4d"
  std::string steps;  // "steps 8 to 31"
  std::string done;   // "3 of 24 steps (12 %)"
};

LeaseWords WordsOf(const json& lease) {
  const uint64_t begin = Number(lease, "begin_step");
  const uint64_t end = std::max(Number(lease, "end_step"), begin + 1);
  const uint64_t done = std::clamp(Number(lease, "next_step"), begin, end) - begin;
  return {.run = absl::StrCat("run ", Text(lease, "run").substr(0, 16)),
          .steps = end - begin == 1 ? absl::StrCat("step ", begin)
                                    : absl::StrCat("steps ", begin, " to ", end - 1),
          .done = absl::StrFormat("%d of %d done (%d %%)", done, end - begin,
                                  100 * done / (end - begin))};
}

// What the coordinator's reason for giving no work means (coordinator/scheduler/scheduler.h names
// them); another coordinator's own word.
std::string NoWorkWords(const std::string& reason) {
  if (reason == "NO_WORK") return "no work now";
  if (reason == "BACKOFF") return "no work yet: the last leases came to nothing";
  if (reason == "MACHINE_TOO_SMALL") {
    return "no work for a machine like this (`lockstep-worker doctor` says what it has)";
  }
  if (reason == "QUOTA" || absl::StartsWith(reason, "TOO_MANY_LEASES")) {
    return absl::StrCat("no more work at once than is out already (", reason, ")");
  }
  return absl::StrCat("no work now (", reason, ")");
}

// "no work now; asked again in 40s"
std::string SiteWords(const json& site) {
  std::string words = Text(site, "last_error");
  if (words.empty() && !Text(site, "no_work").empty()) {
    words = NoWorkWords(Text(site, "no_work"));
  }
  if (const uint64_t ms = Number(site, "asked_again_in_ms"); ms > 0) {
    absl::StrAppend(&words, words.empty() ? "" : "; ", "asked again in ",
                    Seconds(static_cast<double>(ms) / 1000));
  }
  return words;
}

json Sites(const json& status) {
  json sites = Field(status, "coordinators");
  return sites.is_array() ? sites : json::array();
}

std::string State(const json& status) {
  const std::string state = Text(status, "state");
  const std::string reason = Text(status, "reason");
  return absl::StrCat(state.empty() ? "unknown" : state, reason.empty() ? "" : ": ", reason);
}

}  // namespace

std::string StatusText(const json& status) {
  std::string text = absl::StrCat("state        ", State(status), "\n");
  if (const std::string hint = Text(status, "hint"); !hint.empty()) {
    absl::StrAppend(&text, "             ", hint, "\n");
  }
  if (const json lease = Field(status, "lease"); lease.is_object()) {
    const LeaseWords words = WordsOf(lease);
    absl::StrAppend(&text, "lease        ", words.run, ", ", words.steps, ", ", words.done, "\n");
  }
  absl::StrAppend(&text, "since start  ", Number(status, "steps_attested"),
                  " steps attested; leases: ", Number(status, "leases_matched"), " matched, ",
                  Number(status, "leases_mismatched"), " found a mismatch, ",
                  Number(status, "tests_passed"), " were tests, and passed\n");
  if (const json outbox = Field(status, "outbox"); outbox.is_object()) {
    const uint64_t refused = Number(outbox, "refused");
    absl::StrAppend(
        &text, "outbox       ", Number(outbox, "pending"), " to send",
        refused > 0 ? absl::StrCat("; ", refused, " were refused, the reasons are in its refused/")
                    : "",
        "\n");
    if (const std::string error = Text(outbox, "last_error"); !error.empty()) {
      absl::StrAppend(&text, "             the last try: ", error, "\n");
    }
  }
  for (const json& site : Sites(status)) {
    const std::string words = SiteWords(site);
    absl::StrAppend(&text, "coordinator  ", Text(site, "address"), words.empty() ? "" : ": ", words,
                    "\n");
    if (const std::string advice = Text(site, "advice"); !advice.empty()) {
      absl::StrAppend(&text, "             what it means: ", advice, "\n");
    }
  }
  absl::StrAppend(&text, "worker key   ", Text(status, "worker_key"), "\nbackend      ",
                  Text(status, "backend_class"), "\n");
  return text;
}

std::string StatusLine(const json& status) {
  const json lease = Field(status, "lease");
  if (Text(status, "state") == "working" && lease.is_object()) {
    const LeaseWords words = WordsOf(lease);
    std::string line = absl::StrCat(words.steps, ": ", words.done);
    const json rate = Field(status, "tokens_per_second");
    if (rate.is_number() && rate.get<double>() > 0) {
      absl::StrAppendFormat(&line, ", %.0f tokens/s", rate.get<double>());
    }
    absl::StrAppend(&line, "; ", Number(status, "steps_attested"), " attested since the start");
    return line;
  }
  std::string line = State(status);
  const json sites = Sites(status);
  if (Text(status, "state") == "idle" && !sites.empty()) {
    // The one that is asked next.
    const auto next =
        std::min_element(sites.begin(), sites.end(), [](const auto& a, const auto& b) {
          return Number(a, "asked_again_in_ms") < Number(b, "asked_again_in_ms");
        });
    const std::string words = SiteWords(*next);
    if (!words.empty()) absl::StrAppend(&line, ": ", words);
  }
  return line;
}

}  // namespace lockstep::worker
