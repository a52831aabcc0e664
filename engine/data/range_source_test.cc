// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a corpus from folders and from sources that lie: a VerifiedRangeSource gives right bytes
// or an error, asks for whole chunks and no more, and goes to the next source for what one has not.
#include "engine/data/range_source.h"

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "engine/data/open_corpus.h"
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
using testing::MemoryRangeSource;
using testing::MemorySource;
using testing::Tokens;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr ShardFileId kTokens = {0, 0, ShardFile::kTokens};
constexpr ShardFileId kIndex = {0, 0, ShardFile::kIndex};
constexpr ShardFileId kChunks = {0, 0, ShardFile::kChunks};

// One shard of five chunks, the last one short.
MemoryCorpus Corpus() {
  std::vector<Tokens> documents;
  for (int i = 0; i < 90; ++i) documents.push_back(Tokens(99, 1 + i));
  return MakeMemoryCorpus({{"web", {documents}, {}}});
}

std::vector<std::shared_ptr<RangeSource>> Sources(std::vector<std::shared_ptr<RangeSource>> list) {
  return list;
}

absl::StatusOr<std::string> Read(RangeSource& source, const ShardFileId& id, uint64_t begin,
                                 uint64_t size) {
  std::string bytes(size, '\xee');
  const absl::Status status =
      source.Read(id, begin, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
  if (!status.ok()) return status;
  return bytes;
}

TEST(VerifiedRangeSource, GivesEveryRange) {
  const MemoryCorpus corpus = Corpus();
  const std::string& tokens = corpus.files->files[kTokens];
  ASSERT_EQ(tokens.size(), 18000);
  VerifiedRangeSource source(Sources({corpus.files}), corpus.manifest);
  for (uint64_t begin = 0; begin <= tokens.size(); begin += 611) {
    for (uint64_t size : {0, 1, 4095, 4096, 4097, 9000, 17000}) {
      if (begin + size > tokens.size()) continue;
      ASSERT_THAT(Read(source, kTokens, begin, size), IsOkAndHolds(tokens.substr(begin, size)));
    }
  }
  EXPECT_EQ(corpus.files->reads[ShardFile::kChunks], 1);
  EXPECT_THAT(Read(source, kTokens, 17999, 2), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Read(source, kTokens, UINT64_MAX, 1), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(VerifiedRangeSource, AsksForNeighbouringChunksAtOnceAndRemembersThem) {
  const MemoryCorpus corpus = Corpus();
  VerifiedRangeSource source(Sources({corpus.files}), corpus.manifest);
  EXPECT_THAT(Read(source, kTokens, 4000, 12000), IsOk());
  EXPECT_EQ(corpus.files->reads[ShardFile::kTokens], 1);
  EXPECT_THAT(Read(source, kTokens, 0, 16000), IsOk());
  EXPECT_EQ(corpus.files->reads[ShardFile::kTokens], 1);
  EXPECT_THAT(Read(source, kTokens, 0, 18000), IsOk());
  EXPECT_EQ(corpus.files->reads[ShardFile::kTokens], 2);
}

TEST(VerifiedRangeSource, ForgetsWhatWasReadLongAgo) {
  const MemoryCorpus corpus = Corpus();
  VerifiedRangeSource source(Sources({corpus.files}), corpus.manifest, nullptr,
                             /*bytes_max=*/2 * 4096 + 160);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t chunk : {0, 1, 2, 3}) EXPECT_THAT(Read(source, kTokens, 4096 * chunk, 9), IsOk());
  }
  EXPECT_EQ(corpus.files->reads[ShardFile::kTokens], 8);
}

TEST(VerifiedRangeSource, NamesTheBadChunk) {
  MemoryCorpus corpus = Corpus();
  corpus.files->files[kTokens][2 * 4096 + 5] ^= 1;
  VerifiedRangeSource source(Sources({corpus.files}), corpus.manifest);
  EXPECT_THAT(Read(source, kTokens, 0, 8192), IsOk());  // other chunks are good
  EXPECT_THAT(Read(source, kTokens, 12288, 100), IsOk());
  EXPECT_THAT(
      Read(source, kTokens, 9000, 10),
      StatusIs(kDataLoss, AllOf(HasSubstr("memory/0/0/0"), HasSubstr("chunk 2 at byte offset 8192"),
                                HasSubstr("expected digest"))));
  // Nothing bad was kept: good at the source, good here.
  corpus.files->files[kTokens][2 * 4096 + 5] ^= 1;
  EXPECT_THAT(Read(source, kTokens, 9000, 10), IsOk());
}

TEST(VerifiedRangeSource, ChecksTheOtherFilesAsAWhole) {
  for (const ShardFileId& id : {kIndex, kChunks, ShardFileId{0, 0, ShardFile::kNames}}) {
    MemoryCorpus corpus = Corpus();
    const std::string good = corpus.files->files[id];
    for (size_t at : {size_t{0}, good.size() / 2, good.size() - 1}) {
      corpus.files->files[id] = good;
      corpus.files->files[id][at] ^= 0x10;
      VerifiedRangeSource source(Sources({corpus.files}), corpus.manifest);
      EXPECT_THAT(Read(source, id, 0, 8), StatusIs(kDataLoss, HasSubstr("expected")));
    }
  }
  // Tokens cannot be had without good chunk digests.
  MemoryCorpus corpus = Corpus();
  corpus.files->files[kChunks][40] ^= 1;
  VerifiedRangeSource source(Sources({corpus.files}), corpus.manifest);
  EXPECT_THAT(Read(source, kTokens, 0, 8), StatusIs(kDataLoss, HasSubstr("root")));
}

TEST(VerifiedRangeSource, GoesToTheNextSourceForWhatOneHasNot) {
  MemoryCorpus corpus = Corpus();
  const std::string tokens = corpus.files->files[kTokens];
  const auto other = std::make_shared<MemoryRangeSource>(*corpus.files);
  corpus.files->files[kTokens][0] ^= 1;      // each has a chunk
  other->files[kTokens][3 * 4096 + 1] ^= 1;  // that the other has not
  VerifiedRangeSource source(Sources({corpus.files, other}), corpus.manifest);
  EXPECT_THAT(Read(source, kTokens, 0, 18000), IsOkAndHolds(tokens));
  other->files[kTokens][0] ^= 1;
  VerifiedRangeSource fresh(Sources({corpus.files, other}), corpus.manifest);
  EXPECT_THAT(Read(fresh, kTokens, 0, 100),
              StatusIs(kDataLoss, AllOf(HasSubstr("no source has it good"),
                                        HasSubstr("chunk 0 at byte offset 0"))));
  EXPECT_THAT(Read(fresh, kTokens, 4096, 13904), IsOkAndHolds(tokens.substr(4096)));
  // If one of them may have it later, so may we.
  other->reads_left = 0;
  EXPECT_THAT(Read(fresh, kTokens, 0, 100), StatusIs(kUnavailable));
}

TEST(VerifiedRangeSource, FillsACacheThatServesAlone) {
  const TemporaryFolder folder;
  MemoryCorpus corpus = Corpus();
  const std::string tokens = corpus.files->files[kTokens];
  const auto cache = std::make_shared<FolderRangeSource>(folder.path(), corpus.manifest);
  {
    VerifiedRangeSource source(Sources({cache, corpus.files}), corpus.manifest, cache);
    EXPECT_THAT(Read(source, kTokens, 5000, 100), IsOkAndHolds(tokens.substr(5000, 100)));
    EXPECT_THAT(Read(source, kTokens, 17000, 1000), IsOkAndHolds(tokens.substr(17000)));
  }
  EXPECT_EQ(corpus.files->reads[ShardFile::kTokens], 2);
  corpus.files->files.clear();
  VerifiedRangeSource source(Sources({cache, corpus.files}), corpus.manifest, cache);
  EXPECT_THAT(Read(source, kTokens, 5000, 100), IsOkAndHolds(tokens.substr(5000, 100)));
  EXPECT_THAT(Read(source, kTokens, 17000, 1000), IsOkAndHolds(tokens.substr(17000)));
  EXPECT_THAT(Read(source, kTokens, 0, 100), StatusIs(kDataLoss));  // a hole
  EXPECT_EQ(fs::file_size(folder / "web/00000.tokens"), 18000);
}

TEST(VerifiedRangeSource, RepairsACacheThatWasTorn) {
  const TemporaryFolder folder;
  MemoryCorpus corpus = Corpus();
  const auto cache = std::make_shared<FolderRangeSource>(folder.path(), corpus.manifest);
  const std::string tokens = corpus.files->files[kTokens];
  {
    VerifiedRangeSource source(Sources({cache, corpus.files}), corpus.manifest, cache);
    EXPECT_THAT(Read(source, kTokens, 0, 18000), IsOk());
  }
  fs::resize_file(folder / "web/00000.tokens", 6000);
  VerifiedRangeSource source(Sources({cache, corpus.files}), corpus.manifest, cache);
  EXPECT_THAT(Read(source, kTokens, 0, 18000), IsOkAndHolds(tokens));
  EXPECT_EQ(ReadBytes(folder / "web/00000.tokens"), tokens);
}

TEST(VerifiedRangeSource, ManyThreadsAtATime) {
  MemoryCorpus corpus = Corpus();
  const std::string tokens = corpus.files->files[kTokens];
  const TemporaryFolder folder;
  for (const auto& [id, bytes] : corpus.files->files) {
    WriteBytes(folder / NameOf(*corpus.manifest, id), bytes);
  }
  VerifiedRangeSource source(
      Sources({std::make_shared<FolderRangeSource>(folder.path(), corpus.manifest)}),
      corpus.manifest, nullptr, /*bytes_max=*/3 * 4096);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 500; ++i) {
        const uint64_t begin = (i * 7919 + t * 3001) % 17000;
        EXPECT_THAT(Read(source, kTokens, begin, 1000), IsOkAndHolds(tokens.substr(begin, 1000)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(FolderRangeSource, ErrorsNameTheFile) {
  const TemporaryFolder folder;
  const MemoryCorpus corpus = Corpus();
  FolderRangeSource source(folder.path(), corpus.manifest);
  EXPECT_THAT(Read(source, kTokens, 0, 1),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder / "web/00000.tokens")));
  WriteBytes(folder / "web/00000.tokens", "12345");
  EXPECT_THAT(Read(source, kTokens, 3, 10),
              StatusIs(kDataLoss, AllOf(HasSubstr(folder / "web/00000.tokens"),
                                        HasSubstr("ends at byte 5, expected 18000"))));
  fs::create_directories(folder / "web/00000.index");
  EXPECT_THAT(Read(source, kIndex, 0, 1), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(CorpusReader, RefusesTokensThatTheTokenizerHasNot) {
  MemoryCorpus corpus = Corpus();
  std::vector<int32_t> tokens(10);
  EXPECT_THAT(corpus.reader->ReadTokens(0, 0, 95, tokens), IsOk());
  EXPECT_EQ(tokens, (std::vector<int32_t>{1, 1, 1, 1, 0, 2, 2, 2, 2, 2}));
  corpus.files->files[kTokens].replace(200, 2, "\xff\xff");
  EXPECT_THAT(corpus.reader->ReadTokens(0, 0, 95, tokens),
              StatusIs(kDataLoss, HasSubstr("web/00000.tokens: byte offset 200: expected a token "
                                            "below 1000, found 65535")));
  EXPECT_THAT(corpus.reader->ReadTokens(0, 0, 8995, tokens),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CorpusReader, OpensFoldersAndChecksTheDigest) {
  const TemporaryFolder folder;
  const MemoryCorpus corpus = Corpus();
  const std::string manifest = SerializeManifest(*corpus.manifest);
  EXPECT_THAT(CorpusReader::OpenFolder(folder.path()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("manifest.json")));
  WriteBytes(folder / "manifest.json", manifest);
  for (const auto& [id, bytes] : corpus.files->files) {
    WriteBytes(folder / NameOf(*corpus.manifest, id), bytes);
  }
  const auto reader = CorpusReader::OpenFolder(folder.path(), Sha256(AsBytes(manifest)));
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT((*reader)->ReadNames(0, 0), IsOkAndHolds(::testing::SizeIs(90)));
  EXPECT_THAT((*reader)->ReadIndex(0, 0), IsOk());
  EXPECT_THAT(CorpusReader::OpenFolder(folder.path(), Sha256(AsBytes("another"))),
              StatusIs(kDataLoss, HasSubstr("this is another corpus")));
  WriteBytes(folder / "manifest.json", manifest + "x");
  EXPECT_THAT(CorpusReader::OpenFolder(folder.path()),
              StatusIs(kDataLoss, HasSubstr(folder / "manifest.json")));
}

TEST(OpenCorpus, RefusesLocationsThatMakeNoSense) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(OpenCorpus({}), StatusIs(kInvalid));
  EXPECT_THAT(OpenCorpus({.places = {"http://localhost/x"}}),
              StatusIs(kInvalid, HasSubstr("digest")));
  EXPECT_THAT(OpenCorpus({.places = {"a", "b"}}), StatusIs(kInvalid, HasSubstr("digest")));
}

TEST(OpenCorpus, SeveralFoldersMakeOneCorpus) {
  const TemporaryFolder one, two;
  const MemoryCorpus corpus = Corpus();
  const std::string manifest = SerializeManifest(*corpus.manifest);
  WriteBytes(two / "manifest.json", manifest);
  for (const auto& [id, bytes] : corpus.files->files) {
    WriteBytes((id.file == ShardFile::kTokens ? one : two) / NameOf(*corpus.manifest, id), bytes);
  }
  const auto reader =
      OpenCorpus({.places = {one.path(), two.path()}, .manifest = Sha256(AsBytes(manifest))});
  ASSERT_THAT(reader, IsOk());
  std::vector<int32_t> tokens(9000);
  EXPECT_THAT((*reader)->ReadTokens(0, 0, 0, tokens), IsOk());
  EXPECT_THAT((*reader)->ReadIndex(0, 0), IsOk());
}

}  // namespace
}  // namespace lockstep::engine
