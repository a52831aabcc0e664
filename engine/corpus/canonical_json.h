// SPDX-License-Identifier: Apache-2.0
//
// Manifests are canonical JSON: keys sorted, no white space between tokens, integers the only
// numbers, so that one content has one text and one digest. Reading takes untrusted bytes and
// accepts nothing else.
#ifndef LOCKSTEP_ENGINE_CORPUS_CANONICAL_JSON_H_
#define LOCKSTEP_ENGINE_CORPUS_CANONICAL_JSON_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {

// DataLoss if the text is no JSON object, nested more than 16 deep, or not canonical (among others:
// a key twice).
absl::StatusOr<nlohmann::json> ParseCanonicalJson(absl::string_view text);

// One object, read key by key. The first thing that is amiss stays, and every read after it gives a
// harmless default; Finish() returns it, or complains about a key that nobody asked for. All errors
// are DataLoss.
class JsonReader {
 public:
  // `json` must outlive the reader; `where` begins its messages.
  JsonReader(const nlohmann::json& json, std::string where);

  int64_t Integer(const char* key, int64_t least, int64_t most);
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
  const nlohmann::json* Find(const char* key, absl::string_view expected);

  const nlohmann::json& json_;
  std::string where_;
  std::set<std::string> asked_;
  absl::Status status_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_CANONICAL_JSON_H_
