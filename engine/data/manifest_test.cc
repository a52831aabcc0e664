// SPDX-License-Identifier: Apache-2.0
//
// Corpus manifests: the canonical bytes, and what a reader refuses of manifests that are damaged,
// or made by somebody who means harm.
#include "engine/data/manifest.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/testing/status_matchers.h"
#include "engine/data/testing/memory_corpus.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::HasSubstr;
using testing::MakeMemoryCorpus;
using testing::Tokens;
using Json = nlohmann::json;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

CorpusManifest Sample() {
  const std::vector<Tokens> shard = {Tokens{1, 2, 3}, Tokens{}, Tokens(2000, 7)};
  return *MakeMemoryCorpus({{"code", {shard, shard}, {}}, {"empty", {}, 3}, {"web", {shard}, 5}})
              .manifest;
}

TEST(Manifest, WhatIsWrittenIsRead) {
  for (uint32_t vocab_size : {1000, 65536, 65537, 128256}) {
    CorpusManifest manifest = Sample();
    manifest.vocab_size = vocab_size;
    manifest.token_bytes = TokenBytes(vocab_size);
    EXPECT_EQ(manifest.token_bytes, vocab_size > 65536 ? 4 : 2);
    for (SourceEntry& source : manifest.sources) {
      for (ShardEntry& shard : source.shards) {
        shard.file(ShardFile::kTokens).bytes = shard.tokens * manifest.token_bytes;
        shard.file(ShardFile::kChunks).bytes =
            32 * ChunkCount(shard.tokens * manifest.token_bytes, manifest.chunk_bytes);
      }
    }
    const std::string bytes = SerializeManifest(manifest);
    EXPECT_THAT(ParseCorpusManifest(bytes), IsOkAndHolds(manifest));
    EXPECT_EQ(ManifestDigest(manifest), Sha256(AsBytes(bytes)));
    EXPECT_THAT(CheckManifestDigest(bytes, ManifestDigest(manifest)), IsOk());
    EXPECT_THAT(CheckManifestDigest(bytes + " ", ManifestDigest(manifest)),
                StatusIs(kDataLoss, HasSubstr(ManifestDigest(manifest).ToHex())));
  }
}

TEST(Manifest, ShardEntriesToo) {
  const CorpusManifest manifest = Sample();
  const ShardEntry& shard = manifest.sources[0].shards[0];
  EXPECT_THAT(ParseShardEntry(SerializeShardEntry(shard), 2, 4096), IsOkAndHolds(shard));
  EXPECT_THAT(ParseShardEntry(SerializeShardEntry(shard), 4, 4096), StatusIs(kDataLoss));
  EXPECT_THAT(ParseShardEntry("{}", 2, 4096), StatusIs(kDataLoss));
}

TEST(Manifest, NamesOfSourcesAreNamesOfFolders) {
  for (const char* good : {"a", "web", "Proof-Pile_2.arxiv", "0", "a.b"}) {
    EXPECT_TRUE(IsSourceName(good)) << good;
  }
  for (const char* bad : {"", ".", "..", ".build", "a/b", "../x", "/etc", "a b", "a\\b", "ü",
                          "manifest.json", "a\n"}) {
    EXPECT_FALSE(IsSourceName(bad)) << bad;
  }
  EXPECT_FALSE(IsSourceName(absl::string_view("a\0b", 3)));
  EXPECT_FALSE(IsSourceName(std::string(65, 'a')));
  EXPECT_EQ(ShardFileName("web", 42, ShardFile::kTokens), "web/00042.tokens");
  EXPECT_EQ(ShardFileName("web", 123456, ShardFile::kChunks), "web/123456.chunks");
}

TEST(Manifest, EveryTruncationIsRefused) {
  const std::string bytes = SerializeManifest(Sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_THAT(ParseCorpusManifest(bytes.substr(0, size)),
                StatusIs(kDataLoss, HasSubstr(absl::StrCat("offset ", size, ": expected JSON"))));
  }
}

// A byte that is another: refused, or a manifest in its own right, never one taken for the other.
TEST(Manifest, EveryChangedByteIsRefusedOrAnotherManifest) {
  const CorpusManifest manifest = Sample();
  const std::string bytes = SerializeManifest(manifest);
  int refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const char change : {'\x01', '\x10', '\x80'}) {
      std::string bad = bytes;
      bad[at] ^= change;
      const absl::StatusOr<CorpusManifest> parsed = ParseCorpusManifest(bad);
      refused += !parsed.ok();
      if (parsed.ok()) {
        ASSERT_EQ(SerializeManifest(*parsed), bad);
        ASSERT_NE(*parsed, manifest);
      } else {
        ASSERT_THAT(parsed, StatusIs(kDataLoss));
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

// One field changed by its path, and a part of the message that must come.
struct BadField {
  const char* path;
  Json value;
  const char* message;
};

TEST(Manifest, HostileFieldsAreRefusedByName) {
  const Json good = Json::parse(SerializeManifest(Sample()));
  const std::vector<BadField> fields = {
      {"/format", "lockstep-corpus-2", "format"},
      {"/format", 1, "/format: expected a string"},
      {"/chunk_bytes", 0, "chunk_bytes: expected a power of two"},
      {"/chunk_bytes", 5000, "found 5000"},
      {"/chunk_bytes", 2048, "found 2048"},
      {"/chunk_bytes", uint64_t{1} << 40, "chunk_bytes"},
      {"/chunk_bytes", -4096, "/chunk_bytes: expected an integer"},
      {"/chunk_bytes", 4096.0, "/chunk_bytes: expected an integer"},
      {"/chunk_bytes", "4096", "/chunk_bytes: expected an integer"},
      {"/separator", 1000, "separator < vocab_size"},
      {"/separator", -1, "/separator"},
      {"/shard_tokens", 0, "shard_tokens"},
      {"/shard_tokens", UINT64_MAX, "/shard_tokens"},
      {"/token_bytes", 4, "token_bytes: expected 2"},
      {"/token_bytes", 3, "token_bytes"},
      {"/tokenizer/vocab_size", 0, "vocab_size"},
      {"/tokenizer/vocab_size", uint64_t{1} << 32, "/tokenizer/vocab_size"},
      {"/tokenizer/sha256", "00", "/tokenizer/sha256: expected 64 hexadecimal"},
      {"/tokenizer", 1, "/tokenizer: expected an object"},
      {"/sources", 1, "/sources: expected an array"},
      {"/sources/0", 1, "/sources/0: expected an object"},
      {"/sources/0/name", "../../etc", "source 0: its name"},
      {"/sources/0/name", "/tmp", "its name"},
      {"/sources/0/name", "..", "its name"},
      {"/sources/0/name", "web", "source 1: expected names in ascending order"},
      {"/sources/1/name", "code", "source 1: expected names in ascending order"},
      {"/sources/0/documents", 7, "7"},
      {"/sources/0/tokens", UINT64_MAX, "/sources/0/tokens"},
      {"/sources/0/tokens", 1, "its shards have"},
      {"/sources/0/share", UINT64_MAX, "/sources/0/share"},
      {"/sources/0/share", (uint64_t{1} << 56) + 1, "/sources/0/share"},
      {"/sources/0/share", -1, "/sources/0/share"},
      {"/sources/0/shards/1/documents", 0, "shard 1: expected 1 <= documents <= tokens"},
      {"/sources/0/shards/1/documents", 5000, "1 <= documents <= tokens"},
      {"/sources/0/shards/1/tokens/count", (uint64_t{1} << 28) + 1, "/shards/1/tokens/count"},
      {"/sources/0/shards/1/tokens/bytes", 5, "the tokens file: expected 4012 bytes, found 5"},
      {"/sources/0/shards/1/tokens/bytes", UINT64_MAX, "/shards/1/tokens/bytes"},
      {"/sources/0/shards/1/index/bytes", 1 << 30, "the index file: expected 40 bytes"},
      {"/sources/0/shards/1/chunks/bytes", 64, "the chunks file: expected 32 bytes"},
      {"/sources/0/shards/1/names/bytes", uint64_t{1} << 40, "the names file"},
      {"/sources/0/shards/1/names/bytes", 1, "the names file"},
      {"/sources/0/shards/1/tokens/root", "xyz", "/shards/1/tokens/root"},
  };
  for (const BadField& field : fields) {
    Json bad = good;
    bad[Json::json_pointer(field.path)] = field.value;
    EXPECT_THAT(ParseCorpusManifest(bad.dump()), StatusIs(kDataLoss, HasSubstr(field.message)))
        << field.path << " = " << field.value;
  }
}

TEST(Manifest, MissingFieldsAreRefusedByName) {
  const Json good = Json::parse(SerializeManifest(Sample()));
  int fields = 0;
  const Json flat = good.flatten();
  for (const auto& [path, value] : flat.items()) {
    if (path.find("/shards/0") != std::string::npos || path == "/sources/1/shards") continue;
    Json bad = good;
    const Json::json_pointer pointer(path);
    bad[pointer.parent_pointer()].erase(pointer.back());
    EXPECT_THAT(ParseCorpusManifest(bad.dump()), StatusIs(kDataLoss, HasSubstr(path))) << path;
    ++fields;
  }
  EXPECT_GT(fields, 20);
}

TEST(Manifest, OnlyTheCanonicalFormIsAccepted) {
  const std::string good = SerializeManifest(Sample());
  const Json json = Json::parse(good);
  EXPECT_THAT(ParseCorpusManifest(json.dump(1)), StatusIs(kDataLoss, HasSubstr("offset 1")));
  EXPECT_THAT(ParseCorpusManifest(good + "\n"), StatusIs(kDataLoss, HasSubstr("canonical")));
  Json more = json;
  more["comment"] = "hello";
  EXPECT_THAT(ParseCorpusManifest(more.dump()), StatusIs(kDataLoss, HasSubstr("no other field")));
  // The same key twice: the parser would take the last.
  const std::string twice = absl::StrReplaceAll(
      good, {{"{\"chunk_bytes\":4096,", "{\"chunk_bytes\":8192,\"chunk_bytes\":4096,"}});
  ASSERT_NE(twice, good);
  EXPECT_THAT(ParseCorpusManifest(twice), StatusIs(kDataLoss, HasSubstr("canonical")));
  const std::string upper = absl::StrReplaceAll(good, {{"\"store\":\"", "\"store\":\"A"}});
  EXPECT_THAT(ParseCorpusManifest(upper), StatusIs(kDataLoss));
}

TEST(Manifest, DepthAndRubbishAreRefused) {
  EXPECT_THAT(ParseCorpusManifest(std::string(1 << 20, '[')), StatusIs(kDataLoss));
  EXPECT_THAT(
      ParseCorpusManifest(absl::StrCat(std::string(1 << 16, '['), std::string(1 << 16, ']'))),
      StatusIs(kDataLoss));
  std::string nested;
  for (int i = 0; i < 100000; ++i) nested += "{\"a\":";
  EXPECT_THAT(ParseCorpusManifest(nested), StatusIs(kDataLoss));
  for (const char* bytes : {"", "null", "[]", "{}", "1", "\"\"", "\xff\xfe", "{\"format\":null}"}) {
    EXPECT_THAT(ParseCorpusManifest(bytes), StatusIs(kDataLoss)) << bytes;
  }
  EXPECT_THAT(ParseCorpusManifest(absl::string_view("\0\0\0\0", 4)), StatusIs(kDataLoss));
}

TEST(Manifest, LicencesMayBeAnyText) {
  CorpusManifest manifest = Sample();
  manifest.sources[0].licence = "\"quotes\", \\ back\\slashes, \xc3\xbc, \x01";
  EXPECT_THAT(ParseCorpusManifest(SerializeManifest(manifest)), IsOkAndHolds(manifest));
}

}  // namespace
}  // namespace lockstep::engine
