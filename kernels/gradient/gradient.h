// SPDX-License-Identifier: Apache-2.0
//
// What a training step does to whole gradients and parameters, element by element: accumulate, add,
// scale, convert. Items are elements; no result depends on another element. Every store is
// canonical, and no kernel here has an intermediate.
#ifndef LOCKSTEP_KERNELS_GRADIENT_GRADIENT_H_
#define LOCKSTEP_KERNELS_GRADIENT_GRADIENT_H_

#include "kernels/numeric.h"
#include "kernels/range.h"

namespace lockstep::kernels {

// acc[i] = Canon(fma(x[i], scale, acc[i])): one rounding.
struct AccumulateArgs {
  float* acc;      // [count]
  const float* x;  // [count], may be acc
  int64_t count;
  float scale;

  int64_t items() const { return count; }
  int64_t grain() const { return 16384; }
};

// acc[i] = Canon(acc[i] + x[i]).
struct AddIntoArgs {
  float* acc;      // [count]
  const float* x;  // [count], may be acc
  int64_t count;

  int64_t items() const { return count; }
  int64_t grain() const { return 16384; }
};

// x[i] = Canon(x[i] * scale).
struct ScaleArgs {
  float* x;  // [count]
  int64_t count;
  float scale;

  int64_t items() const { return count; }
  int64_t grain() const { return 16384; }
};

// out[i] = bf16(x[i]): canonical, then rounded to nearest even.
struct ConvertBf16Args {
  BFloat16* out;   // [count], not overlapping x
  const float* x;  // [count]
  int64_t count;

  int64_t items() const { return count; }
  int64_t grain() const { return 16384; }
};

// out[i] = Canon(x[i]): exact for the canonical bf16 values that tensors hold.
struct WidenF32Args {
  float* out;         // [count], not overlapping x
  const BFloat16* x;  // [count]
  int64_t count;

  int64_t items() const { return count; }
  int64_t grain() const { return 16384; }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_GRADIENT_GRADIENT_H_
