// SPDX-License-Identifier: Apache-2.0
//
// Which files a source's patterns stand for.
#include "engine/corpus/input_files.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/status_matchers.h"
#include "engine/corpus/testing/corpus_files.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InputFilesTest : public ::testing::Test {
 protected:
  InputFilesTest() {
    source_.name = "s";
    source_.root = folder_.path();
    source_.extensions = {".txt"};
    for (const char* const name :
         {"b.txt", "a.txt", "a.md", "sub/c.txt.gz", "sub/d.txt.zst", "sub/e.txt.bz2",
          "sub/deep/f.txt", ".hidden.txt", ".git/g.txt", "sub2/h.txt"}) {
      folder_.Write(name, name);
    }
  }

  std::vector<std::string> Names(const std::vector<std::string>& paths,
                                 const std::vector<std::string>& exclude = {}) {
    source_.paths = paths;
    source_.exclude = exclude;
    const absl::StatusOr<InputFiles> inputs = ListInputFiles(source_);
    EXPECT_THAT(inputs, IsOk());
    std::vector<std::string> names;
    if (!inputs.ok()) return names;
    int64_t bytes = 0;
    for (const InputFile& file : inputs->files) {
      names.push_back(file.name);
      EXPECT_EQ(static_cast<int64_t>(FileBytes(file.path).size()), file.bytes);
      bytes += file.bytes;
    }
    EXPECT_EQ(bytes, inputs->bytes);
    return names;
  }

  TestFolder folder_;
  SourceConfig source_;
};

TEST_F(InputFilesTest, FoldersFilesAndPatterns) {
  EXPECT_THAT(Names({"."}), ElementsAre("a.txt", "b.txt", "sub/c.txt.gz", "sub/d.txt.zst",
                                        "sub/deep/f.txt", "sub2/h.txt"));
  EXPECT_THAT(Names({"sub"}), ElementsAre("sub/c.txt.gz", "sub/d.txt.zst", "sub/deep/f.txt"));
  EXPECT_THAT(Names({"b.txt", "a.md"}),
              ElementsAre("a.md", "b.txt"));  // sorted; named ones need no extension
  EXPECT_THAT(Names({"*.txt", "a.txt"}), ElementsAre("a.txt", "b.txt"));  // each once
  EXPECT_THAT(Names({"sub/*"}), ElementsAre("sub/c.txt.gz", "sub/d.txt.zst", "sub/e.txt.bz2"));
  EXPECT_THAT(Names({"**/*.txt"}), ElementsAre("a.txt", "b.txt", "sub/deep/f.txt", "sub2/h.txt"));
  for (const char* const folder : {"sub/**", "sub", "s?b"}) {  // a folder is all that is in it
    EXPECT_THAT(Names({"."}, {folder, "b*"}), ElementsAre("a.txt", "sub2/h.txt")) << folder;
  }
}

TEST_F(InputFilesTest, NothingFound) {
  for (const char* const path : {"c.txt", "*.html", "sub3", "sub3/*.txt", "sub/deep/*.md"}) {
    source_.paths = {path};
    EXPECT_THAT(ListInputFiles(source_), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)))
        << path;
  }
}

TEST_F(InputFilesTest, LinksAndPipes) {
  std::filesystem::create_directory_symlink(folder_.path(), folder_ / "sub/loop");
  std::filesystem::create_symlink(folder_ / "b.txt", folder_ / "sub/link.txt");
  std::filesystem::create_symlink(folder_ / "nowhere", folder_ / "sub/broken.txt");
  std::filesystem::create_symlink("circle2.txt", folder_ / "sub/circle1.txt");
  std::filesystem::create_symlink("circle1.txt", folder_ / "sub/circle2.txt");
  ASSERT_EQ(mkfifo((folder_ / "sub/pipe.txt").c_str(), 0600), 0);
  EXPECT_THAT(Names({"sub"}),
              ElementsAre("sub/c.txt.gz", "sub/d.txt.zst", "sub/deep/f.txt", "sub/link.txt"));
}

TEST_F(InputFilesTest, ListingIsOfNamesAndSizes) {
  source_.paths = {"."};
  const Digest before = ListInputFiles(source_)->listing;
  EXPECT_EQ(ListInputFiles(source_)->listing, before);
  folder_.Write("a.txt", "other");
  EXPECT_EQ(ListInputFiles(source_)->listing, before);
  folder_.Write("a.txt", "longer");
  EXPECT_NE(ListInputFiles(source_)->listing, before);
}

TEST_F(InputFilesTest, NamesAreOneLineOfText) {
  EXPECT_EQ(EscapedPath("a b/\xC3\xA9#1"), "a b/\xC3\xA9#1");
  EXPECT_EQ(EscapedPath("100%\n\x7F"), "100%25%0A%7F");
  EXPECT_EQ(EscapedPath("\xE9t\xE9\xED\xA0\x80\xC3"), "%E9t%E9%ED%A0%80%C3");
  folder_.Write("odd/\xE9\n.txt", "x");
  EXPECT_THAT(Names({"odd"}), ElementsAre("odd/%E9%0A.txt"));
}

}  // namespace
}  // namespace lockstep::engine
