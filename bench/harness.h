// SPDX-License-Identifier: Apache-2.0
//
// How lockstep measures speed: ours and a peer take turns in one process, so that whatever else the
// machine does meets both; the figure is the median of the rounds, and the ratio is what counts. A
// benchmark is a function registered by LOCKSTEP_BENCH in a file named x_bench.cc; scripts/bench
// runs it by name.
#ifndef LOCKSTEP_BENCH_HARNESS_H_
#define LOCKSTEP_BENCH_HARNESS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/context.h"

namespace lockstep::bench {

// One thing that is measured.
struct Measurement {
  std::string name;  // the case: shape, threads, instruction set
  std::string unit;  // of work per second: "GFLOP/s", "GB/s"
  double work;  // done by one call, in the unit times a second: 2e9 for two GFLOP, 1e9 for a GB
  std::function<void()> ours;  // one call
  std::string peer;            // what ours is compared with; empty for nothing
  std::function<void()> peer_call;
  // The peer brings its own threads, which may spin for a while after a call. Turns are then kept
  // apart by a pause, and begin with a call that is not timed.
  bool peer_has_threads = false;
};

// The running benchmark: collects rows and prints them as a table or, with --json, one object a
// line:
// {"bench","case","value","unit","peer","peer_value","ratio"}; the last three are null without a
// peer.
class Bench {
 public:
  // only: cases whose names do not have it in them are not measured.
  Bench(std::string name, std::string only, bool json)
      : name_(std::move(name)), only_(std::move(only)), json_(json) {}

  // Whether the case is to be measured; asked before what is expensive to make for it. Compare and
  // Row leave out the others themselves.
  bool Wants(const std::string& name) const { return name.find(only_) != std::string::npos; }

  // Takes turns until each side has at least 5 rounds of at least a few milliseconds; prints the
  // medians. During our turns the calling thread is held on the first CPU, which the threads of
  // Pool() leave to it; the peer's turns find it as it was.
  void Compare(const Measurement& measurement);
  // A row measured elsewhere. peer empty: none.
  void Row(const std::string& name, double value, const std::string& unit, const std::string& peer,
           double peer_value);

  // A pool of 1 or 2 (or more) threads pinned to cores, made at the first call.
  ThreadPool& Pool(int threads);
  // Pool(threads) with the kernels of an instruction set that this machine has.
  kernels::Context ContextOf(kernels::Isa isa, int threads);
  // The instruction sets worth measuring here, fastest first (the reference is not).
  static std::vector<kernels::Isa> Isas();

  // A plain loop that reads `reads` streams and writes `writes` streams of bytes_each bytes, on the
  // pool's threads: the memory's rate for that mix, the peer of row and elementwise kernels.
  // Buffers are made once a call of MemoryPeer.
  std::function<void()> MemoryPeer(int threads, int reads, int writes, int64_t bytes_each);

  // A row or elementwise operation against MemoryPeer(threads, reads, writes, bytes_each), in GB/s
  // of what it reads and writes: one case per instruction set of this machine, with 1 and 2
  // threads.
  void CompareWithMemory(const std::string& name, int reads, int writes, int64_t bytes_each,
                         const std::function<void(const kernels::Context&)>& call);

 private:
  std::string name_;
  std::string only_;
  bool json_;
  bool header_printed_ = false;
};

struct Registration {
  Registration(const char* name, const char* what, void (*run)(Bench&));
};

// LOCKSTEP_BENCH(gemm_f32, "f32 matrix product against OpenBLAS and oneDNN", b) { b.Compare(...); }
#define LOCKSTEP_BENCH(Name, What, b)                                                        \
  static void Name##Bench(::lockstep::bench::Bench&);                                        \
  static const ::lockstep::bench::Registration Name##Registration(#Name, What, Name##Bench); \
  static void Name##Bench(::lockstep::bench::Bench& b)

}  // namespace lockstep::bench

#endif  // LOCKSTEP_BENCH_HARNESS_H_
