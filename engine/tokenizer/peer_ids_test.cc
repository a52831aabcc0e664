// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer learnt from the built-in sample, and the ids that tokenizers by others give with
// it. scripts/check-tokenizer-peers makes those ids, and compares much more.
#include <string>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "base/testing/status_matchers.h"
#include "engine/tokenizer/formats.h"
#include "engine/tokenizer/testing/sample.h"
#include "engine/tokenizer/testing/tokenizers.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/train.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using testing::Encode;
using testing::ReadAll;

const std::vector<std::string> kSpecial = {"<|endoftext|>", "<|pad|>"};

nlohmann::json PeerIds() { return nlohmann::json::parse(ReadAll(testing::kPeerIds)); }

std::vector<uint8_t> LittleEndian(const std::vector<int32_t>& ids) {
  std::vector<uint8_t> bytes;
  for (const int32_t id : ids) {
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(id >> shift));
  }
  return bytes;
}

// What training gives today it gives for ever: manifests name tokenizers by their digest.
TEST(SampleTokenizerTest, IsWhatTrainingGives) {
  for (int threads : {1, 3}) {
    for (int64_t part_bytes : {997, 1 << 20}) {
      std::vector<std::unique_ptr<TextSource>> sources;
      for (const std::string& file : testing::SampleFiles()) {
        sources.push_back(OpenTextFile(file, part_bytes).value());
      }
      ThreadPool pool(threads);
      const auto vocabulary =
          TrainVocabulary(*JoinSources(std::move(sources)), 1024, kSpecial, pool, TrainHooks());
      EXPECT_EQ(SerializeVocabulary(vocabulary.value()), ReadAll(testing::kSampleTokenizer))
          << threads << " threads, parts of " << part_bytes;
    }
  }
  EXPECT_EQ(Tokenizer::Load(testing::kSampleTokenizer).value()->digest().ToHex(),
            "000bfaae138e2e3a8d2d770c8779e700d7d5970d167035da7caa0bc81d0e4288");
}

TEST(PeerIdsTest, HardTexts) {
  const auto tokenizer = Tokenizer::Load(testing::kSampleTokenizer).value();
  const nlohmann::json cases = PeerIds().at("cases");
  EXPECT_GE(cases.size(), 40u);
  for (const nlohmann::json& entry : cases) {
    const std::string text = entry.at("text");
    const std::vector<int32_t> ids = entry.at("ids");
    EXPECT_EQ(Encode(*tokenizer, text), ids) << entry;
    EXPECT_THAT(tokenizer->Decode(ids), IsOkAndHolds(text));
  }
}

TEST(PeerIdsTest, DocumentsOfTheSample) {
  const auto tokenizer = Tokenizer::Load(testing::kSampleTokenizer).value();
  const nlohmann::json expected = PeerIds().at("sample");
  const auto documents = testing::SampleDocuments();
  ASSERT_EQ(documents.size(), expected.size());
  for (size_t i = 0; i < documents.size(); ++i) {
    const std::vector<int32_t> ids = Encode(*tokenizer, documents[i].second);
    EXPECT_EQ(expected[i].at("id"), documents[i].first);
    EXPECT_EQ(expected[i].at("tokens"), ids.size()) << documents[i].first;
    EXPECT_EQ(expected[i].at("sha256"), Sha256(LittleEndian(ids)).ToHex()) << documents[i].first;
  }
}

TEST(PeerIdsTest, BothFormatsLeadBack) {
  const auto tokenizer = Tokenizer::Load(testing::kSampleTokenizer).value();
  const Vocabulary& v = tokenizer->vocabulary();
  EXPECT_THAT(ImportTiktoken(ExportTiktoken(v), kSpecial), IsOkAndHolds(v));
  EXPECT_THAT(ImportHuggingFace(ExportHuggingFace(*tokenizer).value()), IsOkAndHolds(v));
}

}  // namespace
}  // namespace lockstep::engine
