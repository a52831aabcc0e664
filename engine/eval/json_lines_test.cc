// SPDX-License-Identifier: Apache-2.0
//
// That files of texts and questions are read as they are, and that what is wrong in one is told
// with its line.
#include "engine/eval/json_lines.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/temporary_folder.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

constexpr char kQuestion[] =
    R"({"answer":"B","choices":["Red","Blue"],"id":"1","question":"Which?"})";

class JsonLinesTest : public ::testing::Test {
 protected:
  std::string File(absl::string_view bytes) {
    WriteBytes(folder_ / "file.jsonl", bytes);
    return folder_ / "file.jsonl";
  }
  TemporaryFolder folder_;
};

TEST_F(JsonLinesTest, Texts) {
  const std::string path =
      File("{\"text\":\"one\\n\",\"id\":7}\n\n \t\r\n{\"text\":\"\"}\n{\"text\":\"tv\\u00e5\"}");
  EXPECT_EQ(*ReadTexts(path, 0), (std::vector<std::string>{"one\n", "", "tv\u00e5"}));
  EXPECT_EQ(*ReadTexts(path, 1), (std::vector<std::string>{"one\n"}));
  EXPECT_EQ(ReadTexts(path, 99)->size(), 3u);
}

TEST_F(JsonLinesTest, Questions) {
  const auto questions = ReadQuestions(File(absl::StrCat(kQuestion, "\n", kQuestion, "\n")), 0);
  const Question expected = {.text = "Which?", .choices = {"Red", "Blue"}, .answer = 1};
  EXPECT_EQ(*questions, (std::vector<Question>{expected, expected}));
}

TEST_F(JsonLinesTest, WrongTexts) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "expected a JSON object a line"},
      {"\n\n", "expected a JSON object a line"},
      {"{\"text\":\"a\"}\n{\"text\":\n", ":2: expected a JSON object; found no JSON"},
      {"{\"text\":\"a\"} x\n", ":1: expected a JSON object; found no JSON"},
      {"\n[1]\n", ":2: expected a JSON object; found array"},
      {"{\"texts\":\"a\"}\n", ":1: expected a key \"text\"; found none"},
      {"{\"text\":12}\n", ":1: expected \"text\" to be a string; found 12"},
      {"{\"text\":null}\n", "found null"},
      {"{\"text\":\"\xff\xfe\"}\n", ":1: expected a JSON object; found no JSON"},
      {"{\"text\":\"\"}\n", "expected text; found empty texts only"},
      {std::string("\0\0\0", 3), ":1: expected a JSON object; found no JSON"},
      {std::string(200000, '['), ":1: expected a JSON object; found no JSON"},
  };
  for (const auto& [bytes, message] : cases) {
    const absl::Status status = ReadTexts(File(bytes), 0).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_NE(status.message().find(message), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find("file.jsonl"), absl::string_view::npos) << status;
  }
}

TEST_F(JsonLinesTest, WrongQuestions) {
  std::string many = R"({"question":"q","answer":"A","choices":["a")";
  for (int i = 0; i < 26; ++i) many += ",\"a\"";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"question":"q","choices":["a","b"]})", "a key \"answer\"; found none"},
      {R"({"question":"q","choices":["a","b"],"answer":"C"})", "a letter from A to B; found \"C\""},
      {R"({"question":"q","choices":["a","b"],"answer":"b"})", "found \"b\""},
      {R"({"question":"q","choices":["a","b"],"answer":"AB"})", "found \"AB\""},
      {R"({"question":"q","choices":["a","b"],"answer":""})", "found \"\""},
      {R"({"question":"q","choices":["a","b"],"answer":1})", "to be a string; found 1"},
      {R"({"question":"q","choices":["a"],"answer":"A"})", "a list of 2 to 26; found a list of 1"},
      {R"({"question":"q","choices":"ab","answer":"A"})", "found \"ab\""},
      {R"({"question":"q","answer":"A"})", "a list of 2 to 26; found none"},
      {R"({"question":"q","choices":["a",""],"answer":"A"})", "not empty; found \"\""},
      {R"({"question":"q","choices":["a",{}],"answer":"A"})", "not empty; found object"},
      {R"({"question":"","choices":["a","b"],"answer":"A"})", "a question; found an empty string"},
      {R"({"choices":["a","b"],"answer":"A"})", "a key \"question\""},
      {many + "]}", "found a list of 27"},
  };
  for (const auto& [line, message] : cases) {
    const absl::Status status =
        ReadQuestions(File(absl::StrCat(kQuestion, "\n", line, "\n")), 0).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_NE(status.message().find(message), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find("file.jsonl:2: "), absl::string_view::npos) << status;
  }
}

TEST_F(JsonLinesTest, FilesThatCannotBeRead) {
  EXPECT_TRUE(absl::IsNotFound(ReadTexts(folder_ / "none.jsonl", 0).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadTexts(folder_.path(), 0).status()));
}

TEST_F(JsonLinesTest, Folders) {
  WriteBytes(folder_ / "in/b.jsonl", "");
  WriteBytes(folder_ / "in/a.jsonl", "");
  WriteBytes(folder_ / "in/c.txt", "");
  EXPECT_EQ(*ExpandFolders({"x.jsonl", folder_ / "in"}),
            (std::vector<std::string>{"x.jsonl", folder_ / "in/a.jsonl", folder_ / "in/b.jsonl"}));
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_TRUE(absl::IsNotFound(ExpandFolders({folder_ / "empty"}).status()));
}

}  // namespace
}  // namespace lockstep::engine
