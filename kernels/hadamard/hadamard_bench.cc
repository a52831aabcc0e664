// SPDX-License-Identifier: Apache-2.0
//
// The Walsh-Hadamard kernels against the memory's rate for the same bytes.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/harness.h"
#include "kernels/hadamard/hadamard.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kRows = 4096;
constexpr int64_t kCols = 5632;
constexpr int64_t kCount = kRows * kCols;

void Measure(bench::Bench& b, const std::string& name, int reads, int writes,
             const std::function<void(const Context&)>& call) {
  for (Isa isa : bench::Bench::Isas()) {
    for (int threads : {1, 2}) {
      const Context context = b.ContextOf(isa, threads);
      b.Compare({.name = absl::StrCat(name, " ", IsaName(isa), " ", threads, "T"),
                 .unit = "GB/s",
                 .work = static_cast<double>(reads + writes) * kCount,
                 .ours = [&] { call(context); },
                 .peer = "memory",
                 .peer_call = b.MemoryPeer(threads, reads, writes, kCount)});
    }
  }
}

LOCKSTEP_BENCH(hadamard, "Walsh-Hadamard transforms, against the memory's rate", b) {
  std::vector<BFloat16> x(kCount, BFloat16{0x3f80});
  std::vector<int8_t> x8(kCount, 3);
  std::vector<float> out(kCount);
  std::vector<int8_t> q(kCount);
  std::vector<float> scale(std::max(kRows, kCols));
  std::vector<float> row_scale(kRows, 0.5f);
  for (int64_t block : {128, 256}) {
    const std::string blocks = absl::StrCat(block, " ");
    Measure(b, blocks + "rows bf16 to f32", 2, 4, [&](const Context& context) {
      Run(context,
          HadamardRowsArgs{.out = out.data(), .x = x.data(), .count = kCount, .block = block});
    });
    Measure(b, blocks + "columns bf16 to f32", 2, 4, [&](const Context& context) {
      Run(context,
          HadamardColumnsArgs{
              .out = out.data(), .x = x.data(), .rows = kRows, .cols = kCols, .block = block});
    });
    Measure(b, blocks + "rows to int8", 2, 1, [&](const Context& context) {
      Run(context, HadamardQuantizeRowsArgs{.q = q.data(),
                                            .scale = scale.data(),
                                            .x = x.data(),
                                            .rows = kRows,
                                            .cols = kCols,
                                            .block = block});
    });
    Measure(b, blocks + "columns to int8", 2, 1, [&](const Context& context) {
      Run(context, HadamardQuantizeColumnsArgs{.q = q.data(),
                                               .scale = scale.data(),
                                               .x = x.data(),
                                               .rows = kRows,
                                               .cols = kCols,
                                               .block = block});
    });
    Measure(b, blocks + "columns int8 to int8", 1, 1, [&](const Context& context) {
      Run(context, HadamardQuantizeColumnsArgs{.q = q.data(),
                                               .scale = scale.data(),
                                               .x = x8.data(),
                                               .rows = kRows,
                                               .cols = kCols,
                                               .block = block});
    });
  }
}

}  // namespace
}  // namespace lockstep::kernels
