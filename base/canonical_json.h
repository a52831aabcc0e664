// SPDX-License-Identifier: Apache-2.0
//
// Canonical JSON (RFC 8785), so that one content has one text and one digest: keys sorted, no white
// space between tokens, every number as ECMAScript prints the binary64 that it stands for. Reading
// takes untrusted bytes and accepts canonical objects only. The values are nlohmann's.
#ifndef LOCKSTEP_BASE_CANONICAL_JSON_H_
#define LOCKSTEP_BASE_CANONICAL_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"
#include "nlohmann/json.hpp"

namespace lockstep {

// The largest integer that every reader of JSON takes as it is written: 2^53 - 1. Larger ones, such
// as digests, are written as strings.
inline constexpr int64_t kJsonIntegerMax = (int64_t{1} << 53) - 1;

// The canonical text. InvalidArgument if `json` has none: text that is not UTF-8, a number that is
// not finite, or an integer beyond kJsonIntegerMax in magnitude.
absl::StatusOr<std::string> CanonicalJson(const nlohmann::json& json);

// A number as it stands in canonical JSON: ECMA-262's Number::toString. `value` is finite.
std::string CanonicalNumber(double value);

// DataLoss if the text is no JSON object, nested more than 16 deep, or not canonical (among others:
// a key twice; a number with more digits than it needs, or with more than a binary64 holds).
absl::StatusOr<nlohmann::json> ParseCanonicalJson(absl::string_view text);

// One object, read key by key. The first thing that is amiss stays, and every read after it gives a
// harmless default; Finish() returns it, or complains about a key that nobody asked for. All errors
// are DataLoss.
class JsonReader {
 public:
  // `json` must outlive the reader; `where` begins its messages.
  JsonReader(const nlohmann::json& json, std::string where);

  // For keys that may be absent. Does not count as asking for it.
  bool Has(const char* key) const { return json_.contains(key); }

  int64_t Integer(const char* key, int64_t least, int64_t most);
  // Any number, whole or not. `least` and `most` are finite.
  double Number(const char* key, double least, double most);
  // Of 0 to bytes_max bytes.
  std::string String(const char* key, size_t bytes_max);
  Digest Sha256Digest(const char* key);
  // An array of at most items_max items; an empty one after an error.
  const nlohmann::json& Array(const char* key, size_t items_max);
  // An object; an empty one after an error. Its own reader looks inside.
  const nlohmann::json& Object(const char* key);

  const std::string& where() const { return where_; }
  // For checks of values.
  void Fail(absl::string_view key, absl::string_view expected, absl::string_view found);
  // Takes over the outcome of a reader of a part.
  void Join(absl::Status status);
  bool ok() const { return status_.ok(); }
  absl::Status Finish();

 private:
  // nullptr after an error, or if it is not there, which is one.
  const nlohmann::json* Find(const char* key, absl::FunctionRef<std::string()> expected);

  const nlohmann::json& json_;
  std::string where_;
  std::vector<const std::string*> asked_;  // keys that are there, in json_
  absl::Status status_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_CANONICAL_JSON_H_
