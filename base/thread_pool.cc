// SPDX-License-Identifier: Apache-2.0
//
// How a job runs: the caller fills in job_, opens it, and takes pieces like everyone else. Workers
// that are awake join; once no piece is left the caller closes the job and waits only for those who
// joined. A worker that the system did not run in time is thus never waited for, which keeps small
// jobs fast on a busy machine. See thread_pool.h for the contract.

#include "base/thread_pool.h"

#include <algorithm>
#include <system_error>

#include "base/cpu_affinity.h"
#include "base/fp_control.h"

namespace lockstep {
namespace {

constexpr uint32_t kOpen = uint32_t{1} << 31;

// How long a thread looks for work before it sleeps: longer than the pauses between the loops of a
// training step, shorter than anyone would notice.
constexpr std::chrono::microseconds kSpin{50};
constexpr int kPausesPerClockReading = 16;

// True on a thread that is inside a piece of some pool.
thread_local bool inside_piece = false;

inline void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(const ThreadPoolOptions& options) {
  const std::vector<int> cpus = AllowedCpus();
  const int threads = std::max(1, options.threads);
  // With more threads than CPUs, one that spins keeps one that works from running.
  if (threads <= static_cast<int>(cpus.size())) spin_ = kSpin;
  workers_.reserve(threads - 1);
  for (int i = 1; i < threads; ++i) {
    const int cpu = cpus[i % cpus.size()];
    try {
      workers_.emplace_back([this, cpu, pin = options.pin_to_cpus] {
        if (pin) PinThisThread(cpu);
        Work();
      });
    } catch (const std::system_error&) {
      break;
    }
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  job_count_.fetch_add(1);
  job_count_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ParallelFor(int64_t n, int64_t grain, Piece fn) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (n <= grain || workers_.empty() || inside_piece) {
    fn(0, n);
    return;
  }
  const std::lock_guard<std::mutex> lock(caller_mutex_);
  job_ = {.fn = &fn, .n = n, .grain = grain, .fp_control = FpControl()};
  next_.store(0, std::memory_order_relaxed);
  state_.store(kOpen, std::memory_order_release);
  // Sequentially consistent, as is the fetch_and below: a notify after a weaker change may miss a
  // thread that is about to sleep.
  job_count_.fetch_add(1);
  job_count_.notify_all();

  RunPieces();

  uint32_t inside = state_.fetch_and(~kOpen) & ~kOpen;
  while (inside != 0) {
    AwaitChange(state_, inside);
    inside = state_.load(std::memory_order_acquire);
  }
}

void ThreadPool::Work() {
  uint32_t seen = 0;
  while (true) {
    AwaitChange(job_count_, seen);
    seen = job_count_.load(std::memory_order_acquire);
    if (stop_.load()) return;
    if (!JoinJob()) continue;
    const uint64_t own = FpControl();
    SetFpControl(job_.fp_control);
    RunPieces();
    SetFpControl(own);
    LeaveJob();
  }
}

// From here to LeaveJob the caller waits for this thread, so job_ stays as it is.
bool ThreadPool::JoinJob() {
  uint32_t state = state_.load(std::memory_order_relaxed);
  while (state & kOpen) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void ThreadPool::LeaveJob() {
  // The last one out of a closed job wakes the caller, if it sleeps.
  if (state_.fetch_sub(1) == 1) state_.notify_one();
}

// Takes pieces until none is left. A piece is a share of what remains, so the first are large,
// which is cheap, and the last are small, which evens out the finish.
void ThreadPool::RunPieces() noexcept {
  const int64_t n = job_.n;
  const int64_t shares = 2 * int64_t{threads()};
  inside_piece = true;
  int64_t begin = next_.load(std::memory_order_relaxed);
  while (begin < n) {
    const int64_t size = std::min(n - begin, std::max(job_.grain, (n - begin) / shares));
    if (next_.compare_exchange_weak(begin, begin + size, std::memory_order_relaxed)) {
      (*job_.fn)(begin, begin + size);
      begin = next_.load(std::memory_order_relaxed);
    }
  }
  inside_piece = false;
}

// Returns once `word` differs from `seen`, and perhaps earlier for no reason.
void ThreadPool::AwaitChange(const std::atomic<uint32_t>& word, uint32_t seen) const {
  if (spin_.count() > 0) {
    const auto deadline = std::chrono::steady_clock::now() + spin_;
    do {
      for (int i = 0; i < kPausesPerClockReading; ++i) {
        if (word.load(std::memory_order_acquire) != seen) return;
        Pause();
      }
    } while (std::chrono::steady_clock::now() < deadline);
  }
  word.wait(seen, std::memory_order_acquire);
}

}  // namespace lockstep
