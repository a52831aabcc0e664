// SPDX-License-Identifier: Apache-2.0
//
// Files of JSON objects, one a line, from anyone: texts to predict, questions to answer. Formats:
// docs/evaluation.md.
#ifndef LOCKSTEP_ENGINE_EVAL_JSON_LINES_H_
#define LOCKSTEP_ENGINE_EVAL_JSON_LINES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::engine {

inline constexpr size_t kJsonLinesBytesMax = size_t{1} << 30;  // of a file
inline constexpr size_t kChoicesMax = 26;                      // a letter each

struct Question {
  std::string text;
  std::vector<std::string> choices;  // 2 to kChoicesMax
  size_t answer = 0;                 // of the choices
  bool operator==(const Question&) const = default;
};

// The objects' "text", in order; of the first `limit` lines with an object, 0: of all. Lines of
// nothing but blanks are passed over. DataLoss names the line, what was expected and what was
// found; a file without any text is one, too.
absl::StatusOr<std::vector<std::string>> ReadTexts(const std::string& path, int64_t limit);

// The objects' "question", "choices" and "answer" (a letter, A for the first choice), likewise.
absl::StatusOr<std::vector<Question>> ReadQuestions(const std::string& path, int64_t limit);

// The names of the *.jsonl files for each folder among the paths, in order, and the other paths as
// they are. NotFound for a folder with none.
absl::StatusOr<std::vector<std::string>> ExpandFolders(const std::vector<std::string>& paths);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_EVAL_JSON_LINES_H_
