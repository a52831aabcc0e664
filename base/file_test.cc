// SPDX-License-Identifier: Apache-2.0
//
// Files as they should be, then every system call failing in turn, disks that are full, and names
// that lead elsewhere. After each failure the old file is whole and nothing is left behind.

#include "base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_calls.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kResourceExhausted = absl::StatusCode::kResourceExhausted;

int OpenDescriptors() {
  return static_cast<int>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

// Which system call fails, and how.
struct Fault {
  int at = 0;  // counted from 1; 0 is none
  int error = EIO;
  bool applied = false;  // the call does its work before it reports the failure
};
Fault fault;
int calls_made = 0;
size_t write_size_max = 0;  // a write takes no more than this, unless it is 0

// Runs `call` unless it is the one to fail.
template <typename Call>
auto Faulty(Call call) -> decltype(call()) {
  if (++calls_made != fault.at) return call();
  if (fault.applied) call();
  errno = fault.error;
  return -1;
}

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string name = ::testing::TempDir() + "lockstep_file_test_XXXXXX";
    directory_ = mkdtemp(name.data());
    path_ = directory_ + "/file";
    descriptors_ = OpenDescriptors();
  }

  ~FileTest() override {
    file_internal::calls = {};
    EXPECT_EQ(OpenDescriptors(), descriptors_);
    fs::remove_all(directory_);
  }

  void InjectFaults(const Fault& f) {
    fault = f;
    calls_made = 0;
    write_size_max = 0;
    file_internal::calls = {
        .open = [](const char* path, int flags,
                   mode_t mode) { return Faulty([=] { return ::open(path, flags, mode); }); },
        .write =
            [](int fd, const void* bytes, size_t size) {
              if (write_size_max != 0) size = std::min(size, write_size_max);
              return Faulty([=] { return ::write(fd, bytes, size); });
            },
        .fsync = [](int fd) { return Faulty([=] { return ::fsync(fd); }); },
        // A close that fails has closed.
        .close = [](int fd) { return ::close(fd) == 0 ? Faulty([] { return 0; }) : -1; },
        .rename = [](const char* from,
                     const char* to) { return Faulty([=] { return std::rename(from, to); }); },
    };
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string directory_;
  std::string path_;
  int descriptors_;
};

TEST_F(FileTest, WritesAndReads) {
  std::string bytes;
  for (int i = 0; i < 100000; ++i) bytes += static_cast<char>(i);
  for (const std::string& content : {std::string(), std::string("text"), bytes}) {
    EXPECT_THAT(WriteFileDurably(path_, AsBytes(content)), IsOk());
    EXPECT_THAT(ReadFile(path_, content.size()), IsOkAndHolds(content));
    EXPECT_THAT(Names(), ElementsAre("file"));
  }
}

TEST_F(FileTest, ReadsNoMoreThanAllowed) {
  ASSERT_THAT(WriteFileDurably(path_, AsBytes("12345")), IsOk());
  EXPECT_THAT(
      ReadFile(path_, 4),
      StatusIs(kResourceExhausted, absl::StrCat(path_, " has more than the 4 bytes allowed")));
  EXPECT_THAT(ReadFile(path_, 0), StatusIs(kResourceExhausted));
  EXPECT_THAT(ReadFile(path_, 5), IsOkAndHolds("12345"));
}

TEST_F(FileTest, ReadsFilesThatDoNotTellTheirSize) {
  const absl::StatusOr<std::string> limits = ReadFile("/proc/self/limits", 1 << 20);
  ASSERT_THAT(limits, IsOkAndHolds(HasSubstr("Max open files")));
  EXPECT_THAT(ReadFile("/proc/self/limits", 10), StatusIs(kResourceExhausted));
}

TEST_F(FileTest, ReadRefusesWhatIsNoFile) {
  EXPECT_THAT(ReadFile(path_, 10),
              StatusIs(kNotFound, AllOf(HasSubstr("open " + path_), HasSubstr("No such file"))));
  EXPECT_THAT(ReadFile(directory_, 10), StatusIs(kFailedPrecondition, HasSubstr(directory_)));
  EXPECT_THAT(ReadFile("/dev/zero", 10), StatusIs(kFailedPrecondition));
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(ReadFile(path_, 10), StatusIs(kFailedPrecondition));
  EXPECT_THAT(ReadFile("", 10), StatusIs(kNotFound));
}

TEST_F(FileTest, StreamsInPieces) {
  absl::StatusOr<DurableFile> file = DurableFile::Create(path_);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->Append(AsBytes("one ")), IsOk());
  EXPECT_THAT(file->Append({}), IsOk());
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_THAT(Names(), ElementsAre(StartsWith(".lockstep-")));
  EXPECT_THAT(file->Append(AsBytes("two")), IsOk());
  EXPECT_THAT(file->Commit(), IsOk());
  EXPECT_THAT(ReadFile(path_, 10), IsOkAndHolds("one two"));
  EXPECT_THAT(file->Append(AsBytes("x")), StatusIs(kFailedPrecondition, HasSubstr("already")));
  EXPECT_THAT(file->Commit(), StatusIs(kFailedPrecondition));
  EXPECT_THAT(ReadFile(path_, 10), IsOkAndHolds("one two"));
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_F(FileTest, AbandonedFilesLeaveNothing) {
  ASSERT_THAT(WriteFileDurably(path_, AsBytes("old")), IsOk());
  {
    absl::StatusOr<DurableFile> first = DurableFile::Create(path_);
    absl::StatusOr<DurableFile> second = DurableFile::Create(path_);
    ASSERT_THAT(first, IsOk());
    ASSERT_THAT(second, IsOk());
    EXPECT_THAT(first->Append(AsBytes("new")), IsOk());
    DurableFile moved = *std::move(first);
    EXPECT_THAT(moved.Append(AsBytes("er")), IsOk());
    EXPECT_EQ(Names().size(), 3);
    moved = *std::move(second);
    EXPECT_EQ(Names().size(), 2);
  }
  EXPECT_THAT(Names(), ElementsAre("file"));
  EXPECT_THAT(ReadFile(path_, 10), IsOkAndHolds("old"));
}

TEST_F(FileTest, EachSystemCallFailsInTurn) {
  // open, write, fsync, close, rename; then open, fsync, close of the directory.
  InjectFaults({});
  ASSERT_THAT(WriteFileDurably(path_, AsBytes("probe")), IsOk());
  ASSERT_EQ(calls_made, 8);
  for (int at = 1; at <= 8; ++at) {
    file_internal::calls = {};
    ASSERT_THAT(WriteFileDurably(path_, AsBytes("old")), IsOk());
    InjectFaults({.at = at});
    const absl::Status status = WriteFileDurably(path_, AsBytes("new"));
    EXPECT_EQ(status.ok(), at == 8) << at;  // nothing hangs on the last close
    if (at < 8) {
      EXPECT_THAT(status.message(), AllOf(HasSubstr(path_), HasSubstr("Input/output error")));
    }
    EXPECT_EQ(absl::StrContains(status.message(), "perhaps not keep the name"), at == 6 || at == 7);
    EXPECT_THAT(ReadFile(path_, 10), IsOkAndHolds(at <= 5 ? "old" : "new")) << at;
    EXPECT_THAT(Names(), ElementsAre("file")) << at;
  }
}

TEST_F(FileTest, ACallThatFailsButWasAppliedLeavesAWholeFile) {
  for (int at = 2; at <= 5; ++at) {
    file_internal::calls = {};
    ASSERT_THAT(WriteFileDurably(path_, AsBytes("old")), IsOk());
    InjectFaults({.at = at, .applied = true});
    EXPECT_THAT(WriteFileDurably(path_, AsBytes("new")), Not(IsOk()));
    EXPECT_THAT(ReadFile(path_, 10), IsOkAndHolds(at < 5 ? "old" : "new")) << at;
    EXPECT_THAT(Names(), ElementsAre("file")) << at;
  }
}

TEST_F(FileTest, NothingIsTriedAfterAFailure) {
  InjectFaults({.at = 3});
  absl::StatusOr<DurableFile> file = DurableFile::Create(path_);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->Append(AsBytes("new")), IsOk());
  const absl::Status first = file->Commit();
  EXPECT_THAT(first.message(), HasSubstr("fsync"));
  const int made = calls_made;
  EXPECT_EQ(file->Commit(), first);
  EXPECT_EQ(file->Append(AsBytes("more")), first);
  EXPECT_EQ(calls_made, made);
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(FileTest, InterruptedAndShortWritesGoOn) {
  for (int at : {1, 2, 3, 9}) {
    InjectFaults({.at = at, .error = EINTR});
    write_size_max = 3;
    EXPECT_THAT(WriteFileDurably(path_, AsBytes("0123456789abcdefghijklmnopqrstuvwxyz")), IsOk());
    EXPECT_THAT(ReadFile(path_, 100), IsOkAndHolds("0123456789abcdefghijklmnopqrstuvwxyz"));
  }
}

TEST_F(FileTest, AWriteThatTakesNothingIsAnError) {
  file_internal::calls.write = [](int, const void*, size_t) { return ssize_t{0}; };
  EXPECT_THAT(WriteFileDurably(path_, AsBytes("x")), Not(IsOk()));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(FileTest, FullDisk) {
  ASSERT_THAT(WriteFileDurably(path_, AsBytes("old")), IsOk());
  // /dev/full answers each write as a full disk does.
  file_internal::calls.open = [](const char* path, int flags, mode_t mode) {
    if ((flags & O_CREAT) == 0) return ::open(path, flags, mode);
    ::close(::open(path, flags, mode));
    return ::open("/dev/full", O_WRONLY);
  };
  EXPECT_THAT(
      WriteFileDurably(path_, AsBytes("new")),
      StatusIs(kResourceExhausted, AllOf(HasSubstr("write " + path_), HasSubstr("No space left"))));
  file_internal::calls = {};
  EXPECT_THAT(ReadFile(path_, 10), IsOkAndHolds("old"));
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_F(FileTest, FileSizeLimitMidway) {
  ASSERT_THAT(WriteFileDurably(path_, AsBytes("old")), IsOk());
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit limit = {1000, old_limit.rlim_max};
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  // The first write is cut short, the next one fails.
  const absl::Status status = WriteFileDurably(path_, AsBytes(std::string(1500, 'x')));
  const absl::Status fits = WriteFileDurably(path_ + "2", AsBytes(std::string(1000, 'x')));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("write " + path_), HasSubstr("File too large")));
  EXPECT_THAT(fits, IsOk());
  EXPECT_THAT(ReadFile(path_, 10), IsOkAndHolds("old"));
  EXPECT_THAT(Names(), ElementsAre("file", "file2"));
}

TEST_F(FileTest, NamesThatCannotBeAFile) {
  EXPECT_THAT(WriteFileDurably("", AsBytes("x")), StatusIs(kInvalid));
  EXPECT_THAT(WriteFileDurably(directory_ + "/", AsBytes("x")), StatusIs(kInvalid));
  EXPECT_THAT(WriteFileDurably(directory_ + "/none/file", AsBytes("x")),
              StatusIs(kNotFound, HasSubstr(directory_ + "/none/file")));
  EXPECT_THAT(WriteFileDurably(directory_, AsBytes("x")),
              StatusIs(kFailedPrecondition, HasSubstr("is a directory")));
  EXPECT_THAT(WriteFileDurably(path_ + std::string(300, 'x'), AsBytes("x")), Not(IsOk()));
  EXPECT_THAT(Names(), IsEmpty());
  ASSERT_THAT(WriteFileDurably(path_, AsBytes("old")), IsOk());
  EXPECT_THAT(WriteFileDurably(path_ + "/below", AsBytes("x")), Not(IsOk()));
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_F(FileTest, TheLongestName) {
  const std::string name(255, 'x');
  EXPECT_THAT(WriteFileDurably(directory_ + "/" + name, AsBytes("x")), IsOk());
  EXPECT_THAT(Names(), ElementsAre(name));
}

TEST_F(FileTest, ASymbolicLinkIsReplacedAndItsTargetIsNot) {
  const std::string target = directory_ + "/target";
  ASSERT_THAT(WriteFileDurably(target, AsBytes("target")), IsOk());
  fs::create_symlink(target, path_);
  EXPECT_THAT(ReadFile(path_, 10), IsOkAndHolds("target"));
  EXPECT_THAT(WriteFileDurably(path_, AsBytes("new")), IsOk());
  EXPECT_FALSE(fs::is_symlink(path_));
  EXPECT_THAT(ReadFile(path_, 10), IsOkAndHolds("new"));
  EXPECT_THAT(ReadFile(target, 10), IsOkAndHolds("target"));
}

TEST_F(FileTest, ALinkedDirectoryIsFollowed) {
  fs::create_directory(directory_ + "/real");
  fs::create_directory_symlink(directory_ + "/real", directory_ + "/link");
  EXPECT_THAT(WriteFileDurably(directory_ + "/link/file", AsBytes("x")), IsOk());
  EXPECT_THAT(ReadFile(directory_ + "/real/file", 10), IsOkAndHolds("x"));
}

TEST_F(FileTest, WorkingDirectory) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  EXPECT_THAT(WriteFileDurably("file", AsBytes("x")), IsOk());
  fs::current_path(before);
  EXPECT_THAT(ReadFile(path_, 10), IsOkAndHolds("x"));
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_F(FileTest, LeftoversOfACrashAreInNobodysWay) {
  // The names that this process would take next are taken.
  absl::StatusOr<DurableFile> probe = DurableFile::Create(path_);
  ASSERT_THAT(probe, IsOk());
  const std::string name = Names()[0];
  const size_t dash = name.rfind('-');
  const int count = std::atoi(name.c_str() + dash + 1);
  for (int i = 1; i <= 3; ++i) {
    const std::string next = absl::StrCat(name.substr(0, dash + 1), count + i, ".tmp");
    ASSERT_EQ(::close(::creat((directory_ + "/" + next).c_str(), 0600)), 0);
  }
  EXPECT_THAT(WriteFileDurably(path_, AsBytes("new")), IsOk());
  EXPECT_THAT(ReadFile(path_, 10), IsOkAndHolds("new"));
  EXPECT_EQ(Names().size(), 5);
}

TEST_F(FileTest, ModeIsAsAskedLessTheUmask) {
  const mode_t old_mask = umask(022);
  EXPECT_THAT(WriteFileDurably(path_, AsBytes("x")), IsOk());
  EXPECT_THAT(WriteFileDurably(path_ + "2", AsBytes("x"), 0600), IsOk());
  umask(old_mask);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0644));
  EXPECT_EQ(fs::status(path_ + "2").permissions(), fs::perms(0600));
}

TEST_F(FileTest, WritersOfOneNameLeaveOneWholeFile) {
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([this, t] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_THAT(WriteFileDurably(path_, AsBytes(std::string(5000, 'a' + t))), IsOk());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const absl::StatusOr<std::string> bytes = ReadFile(path_, 5000);
  ASSERT_THAT(bytes, IsOk());
  EXPECT_EQ(*bytes, std::string(5000, bytes->at(0)));
  EXPECT_THAT(Names(), ElementsAre("file"));
}

}  // namespace
}  // namespace lockstep
