// SPDX-License-Identifier: Apache-2.0
//
// A pool of threads for loops over independent items, made for jobs of microseconds that come
// thousands of times a second. Its size must never change a result: it decides who computes an
// item, and nothing about the item. Not a task queue; it holds one job at a time.

#ifndef LOCKSTEP_BASE_THREAD_POOL_H_
#define LOCKSTEP_BASE_THREAD_POOL_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace lockstep {

struct ThreadPoolOptions {
  // Threads that work on a job, the caller of ParallelFor among them; less than 1 counts as 1.
  int threads = 1;
  // Holds started thread i on allowed CPU i, counted from 0, round again where there are fewer. The
  // caller's thread is not the pool's: it may take CPU 0 with PinThisThread, once the pool stands.
  // For benchmarks; elsewhere the scheduler knows better.
  bool pin_to_cpus = false;
};

class ThreadPool {
 public:
  // Starts threads - 1 threads. Where the system refuses one, the pool is as large as it got.
  explicit ThreadPool(const ThreadPoolOptions& options);
  explicit ThreadPool(int threads) : ThreadPool(ThreadPoolOptions{.threads = threads}) {}

  // No ParallelFor may be running.
  ~ThreadPool();

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Threads that work on a job, the caller's among them.
  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Cuts [0, n) into contiguous pieces of at least `grain` items (the last may be shorter; a grain
  // below 1 counts as 1) and calls fn(begin, end) for each, every item exactly once. Returns when
  // all are done, and what fn wrote is then visible to the caller. n <= 0 does nothing.
  //
  // The cut is decided as the work goes and differs from call to call: what fn computes for an item
  // must not depend on it. Each piece runs under the caller's floating-point control word.
  //
  // Runs on the calling thread alone if n <= grain, if the pool has one thread, or inside a piece
  // of any pool (a nested call). Any thread may call; jobs of several callers run one after
  // another, so fn must not wait for a thread that waits for a pool. fn must not throw: that ends
  // the program.
  void ParallelFor(int64_t n, int64_t grain,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

 private:
  using Piece = absl::FunctionRef<void(int64_t, int64_t)>;

  struct Job {
    const Piece* fn = nullptr;
    int64_t n = 0;
    int64_t grain = 1;
    uint64_t fp_control = 0;
  };

  void Work();
  bool JoinJob();
  void LeaveJob();
  void RunPieces() noexcept;
  void AwaitChange(const std::atomic<uint32_t>& word, uint32_t seen) const;

  // Serialises the callers of ParallelFor.
  std::mutex caller_mutex_;

  // Written by the caller while nobody is in the job and it is closed; read by those who joined it.
  Job job_;

  // Each on a cache line of its own: workers that wait for the next job must not slow the present
  // one down, nor those who take pieces the ones who join.
  //
  // Counts jobs; the workers wait for it to change.
  alignas(64) std::atomic<uint32_t> job_count_{0};
  // kOpen while workers may join the job, plus the number of workers in it. The caller waits for 0.
  alignas(64) std::atomic<uint32_t> state_{0};
  // First item that nobody has taken.
  alignas(64) std::atomic<int64_t> next_{0};

  alignas(64) std::atomic<bool> stop_{false};
  std::chrono::nanoseconds spin_{0};
  std::vector<std::thread> workers_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_THREAD_POOL_H_
