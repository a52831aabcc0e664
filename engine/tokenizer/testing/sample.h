// SPDX-License-Identifier: Apache-2.0
//
// The built-in sample of text (tests/data/sample) and the tokenizer learnt from it, for tests.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_TESTING_SAMPLE_H_
#define LOCKSTEP_ENGINE_TOKENIZER_TESTING_SAMPLE_H_

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/testing/source_dir.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine::testing {

inline const std::string kSampleFolder = lockstep::testing::SourcePath("tests/data/sample");
// Of 1,024 entries, learnt from SampleFiles() as raw text; "<|endoftext|>" and "<|pad|>" are
// special.
inline const std::string kSampleTokenizer =
    lockstep::testing::SourcePath("tests/data/tokenizer/sample.tokenizer");
// What tokenizers by others make of hard texts and of the sample's documents with it;
// tests/tokenizer_peers/vectors.mjs describes it.
inline const std::string kPeerIds =
    lockstep::testing::SourcePath("tests/data/tokenizer/peer_ids.json");

inline std::string ReadAll(const std::string& path) {
  return ReadFile(path, size_t{1} << 30).value();
}

// web.jsonl, math.jsonl, and all of edu/ and code/.
inline std::vector<std::string> SampleFiles() {
  std::vector<std::string> files = {kSampleFolder + "/web.jsonl", kSampleFolder + "/math.jsonl"};
  for (const char* folder : {"/edu", "/code"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kSampleFolder + folder)) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The id and the text of each document of web.jsonl, valid UTF-8.
inline std::vector<std::pair<std::string, std::string>> SampleDocuments() {
  std::vector<std::pair<std::string, std::string>> documents;
  const std::string lines = ReadAll(kSampleFolder + "/web.jsonl");
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const auto document = nlohmann::json::parse(line.begin(), line.end());
    documents.emplace_back(document.at("id"), document.at("text"));
  }
  return documents;
}

}  // namespace lockstep::engine::testing

#endif  // LOCKSTEP_ENGINE_TOKENIZER_TESTING_SAMPLE_H_
