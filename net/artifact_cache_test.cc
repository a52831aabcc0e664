// SPDX-License-Identifier: Apache-2.0
//
// What stays, what goes, in which order, over restarts; threads; a full disk; a second process.
#include "net/artifact_cache.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/artifact_fetch.h"

namespace lockstep::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kResourceExhausted = absl::StatusCode::kResourceExhausted;

class CacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<ArtifactCache> Open(uint64_t bytes_max = 30) {
    auto cache = ArtifactCache::Open(folder_.path(), {.bytes_max = bytes_max, .clock = &clock_});
    EXPECT_THAT(cache, IsOk());
    return std::move(cache).value();
  }
  // An artifact of ten bytes, named by a letter.
  static std::string ContentOf(char name) { return std::string(10, name); }
  static Digest DigestOf(char name) { return Sha256(AsBytes(ContentOf(name))); }
  absl::StatusOr<ArtifactCache::Pin> Get(ArtifactCache& cache, char name) {
    clock_.Advance(absl::Seconds(1));
    return cache.Get(DigestOf(name), 10, [&](const std::string& path) {
      ++fetches_;
      WriteBytes(path, ContentOf(name));
      return absl::OkStatus();
    });
  }
  // Those whose files are there.
  std::string There() const {
    std::string there;
    for (char name = 'a'; name <= 'z'; ++name) {
      if (std::filesystem::exists(folder_ / DigestOf(name).ToHex())) there.push_back(name);
    }
    return there;
  }

  TemporaryFolder folder_;
  FakeClock clock_;
  std::atomic<int> fetches_ = 0;
};

TEST_F(CacheTest, FetchesOnceAndPinsThePath) {
  const auto cache = Open();
  EXPECT_FALSE(cache->Find(DigestOf('a')).has_value());
  for (int i = 0; i < 3; ++i) {
    const auto pin = Get(*cache, 'a');
    ASSERT_THAT(pin, IsOk());
    EXPECT_EQ(ReadBytes(pin->path()), ContentOf('a'));
  }
  EXPECT_EQ(fetches_, 1);
  EXPECT_EQ(cache->Find(DigestOf('a'))->path(), folder_ / DigestOf('a').ToHex());
  EXPECT_EQ(cache->bytes(), 10u);
}

TEST_F(CacheTest, WhatWasUsedLongestAgoGoesFirst) {
  const auto cache = Open();
  for (const char name : {'a', 'b', 'c', 'a', 'd'}) ASSERT_THAT(Get(*cache, name), IsOk());
  EXPECT_EQ(There(), "acd");
  cache->Find(DigestOf('c'));
  ASSERT_THAT(Get(*cache, 'e'), IsOk());
  EXPECT_EQ(There(), "cde");
  EXPECT_EQ(cache->bytes(), 30u);
}

TEST_F(CacheTest, WhatIsInUseStays) {
  const auto cache = Open();
  const auto a = Get(*cache, 'a'), b = Get(*cache, 'b');
  auto c = Get(*cache, 'c');
  ASSERT_THAT(Get(*cache, 'd'), StatusIs(kResourceExhausted, HasSubstr("30 are in use")));
  EXPECT_EQ(There(), "abc");
  c = absl::CancelledError();
  ASSERT_THAT(Get(*cache, 'd'), IsOk());
  EXPECT_EQ(There(), "abd");
  EXPECT_THAT(cache->Get(DigestOf('x'), 31, [](const std::string&) { return absl::OkStatus(); }),
              StatusIs(kResourceExhausted, HasSubstr("does not fit")));
}

TEST_F(CacheTest, OrderAndSizesOutliveTheProcess) {
  {
    const auto cache = Open();
    for (const char name : {'a', 'b', 'c', 'a'}) ASSERT_THAT(Get(*cache, name), IsOk());
  }
  const auto cache = Open();
  EXPECT_EQ(cache->bytes(), 30u);
  ASSERT_THAT(Get(*cache, 'd'), IsOk());
  EXPECT_EQ(There(), "acd");
  EXPECT_EQ(fetches_, 4);
}

TEST_F(CacheTest, ASmallerCapCutsDown) {
  {
    const auto cache = Open();
    for (const char name : {'a', 'b', 'c'}) ASSERT_THAT(Get(*cache, name), IsOk());
  }
  const auto cache = Open(15);
  EXPECT_EQ(There(), "c");
}

TEST_F(CacheTest, ForeignFilesAreLetBe) {
  WriteBytes(folder_ / "README", "mine");
  WriteBytes(folder_ / "0123", "mine");
  std::filesystem::create_directory(folder_ / DigestOf('q').ToHex());
  const std::string upper = "AB" + DigestOf('q').ToHex().substr(2);
  WriteBytes(folder_ / upper, "mine");
  const auto cache = Open(1);
  EXPECT_EQ(cache->bytes(), 0u);
  EXPECT_EQ(ReadBytes(folder_ / "README"), "mine");
  EXPECT_EQ(ReadBytes(folder_ / upper), "mine");
}

TEST_F(CacheTest, PartialFilesCountAndGo) {
  const std::string partial = DigestOf('p').ToHex() + kPartialSuffix;
  {
    const auto cache = Open();
    EXPECT_THAT(cache->Get(DigestOf('p'), 10,
                           [&](const std::string& path) {
                             WriteBytes(path + kPartialSuffix, "12345");
                             return absl::UnavailableError("cut off");
                           }),
                StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_EQ(cache->bytes(), 5u);
  }
  const auto cache = Open();
  EXPECT_EQ(cache->bytes(), 5u);
  for (const char name : {'a', 'b'}) ASSERT_THAT(Get(*cache, name), IsOk());
  EXPECT_TRUE(std::filesystem::exists(folder_ / partial));
  ASSERT_THAT(Get(*cache, 'c'), IsOk());
  EXPECT_FALSE(std::filesystem::exists(folder_ / partial));
  EXPECT_EQ(There(), "abc");
}

// What is fetched has its room kept, and is not dropped to make room for itself.
TEST_F(CacheTest, PartialFilesAreGoneOnWith) {
  const std::string partial = DigestOf('p').ToHex() + kPartialSuffix;
  WriteBytes(folder_ / partial, "pppp");
  const auto cache = Open(10);
  EXPECT_THAT(cache->Get(DigestOf('p'), 10,
                         [&](const std::string& path) {
                           EXPECT_EQ(ReadBytes(path + kPartialSuffix), "pppp");
                           EXPECT_EQ(cache->bytes(), 10u);
                           std::filesystem::rename(path + kPartialSuffix, path);
                           WriteBytes(path, ContentOf('p'));
                           return absl::OkStatus();
                         }),
              IsOk());
  EXPECT_EQ(There(), "p");
}

TEST_F(CacheTest, AFullDiskMakesRoom) {
  const auto cache = Open();
  for (const char name : {'a', 'b'}) ASSERT_THAT(Get(*cache, name), IsOk());
  int tries = 0;
  EXPECT_THAT(cache->Get(DigestOf('c'), 10,
                         [&](const std::string& path) -> absl::Status {
                           ++tries;
                           if (There() != "") return absl::ResourceExhaustedError("disk full");
                           WriteBytes(path, ContentOf('c'));
                           return absl::OkStatus();
                         }),
              IsOk());
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(There(), "c");
}

TEST_F(CacheTest, SpaceOnTheDiskIsLeftToOthers) {
  const auto cache = ArtifactCache::Open(
      folder_.path(), {.bytes_max = 100, .disk_free_bytes_min = uint64_t{1} << 60});
  ASSERT_THAT(cache, IsOk());
  EXPECT_THAT(Get(**cache, 'a'), StatusIs(kResourceExhausted, HasSubstr("to stay free")));
  EXPECT_EQ(fetches_, 0);
}

TEST_F(CacheTest, DamagedFilesAreFetchedAgain) {
  const auto cache = Open();
  {
    const auto pin = Get(*cache, 'a');
    cache->Discard(DigestOf('a'));
    EXPECT_EQ(There(), "");
    ASSERT_THAT(Get(*cache, 'a'), IsOk());
    EXPECT_EQ(fetches_, 2);
  }
  cache->Discard(DigestOf('a'));
  EXPECT_EQ(cache->bytes(), 0u);
  EXPECT_THAT(ReadAll(folder_.path()),
              ElementsAre(std::pair<std::string, std::string>("lock", "")));
}

TEST_F(CacheTest, ThreadsThatWantOneArtifactFetchItOnce) {
  const auto cache = Open(100);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const char name = static_cast<char>('a' + (i * 7 + t) % 12);
        const auto pin = cache->Get(DigestOf(name), 10, [&](const std::string& path) {
          ++fetches_;
          WriteBytes(path, ContentOf(name));
          return absl::OkStatus();
        });
        ASSERT_THAT(pin, IsOk());
        EXPECT_EQ(ReadBytes(pin->path()), ContentOf(name));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache->bytes(), 100u);
  EXPECT_GE(fetches_, 12);
}

TEST_F(CacheTest, OneProcessAtATime) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto cache = ArtifactCache::Open(folder_.path(), {.bytes_max = 30});
    if (!cache.ok() || ::write(told[1], "x", 1) != 1) _exit(1);
    while (true) pause();
  }
  char byte;
  ASSERT_EQ(::read(told[0], &byte, 1), 1);
  EXPECT_THAT(ArtifactCache::Open(folder_.path(), {.bytes_max = 30}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another process")));
  kill(child, SIGKILL);
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_THAT(ArtifactCache::Open(folder_.path(), {.bytes_max = 30}), IsOk());
  close(told[0]);
  close(told[1]);
}

}  // namespace
}  // namespace lockstep::net
