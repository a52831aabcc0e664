// SPDX-License-Identifier: Apache-2.0
//
// Matching of path patterns: names one by one, and in both levels only the last star is ever tried
// again, so that no pattern takes exponential time.
#include "engine/corpus/glob.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_split.h"

namespace lockstep::engine {
namespace {

// Whether `c` fits the pattern's first item, which is not a star, and the item's length. A '[' that
// no ']' closes is an ordinary character.
bool ItemMatches(absl::string_view pattern, char c, size_t* item_size) {
  *item_size = 1;
  if (pattern[0] == '?') return true;
  if (pattern[0] != '[') return pattern[0] == c;
  const bool negated = pattern.size() > 1 && (pattern[1] == '!' || pattern[1] == '^');
  const size_t first = negated ? 2 : 1;
  const size_t close = pattern.find(']', first + 1);
  if (close == absl::string_view::npos) return c == '[';
  *item_size = close + 1;
  bool in_set = false;
  const auto byte = static_cast<uint8_t>(c);
  for (size_t i = first; i < close; ++i) {
    if (i + 2 < close && pattern[i + 1] == '-') {
      in_set |=
          static_cast<uint8_t>(pattern[i]) <= byte && byte <= static_cast<uint8_t>(pattern[i + 2]);
      i += 2;
    } else {
      in_set |= pattern[i] == c;
    }
  }
  return in_set != negated;
}

bool NameMatches(absl::string_view pattern, absl::string_view name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = absl::string_view::npos;  // where the pattern goes on after its last star
  size_t star_end = 0;                    // where in the name that star's characters end
  while (n < name.size()) {
    size_t item_size = 0;
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_end = n;
    } else if (p < pattern.size() && ItemMatches(pattern.substr(p), name[n], &item_size)) {
      p += item_size;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star;
      n = ++star_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

bool GlobMatches(absl::string_view pattern, absl::string_view path) {
  const std::vector<absl::string_view> patterns = absl::StrSplit(pattern, '/');
  const std::vector<absl::string_view> names = absl::StrSplit(path, '/');
  size_t p = 0;
  size_t n = 0;
  size_t star = SIZE_MAX;
  size_t star_end = 0;
  while (n < names.size()) {
    if (p < patterns.size() && patterns[p] == "**") {
      star = ++p;
      star_end = n;
    } else if (p < patterns.size() && NameMatches(patterns[p], names[n])) {
      ++p;
      ++n;
    } else if (star != SIZE_MAX) {
      p = star;
      n = ++star_end;
    } else {
      return false;
    }
  }
  while (p < patterns.size() && patterns[p] == "**") ++p;
  return p == patterns.size();
}

bool HasGlobCharacters(absl::string_view pattern) {
  return pattern.find_first_of("*?[") != absl::string_view::npos;
}

std::string GlobPrefix(absl::string_view pattern) {
  const size_t special = pattern.find_first_of("*?[");
  if (special == absl::string_view::npos) return std::string(pattern);
  const size_t slash = pattern.rfind('/', special);
  return slash == absl::string_view::npos ? "" : std::string(pattern.substr(0, slash));
}

}  // namespace lockstep::engine
