// SPDX-License-Identifier: Apache-2.0
//
// The functions of this folder as kernels over arrays: for tests, benchmarks and the digests of all
// outputs (golden_full.txt). Kernels of other folders call the formulas themselves (exp.h, log.h,
// sigmoid.h, sin_cos.h, erfinv.h, rsqrt.h, pow.h), where each is defined and its error stated.
#ifndef LOCKSTEP_KERNELS_MATH_FUNCTIONS_H_
#define LOCKSTEP_KERNELS_MATH_FUNCTIONS_H_

#include "kernels/numeric.h"
#include "kernels/range.h"

namespace lockstep::kernels {

enum class UnaryFunction {
  kExp,
  kLog,
  kSin,
  kCos,
  kSigmoid,
  kSilu,
  kSiluGrad,
  kRsqrt,
  kErfinv,
};

// out[i] = function(in[i]), canonical, for any bits in `in`. out may be in.
struct UnaryArgs {
  float* out;       // [count]
  const float* in;  // [count]
  int64_t count;
  UnaryFunction function;

  int64_t items() const { return count; }  // elements
  int64_t grain() const { return 4096; }
};

// out[i] = x[i]^y[i], canonical, for any bits. out may be x or y.
struct PowArgs {
  float* out;      // [count]
  const float* x;  // [count]
  const float* y;  // [count]
  int64_t count;

  int64_t items() const { return count; }  // elements
  int64_t grain() const { return 1024; }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_MATH_FUNCTIONS_H_
