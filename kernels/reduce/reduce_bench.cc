// SPDX-License-Identifier: Apache-2.0
//
// The sums against the memory's rate.
#include <cstdint>
#include <vector>

#include "bench/harness.h"
#include "kernels/reduce/reduce.h"

namespace lockstep::kernels {
namespace {

// About 64 MiB a stream: outside the cache.
LOCKSTEP_BENCH(reduce, "row and column sums, sums of squares, against the memory's rate", b) {
  constexpr int64_t kCols = 2048;
  constexpr int64_t kRows = 8192;
  constexpr int64_t kCount = kRows * kCols;
  constexpr int64_t kBytes = kCount * static_cast<int64_t>(sizeof(float));
  std::vector<float> x(kCount, 1.5f);
  std::vector<float> out(kRows);
  b.CompareWithMemory("row sums f32", 1, 0, kBytes, [&](const Context& context) {
    Run(context, RowSumsArgs{out.data(), x.data(), kRows, kCols, kCols});
  });
  b.CompareWithMemory("column sums f32", 1, 0, kBytes, [&](const Context& context) {
    ColumnSums(context, ColumnSumsArgs{out.data(), x.data(), kRows, kCols, kCols});
  });
  b.CompareWithMemory("sum of squares", 1, 0, kBytes, [&](const Context& context) {
    Run(context, SumOfSquaresArgs{out.data(), x.data(), kCount});
    float norm;
    Run(context, GlobalNormArgs{&norm, out.data(), kCount / kNormChunk});
  });
  std::vector<BFloat16> y(2 * kCount, BFloat16{0x3f91});
  std::vector<float> rows(2 * kRows);
  b.CompareWithMemory("row sums bf16", 1, 0, kBytes, [&](const Context& context) {
    Run(context, RowSumsArgs{rows.data(), y.data(), 2 * kRows, kCols, kCols});
  });
  b.CompareWithMemory("column sums bf16", 1, 0, kBytes, [&](const Context& context) {
    ColumnSums(context, ColumnSumsArgs{out.data(), y.data(), 2 * kRows, kCols, kCols});
  });
}

}  // namespace
}  // namespace lockstep::kernels
