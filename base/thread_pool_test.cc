// SPDX-License-Identifier: Apache-2.0
//
// Every item exactly once, whatever the threads, the grain and the callers; the caller's
// floating-point mode in every worker; no races (the suite runs under ThreadSanitizer too).

#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpu_affinity.h"
#include "base/fp_control.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::SizeIs;

class ThreadPoolTest : public ::testing::TestWithParam<int> {
 protected:
  ThreadPool pool_{GetParam()};
};

TEST_P(ThreadPoolTest, RunsEveryItemOnce) {
  EXPECT_EQ(pool_.threads(), GetParam());
  for (int64_t n : {0, 1, 2, 3, 7, 64, 1000, 4097}) {
    for (int64_t grain : {-1, 0, 1, 2, 3, 64, 5000}) {
      std::vector<int> runs(n);
      pool_.ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++runs[i];
      });
      ASSERT_THAT(runs, Each(1)) << "n " << n << ", grain " << grain;
    }
  }
}

TEST_P(ThreadPoolTest, PiecesAreAdjacentAndNoSmallerThanTheGrain) {
  for (int64_t grain : {1, 3, 16}) {
    std::mutex mutex;
    std::vector<std::pair<int64_t, int64_t>> pieces;
    pool_.ParallelFor(1000, grain, [&](int64_t begin, int64_t end) {
      const std::lock_guard<std::mutex> lock(mutex);
      pieces.emplace_back(begin, end);
    });
    std::sort(pieces.begin(), pieces.end());
    EXPECT_EQ(pieces.front().first, 0);
    EXPECT_EQ(pieces.back().second, 1000);
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      EXPECT_EQ(pieces[i].second, pieces[i + 1].first);
      EXPECT_THAT(pieces[i].second - pieces[i].first, Ge(grain));
    }
  }
}

TEST_P(ThreadPoolTest, TakesTheLargestRange) {
  constexpr int64_t kItems = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> items{0};
  pool_.ParallelFor(kItems, 1 << 20, [&](int64_t begin, int64_t end) { items += end - begin; });
  EXPECT_EQ(items, kItems);
}

TEST_P(ThreadPoolTest, ManySmallJobsSeeEachOthersWrites) {
  std::vector<int64_t> values(37, 0);
  for (int job = 0; job < 5000; ++job) {
    pool_.ParallelFor(37, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[i] += values[i] == job;
    });
  }
  EXPECT_THAT(values, Each(5000));
}

TEST_P(ThreadPoolTest, NestedCallsRunInline) {
  ThreadPool other(2);
  std::atomic<int> items{0};
  std::atomic<int> strays{0};
  pool_.ParallelFor(8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::thread::id self = std::this_thread::get_id();
      const auto count = [&](int64_t b, int64_t e) {
        items += static_cast<int>(e - b);
        strays += std::this_thread::get_id() != self;
      };
      pool_.ParallelFor(100, 1, count);
      if (pool_.threads() > 1) other.ParallelFor(100, 1, count);
    }
  });
  EXPECT_EQ(items, pool_.threads() > 1 ? 1600 : 800);
  EXPECT_EQ(strays, 0);
}

TEST_P(ThreadPoolTest, SeveralCallersAtOnce) {
  constexpr int kCallers = 4;
  constexpr int kJobs = 200;
  std::vector<std::vector<int>> runs(kCallers, std::vector<int>(64));
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&, c] {
      for (int job = 0; job < kJobs; ++job) {
        pool_.ParallelFor(64, 4, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++runs[c][i];
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(runs, Each(Each(kJobs)));
}

// Each piece waits until every thread has one, so this ends only if all of them take part, also
// after they have gone to sleep.
TEST_P(ThreadPoolTest, EveryThreadTakesPart) {
  for (int round = 0; round < 20; ++round) {
    std::latch all(GetParam());
    std::atomic<int> pieces{0};
    pool_.ParallelFor(GetParam(), 1, [&](int64_t, int64_t) {
      ++pieces;
      all.arrive_and_wait();
    });
    EXPECT_EQ(pieces, GetParam());
    if (round % 5 == 4) {
      const auto later = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
      while (std::chrono::steady_clock::now() < later) std::this_thread::yield();
    }
  }
}

TEST_P(ThreadPoolTest, WorkersRunUnderTheCallersFloatingPointMode) {
  const uint64_t own = FpControl();
#if defined(__x86_64__)
  const uint64_t other = own ^ 0x8040;  // FTZ and DAZ
#elif defined(__aarch64__)
  const uint64_t other = own ^ (uint64_t{1} << 24);  // FZ
#else
  const uint64_t other = own;
#endif
  volatile float tiny = std::numeric_limits<float>::min();
  for (uint64_t mode : {own, other, own}) {
    SetFpControl(mode);
    std::latch all(GetParam());
    std::vector<uint64_t> modes(GetParam());
    std::vector<float> halves(GetParam());
    pool_.ParallelFor(GetParam(), 1, [&](int64_t begin, int64_t) {
      modes[begin] = FpControl();
      halves[begin] = tiny * 0.5f;
      all.arrive_and_wait();
    });
    const uint64_t after = FpControl();
    const volatile float half = tiny * 0.5f;  // not after the mode is put back
    SetFpControl(own);
    EXPECT_EQ(after, mode);
    EXPECT_THAT(modes, Each(mode));
    EXPECT_THAT(halves, Each(half));
    EXPECT_EQ(half == 0.0f, mode == other && other != own);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, ::testing::Values(1, 2, 3, 5, 16));

TEST(ThreadPool, FewerThanOneThreadIsOne) {
  EXPECT_EQ(ThreadPool(0).threads(), 1);
  EXPECT_EQ(ThreadPool(-3).threads(), 1);
}

TEST(ThreadPool, StartsAndStopsAtOnce) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

TEST(ThreadPool, PinnedThreadsStayOnOneCpu) {
  const std::vector<int> allowed = AllowedCpus();
  bool can_pin = false;
  std::thread([&] { can_pin = PinThisThread(allowed[0]); }).join();
  ThreadPool pool(ThreadPoolOptions{.threads = 3, .pin_to_cpus = true});
  const std::thread::id caller = std::this_thread::get_id();
  std::latch all(3);
  std::vector<std::vector<int>> cpus(3);
  pool.ParallelFor(3, 1, [&](int64_t begin, int64_t) {
    if (std::this_thread::get_id() != caller) cpus[begin] = AllowedCpus();
    all.arrive_and_wait();
  });
  for (const std::vector<int>& mine : cpus) {
    if (!can_pin || mine.empty()) continue;
    EXPECT_THAT(mine, SizeIs(1));
  }
  EXPECT_EQ(AllowedCpus(), allowed);
  EXPECT_FALSE(PinThisThread(-1));
}

}  // namespace
}  // namespace lockstep
