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
#include <thread>
#include <vector>

#include "base/cpu_affinity.h"
#include "base/logging.h"
#include "bench/registry.h"
#include "nlohmann/json.hpp"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 7;
constexpr double kRoundSeconds =
    0.02;  // a round repeats the call until it takes at least this long
constexpr std::chrono::milliseconds kSettle{20};

double SecondsOf(const std::function<void()>& call, int repeats) {
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < repeats; ++i) call();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int RepeatsOf(const std::function<void()>& call) {
  const double once =
      std::max(SecondsOf(call, 1), 1e-9);  // the first call warms up and is not timed
  const double again = std::min(once, std::max(SecondsOf(call, 1), 1e-9));
  return std::max(1, static_cast<int>(kRoundSeconds / again + 1));
}

// Seconds of a round. OpenMP threads of a peer spin for some milliseconds after their work, which
// would take cores from whoever comes next: the round waits for that to end, and wakes its own
// threads before the clock starts.
double RoundOf(const std::function<void()>& call, int repeats) {
  std::this_thread::sleep_for(kSettle);
  if (repeats > 1) call();
  return SecondsOf(call, repeats);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

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
  const int ours_repeats = RepeatsOf(m.ours);
  const int peer_repeats = m.peer_call ? RepeatsOf(m.peer_call) : 0;
  std::vector<double> ours;
  std::vector<double> peer;
  for (int round = 0; round < kRounds; ++round) {
    ours.push_back(m.work * ours_repeats / RoundOf(m.ours, ours_repeats) * 1e-9);
    if (m.peer_call)
      peer.push_back(m.work * peer_repeats / RoundOf(m.peer_call, peer_repeats) * 1e-9);
  }
  Row(m.name, Median(ours), m.unit, m.peer_call ? m.peer : "", m.peer_call ? Median(peer) : 0.0);
}

void Bench::Row(const std::string& name, double value, const std::string& unit,
                const std::string& peer, double peer_value) {
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
