// SPDX-License-Identifier: Apache-2.0
//
// The verifier against every kind of damage: it names the first bad chunk, and the same one
// whatever the number of threads.
#include "engine/data/verify.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "engine/data/testing/memory_corpus.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MakeMemoryCorpus;
using testing::MemoryCorpus;
using testing::Tokens;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() : corpus_(Corpus(300)) { WriteAll(); }

  // Two sources; "web" has a second shard.
  static MemoryCorpus Corpus(uint32_t vocab_size) {
    std::vector<Tokens> documents;
    for (int i = 0; i < 90; ++i) documents.push_back(Tokens(99, 1 + i));
    return MakeMemoryCorpus({{"code", {documents}, {}}, {"web", {documents, documents}, {}}},
                            vocab_size);
  }
  void WriteAll() {
    WriteBytes(folder_ / "manifest.json", SerializeManifest(*corpus_.manifest));
    for (const auto& [id, bytes] : corpus_.files->files) {
      WriteBytes(folder_ / NameOf(*corpus_.manifest, id), bytes);
    }
  }
  absl::StatusOr<VerifyReport> Verify(int threads, std::optional<Digest> manifest = std::nullopt) {
    ThreadPool pool(threads);
    seen_ = 0;
    return VerifyCorpus(
        folder_.path(), manifest, pool,
        {.progress = [&](int64_t bytes) { seen_ += bytes; }, .interrupted = [] { return false; }});
  }
  void ExpectBad(const std::string& message) {
    std::string first;
    for (int threads : {1, 2, 5}) {
      const auto report = Verify(threads);
      ASSERT_THAT(report, StatusIs(kDataLoss, HasSubstr(message)));
      if (first.empty()) first = std::string(report.status().message());
      EXPECT_EQ(report.status().message(), first) << threads << " threads";
    }
  }
  void Damage(const std::string& file, size_t offset) {
    std::string bytes = ReadBytes(folder_ / file);
    bytes[offset] ^= 0x40;
    WriteBytes(folder_ / file, bytes);
  }

  TemporaryFolder folder_;
  MemoryCorpus corpus_;
  int64_t seen_ = 0;
};

TEST_F(VerifyTest, GoodCorpusIsGood) {
  for (int threads : {1, 3}) {
    const auto report = Verify(threads, ManifestDigest(*corpus_.manifest));
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->files, 12);
    EXPECT_EQ(report->chunks, 15);
    EXPECT_EQ(report->documents, 270);
    EXPECT_EQ(report->tokens, 27000);
    EXPECT_EQ(report->bytes, CorpusBytes(*corpus_.manifest));
    EXPECT_EQ(seen_, report->bytes);
  }
}

TEST_F(VerifyTest, EveryBadChunkIsNamed) {
  const std::string good = ReadBytes(folder_ / "web/00001.tokens");
  for (size_t at = 0; at < good.size(); at += 511) {
    Damage("web/00001.tokens", at);
    ExpectBad(absl::StrCat("web/00001.tokens: chunk ", at / 4096, " at byte offset ",
                           at / 4096 * 4096, ": expected digest"));
    WriteBytes(folder_ / "web/00001.tokens", good);
  }
}

TEST_F(VerifyTest, TheFirstOfSeveralIsNamed) {
  Damage("web/00001.tokens", 0);
  Damage("web/00000.tokens", 17000);
  Damage("web/00000.tokens", 9000);
  ExpectBad("web/00000.tokens: chunk 2 at byte offset 8192");
  Damage("code/00000.tokens", 16384);
  ExpectBad("code/00000.tokens: chunk 4 at byte offset 16384");
}

TEST_F(VerifyTest, FilesThatAreCutOrGrown) {
  const std::string good = ReadBytes(folder_ / "web/00000.tokens");
  for (size_t size : {0, 1, 4095, 4096, 9000, 17999}) {
    WriteBytes(folder_ / "web/00000.tokens", good.substr(0, size));
    ExpectBad(absl::StrCat("web/00000.tokens: chunk ", size / 4096, " at byte offset ",
                           size / 4096 * 4096, ": the file has ", size, " bytes, expected 18000"));
  }
  WriteBytes(folder_ / "web/00000.tokens", good + "x");
  ExpectBad("the file has 18001 bytes, expected 18000");
  // Damage before the end is named before the end's lack.
  std::string both = good.substr(0, 9000);
  both[5] ^= 1;
  WriteBytes(folder_ / "web/00000.tokens", both);
  ExpectBad("web/00000.tokens: chunk 0 at byte offset 0: expected digest");
}

TEST_F(VerifyTest, TheOtherFiles) {
  for (const char* file : {"web/00000.index", "web/00000.names", "web/00000.chunks"}) {
    const std::string good = ReadBytes(folder_ / file);
    for (size_t at = 0; at < good.size(); at += good.size() / 7) {
      Damage(file, at);
      ExpectBad(file);
      WriteBytes(folder_ / file, good);
    }
    WriteBytes(folder_ / file, good.substr(1));
    ExpectBad(absl::StrCat(file, ": expected ", good.size(), " bytes, found ", good.size() - 1));
    WriteBytes(folder_ / file, good + "x");
    ExpectBad(absl::StrCat(file, ": expected ", good.size(), " bytes, found more"));
    WriteBytes(folder_ / file, good);
  }
}

TEST_F(VerifyTest, FilesThatAreNotThere) {
  fs::remove(folder_ / "web/00001.tokens");
  EXPECT_THAT(Verify(1), StatusIs(absl::StatusCode::kNotFound, HasSubstr("web/00001.tokens")));
  fs::remove(folder_ / "manifest.json");
  EXPECT_THAT(Verify(1), StatusIs(absl::StatusCode::kNotFound, HasSubstr("manifest.json")));
}

TEST_F(VerifyTest, AnotherManifest) {
  EXPECT_THAT(Verify(1, Sha256(AsBytes("x"))),
              StatusIs(kDataLoss, AllOf(HasSubstr("manifest.json"), HasSubstr("another corpus"))));
  Damage("manifest.json", 3);
  EXPECT_THAT(Verify(1), StatusIs(kDataLoss, HasSubstr("manifest.json")));
}

// Digests may all be right and the tokens wrong all the same: who built it made a mistake, or
// worse.
TEST_F(VerifyTest, TokensThatBreakTheRulesUnderGoodDigests) {
  const auto rebuild = [&](uint32_t vocab_size, size_t token, uint32_t value) {
    corpus_ = Corpus(vocab_size);
    const ShardFileId tokens = {1, 1, ShardFile::kTokens}, chunks = {1, 1, ShardFile::kChunks};
    std::string& bytes = corpus_.files->files[tokens];
    const uint32_t width = corpus_.manifest->token_bytes;
    for (uint32_t i = 0; i < width; ++i) {
      bytes[token * width + i] = static_cast<char>(value >> (8 * i));
    }
    ShardEntry& shard = corpus_.manifest->sources[1].shards[1];
    corpus_.files->files[chunks] = testing::ChunkDigests(bytes, 4096, &shard.root);
    for (const ShardFileId& id : {tokens, chunks}) {
      const std::string& file = corpus_.files->files[id];
      shard.file(id.file) = {file.size(), Sha256(AsBytes(file))};
    }
    WriteAll();
  };
  rebuild(300, 150, 300);
  ExpectBad(
      "web/00001.tokens: byte offset 300, document 1: expected a token below 300 that is not "
      "the separator, found 300");
  rebuild(300, 150, 0);
  ExpectBad(
      "byte offset 300, document 1: expected a token below 300 that is not the separator, "
      "found 0");
  rebuild(300, 199, 7);
  ExpectBad("byte offset 398, document 1: expected the separator 0, found 7");
  rebuild(70000, 150, 70000);
  ExpectBad("byte offset 600, document 1: expected a token below 70000");
}

TEST_F(VerifyTest, Interrupts) {
  ThreadPool pool(1);
  EXPECT_THAT(VerifyCorpus(folder_.path(), std::nullopt, pool,
                           {.progress = [](int64_t) {}, .interrupted = [] { return true; }}),
              StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace lockstep::engine
