// SPDX-License-Identifier: Apache-2.0
//
// Names that lead out of a folder do not.
#include "coordinator/http/folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

class FolderTest : public ::testing::Test {
 protected:
  FolderTest() {
    WriteBytes(outer_ / "secret", "secret");
    WriteBytes(outer_ / "in/a/b/c", "content");
    folder_ = *Folder::Open(outer_ / "in");
  }
  void ExpectNone(absl::string_view path) {
    EXPECT_THAT(folder_->OpenBeneath(path), StatusIs(absl::StatusCode::kNotFound)) << path;
  }
  TemporaryFolder outer_;
  std::shared_ptr<const Folder> folder_;
};

TEST_F(FolderTest, OpensWhatIsThere) {
  const auto file = folder_->OpenBeneath("a/b/c");
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ((*file)->bytes(), 7u);
  char bytes[7];
  EXPECT_EQ(::pread((*file)->fd(), bytes, 7, 0), 7);
  EXPECT_EQ(absl::string_view(bytes, 7), "content");
}

TEST_F(FolderTest, NothingElse) {
  for (const char* path : {"", "/", "a", "a/b", "a/b/", "a//b/c", "/a/b/c", "./a/b/c", "a/../a/b/c",
                           "../secret", "..", "a/b/c/d", "nothing"}) {
    ExpectNone(path);
  }
  ExpectNone(absl::string_view("a/b/c\0x", 7));
  ExpectNone(std::string(300, 'a'));
}

TEST_F(FolderTest, LinksAreNotFollowed) {
  std::filesystem::create_symlink("../secret", outer_ / "in/link");
  std::filesystem::create_symlink("..", outer_ / "in/up");
  std::filesystem::create_symlink("c", outer_ / "in/a/b/inside");
  ExpectNone("link");
  ExpectNone("up/secret");
  ExpectNone("a/b/inside");
}

TEST_F(FolderTest, PipesAreNotWaitedFor) {
  ASSERT_EQ(::mkfifo((outer_ / "in/pipe").c_str(), 0600), 0);
  ExpectNone("pipe");
}

TEST_F(FolderTest, AFolderThatIsNotThere) {
  EXPECT_THAT(Folder::Open(outer_ / "nothing"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_FALSE(Folder::Open(outer_ / "secret").ok());
}

}  // namespace
}  // namespace lockstep::coordinator
