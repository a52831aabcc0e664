// SPDX-License-Identifier: Apache-2.0
//
// Lines, and what each must be.
#include "engine/eval/json_lines.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {
namespace {

using Json = nlohmann::json;

absl::Status Expected(absl::string_view what, absl::string_view found) {
  return absl::DataLossError(absl::StrCat("expected ", what, "; found ", found));
}

// A value as a message shows it.
std::string Shown(const Json& value) {
  if (!value.is_string() && !value.is_number()) return value.type_name();
  constexpr size_t kShownMax = 40;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  return text.size() <= kShownMax ? text : text.substr(0, kShownMax) + "...";
}

absl::StatusOr<std::string> StringOf(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end()) return Expected(absl::StrCat("a key \"", key, "\""), "none");
  if (!at->is_string()) return Expected(absl::StrCat("\"", key, "\" to be a string"), Shown(*at));
  return at->get<std::string>();
}

// Calls `take` with each line's object.
absl::Status ForEachObject(const std::string& path, int64_t limit,
                           absl::FunctionRef<absl::Status(const Json&)> take) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kJsonLinesBytesMax));
  int64_t taken = 0;
  int64_t number = 0;
  for (size_t begin = 0; begin < bytes.size() && (limit == 0 || taken < limit);) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const absl::string_view line = absl::string_view(bytes).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == absl::string_view::npos) continue;
    const Json object = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) {
      return WithContext(
          Expected("a JSON object", object.is_discarded() ? "no JSON" : Shown(object)),
          absl::StrCat(path, ":", number));
    }
    LOCKSTEP_RETURN_IF_ERROR(take(object), path, ":", number);
    ++taken;
  }
  if (taken == 0) return WithContext(Expected("a JSON object a line", "no line"), path);
  return absl::OkStatus();
}

absl::StatusOr<Question> QuestionOf(const Json& object) {
  Question question;
  LOCKSTEP_ASSIGN_OR_RETURN(question.text, StringOf(object, "question"));
  if (question.text.empty()) return Expected("a question", "an empty string");
  const auto choices = object.find("choices");
  if (choices == object.end() || !choices->is_array() || choices->size() < 2 ||
      choices->size() > kChoicesMax) {
    return Expected(absl::StrCat("\"choices\", a list of 2 to ", kChoicesMax),
                    choices == object.end() ? "none"
                    : choices->is_array()   ? absl::StrCat("a list of ", choices->size())
                                            : Shown(*choices));
  }
  for (const Json& choice : *choices) {
    if (!choice.is_string() || choice.get_ref<const std::string&>().empty()) {
      return Expected("choices that are strings and not empty", Shown(choice));
    }
    question.choices.push_back(choice.get<std::string>());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string letter, StringOf(object, "answer"));
  const char last = static_cast<char>('A' + question.choices.size() - 1);
  if (letter.size() != 1 || letter[0] < 'A' || letter[0] > last) {
    return Expected(absl::StrCat("\"answer\", a letter from A to ", std::string(1, last)),
                    Shown(letter));
  }
  question.answer = static_cast<size_t>(letter[0] - 'A');
  return question;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadTexts(const std::string& path, int64_t limit) {
  std::vector<std::string> texts;
  size_t bytes = 0;
  LOCKSTEP_RETURN_IF_ERROR(ForEachObject(path, limit, [&](const Json& object) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(texts.emplace_back(), StringOf(object, "text"));
    bytes += texts.back().size();
    return absl::OkStatus();
  }));
  if (bytes == 0) return WithContext(Expected("text", "empty texts only"), path);
  return texts;
}

absl::StatusOr<std::vector<Question>> ReadQuestions(const std::string& path, int64_t limit) {
  std::vector<Question> questions;
  LOCKSTEP_RETURN_IF_ERROR(ForEachObject(path, limit, [&](const Json& object) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(questions.emplace_back(), QuestionOf(object));
    return absl::OkStatus();
  }));
  return questions;
}

absl::StatusOr<std::vector<std::string>> ExpandFolders(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const size_t before = files.size();
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
    for (const std::string& name : names) {
      if (absl::EndsWith(name, ".jsonl")) files.push_back(absl::StrCat(path, "/", name));
    }
    if (files.size() == before) {
      return absl::NotFoundError(absl::StrCat(path, ": expected *.jsonl files in it; found none"));
    }
  }
  return files;
}

}  // namespace lockstep::engine
