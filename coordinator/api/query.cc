// SPDX-License-Identifier: Apache-2.0
//
// See query.h.

#include "coordinator/api/query.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/core/reasons.h"
#include "net/http_range.h"

namespace lockstep::coordinator {

absl::Status RequestIsInvalid(absl::string_view message) {
  return Refused(absl::StatusCode::kInvalidArgument, "REQUEST_INVALID", message);
}

absl::StatusOr<Digest> ParseDigest(absl::string_view text, absl::string_view what) {
  const bool lower = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  absl::StatusOr<Digest> digest = Digest::FromHex(text);
  if (lower && digest.ok()) return digest;
  return RequestIsInvalid(absl::StrCat(what, ": expected 64 lower-case hexadecimal digits"));
}

absl::StatusOr<uint64_t> ParseNumber(absl::string_view text, absl::string_view what) {
  const std::optional<uint64_t> value = net::ParseDecimal(text);
  const bool leading_zero = text.size() > 1 && text.front() == '0';
  if (value && *value <= kApiNumberMax && !leading_zero) return *value;
  return RequestIsInvalid(absl::StrCat(what, ": expected a decimal number below 2^53"));
}

Query::Query(absl::string_view query, std::initializer_list<absl::string_view> known) {
  std::optional<QueryParameters> parameters = ParseQuery(query);
  if (!parameters) {
    Fail(RequestIsInvalid("expected NAME=VALUE&..., in UTF-8 with escapes of the form %41"));
    return;
  }
  std::set<absl::string_view> seen;
  for (const auto& [name, value] : *parameters) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      Fail(RequestIsInvalid(absl::StrCat("expected none but these parameters: ",
                                         known.size() == 0 ? "none" : absl::StrJoin(known, ", "))));
    } else if (!seen.insert(name).second) {
      Fail(RequestIsInvalid(absl::StrCat(name, ": given more than once")));
    }
  }
  if (status_.ok()) parameters_ = *std::move(parameters);
}

std::optional<std::string> Query::Text(absl::string_view name) const {
  for (const auto& [known, value] : parameters_) {
    if (known == name) return value;
  }
  return std::nullopt;
}

std::optional<uint64_t> Query::Number(absl::string_view name, uint64_t least, uint64_t most) {
  const std::optional<std::string> text = Text(name);
  if (!text) return std::nullopt;
  const absl::StatusOr<uint64_t> value = ParseNumber(*text, name);
  if (value.ok() && *value >= least && *value <= most) return *value;
  Fail(value.ok()
           ? RequestIsInvalid(absl::StrCat(name, ": expected a number from ", least, " to ", most))
           : value.status());
  return std::nullopt;
}

std::optional<Digest> Query::Key(absl::string_view name) {
  const std::optional<std::string> text = Text(name);
  if (!text) return std::nullopt;
  const absl::StatusOr<Digest> digest = ParseDigest(*text, name);
  if (digest.ok()) return *digest;
  Fail(digest.status());
  return std::nullopt;
}

std::optional<size_t> Query::Choice(absl::string_view name,
                                    std::initializer_list<absl::string_view> choices) {
  const std::optional<std::string> text = Text(name);
  if (!text) return std::nullopt;
  const auto found = std::find(choices.begin(), choices.end(), *text);
  if (found != choices.end()) return static_cast<size_t>(found - choices.begin());
  Fail(RequestIsInvalid(absl::StrCat(name, ": expected one of ", absl::StrJoin(choices, ", "))));
  return std::nullopt;
}

std::optional<audit::StepState> Query::State(absl::string_view name) {
  const std::optional<size_t> state =
      Choice(name, {"unaudited", "claimed", "provisional", "confirmed", "disputed"});
  if (!state) return std::nullopt;
  return static_cast<audit::StepState>(*state);
}

bool Query::Flag(absl::string_view name) { return Choice(name, {"0", "1"}).value_or(0) == 1; }

}  // namespace lockstep::coordinator
