// SPDX-License-Identifier: Apache-2.0
//
// The written orders in which kernels add floats (kernels/README.md §3), in scalar code: this is
// the definition. The vector form of the row order is in kernels/simd/row_sum.h. The callables
// return operands already snapped.
#ifndef LOCKSTEP_KERNELS_SUMS_H_
#define LOCKSTEP_KERNELS_SUMS_H_

#include <cstdint>

#include "kernels/numeric.h"

namespace lockstep::kernels {

constexpr int64_t kDepth = 256;     // block of a dot product's contraction index
constexpr int64_t kLanes = 32;      // interleaved partial sums of a row
constexpr int64_t kRun = 4096;      // elements of a row that share one set of lanes
constexpr int64_t kRowBlock = 256;  // rows of a column sum added before the block total is

// Rows: lane l of a run adds elements l, l+32, ... by step(lane, i); lanes fold by halves; run
// totals add ascending.
template <class Step>
static float SumByLanes(int64_t n, Step&& step) {
  float total = 0.0f;
  for (int64_t run = 0; run < n; run += kRun) {
    const int64_t end = run + kRun < n ? run + kRun : n;
    float lanes[kLanes] = {};
    for (int64_t i = run; i < end; ++i) lanes[i % kLanes] = step(lanes[i % kLanes], i);
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (int64_t l = 0; l < half; ++l) lanes[l] = lanes[l] + lanes[l + half];
    }
    total = total + lanes[0];
  }
  return total;
}

// Sum of a(0..n-1).
template <class A>
static float RowSum(int64_t n, A&& a) {
  return SumByLanes(n, [&](float lane, int64_t i) { return lane + a(i); });
}

// Sum of a(i) * b(i), fused.
template <class A, class B>
static float RowDot(int64_t n, A&& a, B&& b) {
  return SumByLanes(n, [&](float lane, int64_t i) { return Fma(a(i), b(i), lane); });
}

// Matrix products: blocks of kDepth in ascending order, each from +0, added to c in ascending
// order.
template <class A, class B>
static float Dot(int64_t n, A&& a, B&& b, float c = 0.0f) {
  for (int64_t block = 0; block < n; block += kDepth) {
    const int64_t end = block + kDepth < n ? block + kDepth : n;
    float acc = 0.0f;
    for (int64_t k = block; k < end; ++k) acc = Fma(a(k), b(k), acc);
    c = c + acc;
  }
  return c;
}

// Columns (over rows r): blocks of kRowBlock from +0 by step(acc, r), block totals ascending.
template <class Step>
static float SumByRowBlocks(int64_t rows, Step&& step) {
  float total = 0.0f;
  for (int64_t block = 0; block < rows; block += kRowBlock) {
    const int64_t end = block + kRowBlock < rows ? block + kRowBlock : rows;
    float acc = 0.0f;
    for (int64_t r = block; r < end; ++r) acc = step(acc, r);
    total = total + acc;
  }
  return total;
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_SUMS_H_
