// SPDX-License-Identifier: Apache-2.0
//
// Pieces, restarts, full disks, failing calls, a second writer.
#include "base/partial_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/file_calls.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kMax = 1 << 20;

int fail_write_after = -1;  // bytes that still fit; -1: all
bool fail_fsync = false;

class PartialFileTest : public ::testing::Test {
 protected:
  PartialFileTest() {
    fail_write_after = -1;
    fail_fsync = false;
    file_internal::calls.write = [](int fd, const void* bytes, size_t size) -> ssize_t {
      if (fail_write_after < 0) return ::write(fd, bytes, size);
      if (fail_write_after == 0) {
        errno = ENOSPC;
        return -1;
      }
      const ssize_t n = ::write(fd, bytes, std::min<size_t>(size, fail_write_after));
      fail_write_after -= static_cast<int>(n);
      return n;
    };
    file_internal::calls.fsync = [](int fd) {
      if (!fail_fsync) return ::fsync(fd);
      errno = EIO;
      return -1;
    };
  }
  ~PartialFileTest() override { file_internal::calls = {}; }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "f.partial";
};

TEST_F(PartialFileTest, GrowsOverSeveralLivesAndHashesAll) {
  for (const char* piece : {"one ", "two ", "three"}) {
    auto file = PartialFile::Open(path_, kMax);
    ASSERT_THAT(file, IsOk());
    ASSERT_THAT(file->Append(AsBytes(piece)), IsOk());
  }
  auto file = PartialFile::Open(path_, kMax);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->bytes(), 13u);
  EXPECT_EQ(file->FinishDigest(), Sha256(AsBytes("one two three")));
  ASSERT_THAT(file->Commit(folder_ / "f"), IsOk());
  EXPECT_THAT(ReadAll(folder_.path()), UnorderedElementsAre(Pair("f", "one two three")));
}

TEST_F(PartialFileTest, RestartForgetsBytesAndDigest) {
  auto file = PartialFile::Open(path_, kMax);
  ASSERT_THAT(file->Append(AsBytes("wrong and longer")), IsOk());
  ASSERT_THAT(file->Restart(), IsOk());
  ASSERT_THAT(file->Append(AsBytes("right")), IsOk());
  EXPECT_EQ(file->FinishDigest(), Sha256(AsBytes("right")));
  EXPECT_EQ(ReadBytes(path_), "right");
}

TEST_F(PartialFileTest, MoreThanThereMayBeIsBegunAgain) {
  WriteBytes(path_, "0123456789");
  auto file = PartialFile::Open(path_, 9);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->bytes(), 0u);
  EXPECT_EQ(ReadBytes(path_), "");
}

// After a full disk the file is what bytes() says, and goes on once there is room.
TEST_F(PartialFileTest, FullDiskLeavesWhatFitted) {
  auto file = PartialFile::Open(path_, kMax);
  fail_write_after = 3;
  EXPECT_THAT(file->Append(AsBytes("abcdef")),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(path_)));
  EXPECT_EQ(file->bytes(), 3u);
  fail_write_after = -1;
  ASSERT_THAT(file->Append(AsBytes("def")), IsOk());
  EXPECT_EQ(file->FinishDigest(), Sha256(AsBytes("abcdef")));
}

TEST_F(PartialFileTest, FailedSyncNeverBecomesAFile) {
  auto file = PartialFile::Open(path_, kMax);
  ASSERT_THAT(file->Append(AsBytes("x")), IsOk());
  fail_fsync = true;
  EXPECT_FALSE(file->Commit(folder_ / "f").ok());
  EXPECT_THAT(ReadAll(folder_.path()), IsEmpty());
}

TEST_F(PartialFileTest, OneWriterAtATime) {
  auto file = PartialFile::Open(path_, kMax);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(PartialFile::Open(path_, kMax), StatusIs(absl::StatusCode::kUnavailable));
  file->Remove();
  EXPECT_THAT(PartialFile::Open(path_, kMax), IsOk());
}

TEST_F(PartialFileTest, LinksAndPipesAreRefused) {
  WriteBytes(folder_ / "victim", "v");
  ASSERT_EQ(symlink((folder_ / "victim").c_str(), path_.c_str()), 0);
  EXPECT_FALSE(PartialFile::Open(path_, kMax).ok());
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(PartialFile::Open(path_, kMax), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(ReadBytes(folder_ / "victim"), "v");
}

// Killed in the middle: what was appended is there, and nobody holds the lock.
TEST_F(PartialFileTest, SurvivesAKill) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto file = PartialFile::Open(path_, kMax);
    if (!file.ok() || !file->Append(AsBytes("before the kill")).ok()) _exit(1);
    if (::write(told[1], "x", 1) != 1) _exit(1);
    while (true) pause();
  }
  char byte;
  ASSERT_EQ(::read(told[0], &byte, 1), 1);
  EXPECT_THAT(PartialFile::Open(path_, kMax), StatusIs(absl::StatusCode::kUnavailable));
  kill(child, SIGKILL);
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  auto file = PartialFile::Open(path_, kMax);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->FinishDigest(), Sha256(AsBytes("before the kill")));
  close(told[0]);
  close(told[1]);
}

}  // namespace
}  // namespace lockstep
