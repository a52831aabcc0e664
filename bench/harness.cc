// SPDX-License-Identifier: Apache-2.0
//
// Timing, medians, rows.
#include "bench/harness.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

#include "base/cpu_affinity.h"
#include "base/logging.h"
#include "bench/registry.h"
#include "nlohmann/json.hpp"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 7;
constexpr int kLongRounds = 5;  // of calls that take longer than kLongSeconds
constexpr double kLongSeconds = 0.3;
constexpr double kRoundSeconds =
    0.02;  // a round repeats the call until it takes at least this long
// Longer than OpenBLAS's threads (about 20 ms) and OpenMP's spin for another call.
constexpr std::chrono::milliseconds kPause{40};

double SecondsOf(const std::function<void()>& call, int repeats) {
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < repeats; ++i) call();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Holds the calling thread on the first CPU for a scope. Elsewhere than on Linux it does nothing.
class CallerOnFirstCpu {
 public:
#ifdef __linux__
  CallerOnFirstCpu() {
    held_ = sched_getaffinity(0, sizeof(before_), &before_) == 0 && PinThisThread(AllowedCpus()[0]);
  }
  ~CallerOnFirstCpu() {
    if (held_) sched_setaffinity(0, sizeof(before_), &before_);
  }

 private:
  cpu_set_t before_;
  bool held_;
#endif
};

// One side of a comparison.
class Side {
 public:
  Side(const std::function<void()>& call, bool apart) : call_(call), apart_(apart) {
    SecondsOf(call, 1);  // warms up
    seconds_ = std::max(SecondsOf(call, 1), 1e-9);
    repeats_ = std::max(1, static_cast<int>(kRoundSeconds / seconds_ + 1));
  }
  int rounds() const { return seconds_ > kLongSeconds ? kLongRounds : kRounds; }

  void TakeTurn() {
    if (apart_) {
      std::this_thread::sleep_for(kPause);
      if (repeats_ > 1) call_();
    }
    calls_a_second_.push_back(repeats_ / SecondsOf(call_, repeats_));
  }
  double MedianCallsASecond() {
    std::sort(calls_a_second_.begin(), calls_a_second_.end());
    return calls_a_second_[calls_a_second_.size() / 2];
  }

 private:
  const std::function<void()>& call_;
  const bool apart_;
  double seconds_;  // of one call
  int repeats_;     // calls of a turn
  std::vector<double> calls_a_second_;
};

struct Streams {
  std::vector<std::unique_ptr<uint64_t[]>> in;
  std::vector<std::unique_ptr<uint64_t[]>> out;
};

// Reads every input stream and writes every output stream, words [begin, end).
__attribute__((noinline)) void Stream(const Streams& streams, int64_t begin, int64_t end) {
  constexpr int64_t kWords = 512;  // a page at a time, so that the streams advance together
  uint64_t page[kWords];
  for (int64_t at = begin; at < end; at += kWords) {
    const int64_t words = std::min(kWords, end - at);
    std::memset(page, 0, sizeof(page));
    for (const auto& in : streams.in) {
      for (int64_t i = 0; i < words; ++i) page[i] += in[at + i];
    }
    for (const auto& out : streams.out) std::memcpy(&out[at], page, words * sizeof(uint64_t));
    asm volatile("" : : "r"(page) : "memory");
  }
}

}  // namespace

std::map<std::string, Entry>& Registry() {
  static auto* registry = new std::map<std::string, Entry>();
  return *registry;
}

Registration::Registration(const char* name, const char* what, void (*run)(Bench&)) {
  Registry()[name] = Entry{what, run};
}

void Bench::Compare(const Measurement& m) {
  if (!Wants(m.name)) return;
  std::optional<Side> peer;
  if (m.peer_call) peer.emplace(m.peer_call, m.peer_has_threads);
  std::optional<Side> ours;
  const auto our_turn = [&](auto&& turn) {
    const CallerOnFirstCpu held;
    turn();
  };
  our_turn([&] { ours.emplace(m.ours, m.peer_has_threads); });
  for (int round = 0; round < ours->rounds(); ++round) {
    our_turn([&] { ours->TakeTurn(); });
    if (peer) peer->TakeTurn();
  }
  const double work = m.work * 1e-9;
  Row(m.name, work * ours->MedianCallsASecond(), m.unit, peer ? m.peer : "",
      peer ? work * peer->MedianCallsASecond() : 0.0);
}

void Bench::Row(const std::string& name, double value, const std::string& unit,
                const std::string& peer, double peer_value) {
  if (!Wants(name)) return;
  const bool compared = !peer.empty();
  if (json_) {
    nlohmann::ordered_json row = {
        {"bench", name_}, {"case", name}, {"value", value}, {"unit", unit}};
    row["peer"] = compared ? nlohmann::ordered_json(peer) : nlohmann::ordered_json();
    row["peer_value"] = compared ? nlohmann::ordered_json(peer_value) : nlohmann::ordered_json();
    row["ratio"] = compared ? nlohmann::ordered_json(value / peer_value) : nlohmann::ordered_json();
    std::printf("%s\n", row.dump().c_str());
  } else {
    if (!header_printed_) std::printf("%s\n", name_.c_str());
    header_printed_ = true;
    std::printf("  %-52s %9.2f %-8s", name.c_str(), value, unit.c_str());
    if (compared)
      std::printf("  %-22s %9.2f   ratio %.3f", peer.c_str(), peer_value, value / peer_value);
    std::printf("\n");
  }
  std::fflush(stdout);
}

ThreadPool& Bench::Pool(int threads) {
  static auto* pools = new std::map<int, std::unique_ptr<ThreadPool>>();
  std::unique_ptr<ThreadPool>& pool = (*pools)[threads];
  if (pool == nullptr) {
    pool = std::make_unique<ThreadPool>(
        ThreadPoolOptions{.threads = threads, .pin_to_cpus = threads > 1});
  }
  return *pool;
}

kernels::Context Bench::ContextOf(kernels::Isa isa, int threads) {
  return kernels::Context{Pool(threads), kernels::KernelsFor(isa)};
}

std::vector<kernels::Isa> Bench::Isas() {
  std::vector<kernels::Isa> isas = kernels::AvailableIsas();
  isas.erase(isas.begin());
  std::reverse(isas.begin(), isas.end());
  return isas;
}

std::function<void()> Bench::MemoryPeer(int threads, int reads, int writes, int64_t bytes_each) {
  const int64_t words = bytes_each / static_cast<int64_t>(sizeof(uint64_t));
  auto streams = std::make_shared<Streams>();
  const auto make = [&] {
    auto stream = std::make_unique<uint64_t[]>(words);
    std::memset(stream.get(), 1, words * sizeof(uint64_t));
    return stream;
  };
  for (int i = 0; i < reads; ++i) streams->in.push_back(make());
  for (int i = 0; i < writes; ++i) streams->out.push_back(make());
  ThreadPool* pool = &Pool(threads);
  return [streams, pool, words, threads] {
    pool->ParallelFor(words, (words + threads - 1) / threads,
                      [&](int64_t begin, int64_t end) { Stream(*streams, begin, end); });
  };
}

void Bench::CompareWithMemory(const std::string& name, int reads, int writes, int64_t bytes_each,
                              const std::function<void(const kernels::Context&)>& call) {
  for (kernels::Isa isa : Isas()) {
    for (int threads : {1, 2}) {
      const kernels::Context context = ContextOf(isa, threads);
      Compare({.name = name + ", " + std::string(kernels::IsaName(isa)) + " " +
                       std::to_string(threads) + "T",
               .unit = "GB/s",
               .work = static_cast<double>(reads + writes) * static_cast<double>(bytes_each),
               .ours = [&] { call(context); },
               .peer = "memory",
               .peer_call = MemoryPeer(threads, reads, writes, bytes_each)});
    }
  }
}

}  // namespace lockstep::bench
