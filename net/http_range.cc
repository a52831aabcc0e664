// SPDX-License-Identifier: Apache-2.0
//
// See http_range.h.
#include "net/http_range.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lockstep::net {
namespace {

absl::string_view StripSpaces(absl::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<uint64_t> ParseDecimal(absl::string_view text) {
  if (text.empty()) return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return std::nullopt;
    const auto digit = static_cast<uint64_t>(c - '0');
    if (value > (std::numeric_limits<uint64_t>::max() - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return value;
}

RangeRequest ParseRange(absl::string_view header, uint64_t size) {
  constexpr absl::string_view kUnit = "bytes=";
  header = StripSpaces(header);
  if (!absl::StartsWithIgnoreCase(header, kUnit)) return {};
  header = StripSpaces(header.substr(kUnit.size()));
  const size_t dash = header.find('-');
  if (dash == absl::string_view::npos) return {};
  const absl::string_view left = header.substr(0, dash), right = header.substr(dash + 1);
  const std::optional<uint64_t> first = ParseDecimal(left), last = ParseDecimal(right);
  if (left.empty()) {  // the last so many bytes
    if (!last) return {};
    if (*last == 0 || size == 0) return {.kind = RangeRequest::kUnsatisfiable};
    const uint64_t count = std::min(*last, size);
    return {.kind = RangeRequest::kPart, .begin = size - count, .size = count};
  }
  if (!first || (!last && !right.empty()) || (last && *last < *first)) return {};
  if (*first >= size) return {.kind = RangeRequest::kUnsatisfiable};
  const uint64_t to_end = size - *first;
  const uint64_t count = last && *last - *first < to_end ? *last - *first + 1 : to_end;
  return {.kind = RangeRequest::kPart, .begin = *first, .size = count};
}

absl::StatusOr<ContentRange> ParseContentRange(absl::string_view text) {
  const auto error = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a content range such as \"bytes 0-99/1000\", found \"",
                     text.substr(0, 80), "\""));
  };
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "bytes ")) return error();
  const size_t slash = rest.find('/');
  if (slash == absl::string_view::npos) return error();
  ContentRange range;
  const absl::string_view total = rest.substr(slash + 1);
  rest = rest.substr(0, slash);
  if (total != "*") {
    range.total = ParseDecimal(total);
    if (!range.total) return error();
  }
  if (rest == "*") {
    if (!range.total) return error();
    return range;
  }
  const size_t dash = rest.find('-');
  if (dash == absl::string_view::npos) return error();
  range.first = ParseDecimal(rest.substr(0, dash));
  range.last = ParseDecimal(rest.substr(dash + 1));
  if (!range.first || !range.last || *range.last < *range.first) return error();
  if (range.total && *range.last >= *range.total) return error();
  return range;
}

std::string FormatContentRange(const ContentRange& range) {
  std::string text = "bytes ";
  if (range.first) {
    absl::StrAppend(&text, *range.first, "-", *range.last, "/");
  } else {
    absl::StrAppend(&text, "*/");
  }
  if (range.total) {
    absl::StrAppend(&text, *range.total);
  } else {
    absl::StrAppend(&text, "*");
  }
  return text;
}

}  // namespace lockstep::net
