// SPDX-License-Identifier: Apache-2.0
//
// Document stores: what is written is read, and nothing else is.
#include "engine/corpus/document_store.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/canonical_json.h"
#include "base/testing/status_matchers.h"
#include "engine/corpus/document_store_format.h"
#include "engine/corpus/testing/corpus_files.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::HasSubstr;

class DocumentStoreTest : public ::testing::Test {
 protected:
  DocumentStoreTest() {
    for (int i = 0; i < 10; ++i) {
      documents_.push_back(
          {absl::StrCat("d/", i, ".txt"), absl::StrCat("text ", i, " \xC3\xA9\n")});
    }
    EXPECT_THAT(WriteDocumentStore(folder_ / "s", "web", "MIT AND CC0-1.0", documents_, 4), IsOk());
    manifest_ = FileBytes(folder_ / "s/manifest.json");
  }

  void Replace(const std::string& from, const std::string& to) {
    const std::string changed = absl::StrReplaceAll(manifest_, {{from, to}});
    ASSERT_NE(changed, manifest_) << from;
    folder_.Write("s/manifest.json", changed);
  }

  TestFolder folder_;
  std::vector<Document> documents_;
  std::string manifest_;
};

TEST_F(DocumentStoreTest, WhatIsWrittenIsRead) {
  const absl::StatusOr<DocumentStore> store = DocumentStore::Open(folder_ / "s");
  ASSERT_THAT(store, IsOk());
  EXPECT_EQ(store->source(), "web");
  EXPECT_EQ(store->licence(), "MIT AND CC0-1.0");
  EXPECT_EQ(store->documents(), 10);
  EXPECT_EQ(store->text_bytes(), 100);
  EXPECT_EQ(store->parts(), 3);
  EXPECT_EQ(store->digest(), Sha256(AsBytes(manifest_)));
  const std::vector<Document> read = AllDocuments(folder_ / "s");
  ASSERT_EQ(read.size(), documents_.size());
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].name, documents_[i].name);
    EXPECT_EQ(read[i].text, documents_[i].text);
  }
  EXPECT_THAT(store->ReadPart(-1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store->ReadPart(3), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(DocumentStoreTest, ThePublishedBytes) {
  // The example of docs/corpus_format.md.
  std::string part(kPartMagic);
  AppendDocument("a#1", "Hi!\n", &part);
  EXPECT_EQ(part, std::string("LSDOCS1\n\x03\0\0\0\x04\0\0\0a#1Hi!\n", 23));
  EXPECT_EQ(PartFileName(42), "part-000042.docs");
}

TEST_F(DocumentStoreTest, AbsentStores) {
  EXPECT_THAT(DocumentStore::Open(folder_ / "none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/manifest.json")));
}

TEST_F(DocumentStoreTest, EveryFlippedBitOfThePartIsFound) {
  const DocumentStore store = *DocumentStore::Open(folder_ / "s");
  const std::string whole = FileBytes(folder_ / "s/part-000001.docs");
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    folder_.Write("s/part-000001.docs", damaged);
    EXPECT_THAT(store.ReadPart(1),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("part-000001.docs")))
        << at;
  }
  for (const std::string& bytes : {whole.substr(0, whole.size() - 1), whole + "x", std::string()}) {
    folder_.Write("s/part-000001.docs", bytes);
    EXPECT_THAT(store.ReadPart(1), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("bytes")));
  }
  EXPECT_THAT(store.ReadPart(0), IsOk());
}

TEST_F(DocumentStoreTest, EveryFlippedBitOfTheManifestIsFoundOrSeen) {
  const DocumentStore store = *DocumentStore::Open(folder_ / "s");
  for (size_t at = 0; at < manifest_.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = manifest_;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      folder_.Write("s/manifest.json", damaged);
      const absl::StatusOr<DocumentStore> read = DocumentStore::Open(folder_ / "s");
      if (read.ok()) {
        EXPECT_NE(read->digest(), store.digest());  // another name, or another digest within
      } else {
        EXPECT_THAT(read, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("manifest.json")));
      }
    }
    folder_.Write("s/manifest.json", manifest_.substr(0, at));
    EXPECT_THAT(DocumentStore::Open(folder_ / "s"), StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST_F(DocumentStoreTest, ManifestsThatDoNotAddUp) {
  const std::pair<std::string, std::string> changes[] = {
      {"\"documents\":10", "\"documents\":11"},
      {"\"text_bytes\":100", "\"text_bytes\":101"},
      {"\"documents\":10", "\"documents\":-1"},
      {"\"documents\":10", "\"documents\":10.0"},
      {"\"documents\":10", "\"documents\":\"10\""},
      {"\"documents\":10", "\"documents\":18446744073709551615"},
      {"part-000001.docs", "part-000002.docs"},
      {"part-000001.docs", "../../etc/x.docs"},
      {"\"version\":1", "\"version\":2"},
      {"\"version\":1", "\"version\":1,\"wersion\":1"},
      {"lockstep-documents", "lockstep-tokens"},
      {"\"source\":\"web\"", "\"source\":null"},
      {"\"text_bytes\":40", "\"text_bytes\":3"},
      {"\"bytes\":0", "\"bytes\":1152921504606846976"},
      {"{\"config\"", "{ \"config\""},
  };
  for (const auto& [from, to] : changes) {
    Replace(from, to);
    EXPECT_THAT(DocumentStore::Open(folder_ / "s"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("manifest.json")))
        << to;
  }
}

TEST_F(DocumentStoreTest, PartsThatAreNotOfTheFormat) {
  const std::string magic(kPartMagic);
  const auto header = [](uint32_t name, uint32_t text) {
    std::string bytes;
    for (const uint32_t value : {name, text}) {
      for (int shift = 0; shift < 32; shift += 8)
        bytes.push_back(static_cast<char>(value >> shift));
    }
    return bytes;
  };
  const std::pair<std::string, std::string> parts[] = {
      {"", "byte 0"},
      {"LSDOCS2\n", "byte 0"},
      {magic + "x", "length of a document's name"},
      {magic + header(1, 1).substr(0, 7), "length of a document's text"},
      {magic + header(0, 1) + "x", "byte 8: expected a name"},
      {magic + header(1, 0) + "x", "byte 8: expected a name"},
      {magic + header(UINT32_MAX, 1) + "xy", "byte 8: expected a name"},
      {magic + header(2, 2) + "x", "a document's name"},
      {magic + header(1, UINT32_MAX) + "xy", "a document's text"},
      {magic + header(1, 1) + "x\xFF", "byte 8: the document is not valid UTF-8"},
      {magic + header(1, 1) + "\xFFx", "not valid UTF-8"},
      {magic + header(1, 1) + "xy" + header(1, 1) + "x", "a document's text"},
  };
  for (const auto& [bytes, complaint] : parts) {
    EXPECT_THAT(DecodePart(bytes), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(complaint)));
  }
  EXPECT_EQ(DecodePart(magic)->size(), 0U);
}

TEST(CanonicalJsonTest, OnlyOneText) {
  EXPECT_THAT(ParseCanonicalJson("{\"a\":1,\"b\":[{}]}"), IsOk());
  for (const std::string text :
       {"", "[]", "1", "{\"b\":1,\"a\":1}", "{\"a\":1,\"a\":1}", "{\"a\": 1}", "{\"a\":1}\n",
        "{\"a\":1.50}", "{\"a\":\"\\u0041\"}", "{\"a\":\"\xFF\"}", "{\"a\":1", "{\"a\":01}"}) {
    EXPECT_THAT(ParseCanonicalJson(text), StatusIs(absl::StatusCode::kDataLoss)) << text;
  }
  const std::string deep = absl::StrCat("{\"a\":", std::string(100000, '['));
  EXPECT_THAT(ParseCanonicalJson(deep), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("deep")));
}

}  // namespace
}  // namespace lockstep::engine
