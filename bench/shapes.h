// SPDX-License-Identifier: Apache-2.0
//
// The matrix products that both matrix multiplications are measured at.
#ifndef LOCKSTEP_BENCH_SHAPES_H_
#define LOCKSTEP_BENCH_SHAPES_H_

#include <cstdint>
#include <string>

namespace lockstep::bench {

// [m, k] by [k, n].
struct GemmShape {
  int64_t m;
  int64_t n;
  int64_t k;

  double operations() const { return 2.0 * m * n * k; }
  std::string name() const {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  }
};

inline constexpr GemmShape kGemmShapes[] = {
    {512, 512, 512},     {1024, 1024, 1024}, {2048, 2048, 2048},
    {2048, 11264, 2048}, {2048, 2048, 5632},
};

}  // namespace lockstep::bench

#endif  // LOCKSTEP_BENCH_SHAPES_H_
