// SPDX-License-Identifier: Apache-2.0
//
// AdamW: one fused pass over parameters, moments and gradient (Loshchilov and Hutter,
// arXiv:1711.05101, Algorithm 2, with the decay inside the step and scaled by the learning rate).
#ifndef LOCKSTEP_KERNELS_ADAMW_ADAMW_H_
#define LOCKSTEP_KERNELS_ADAMW_ADAMW_H_

#include "kernels/numeric.h"
#include "kernels/range.h"

namespace lockstep::kernels {

// The scalars of a step, each rounded once to f32.
struct AdamWScalars {
  float lr;
  float beta1;
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float eps;  // > 0
  float weight_decay;
  float correction1;  // 1 / (1 - beta1^t), t = 1 at the first step
  float correction2;  // 1 / (1 - beta2^t)
};

// From binary64 hyper-parameters: 1 - beta, beta^t (Pow64 of kernels/math/host64.h) and the
// corrections in binary64, canonical f32 at the end. step >= 1, betas in (0, 1).
AdamWScalars AdamWScalarsAt(int64_t step, double lr, double beta1, double beta2, double eps,
                            double weight_decay);

// For each element, every line one rounding, fma where written, Canon as the values can be tiny:
//   gs = Canon(g * clip_scale)
//   m  = Canon(fma(beta1, m, Canon(one_minus_beta1 * gs)))
//   v  = Canon(fma(beta2, v, Canon(one_minus_beta2 * Canon(gs * gs))))
//   denominator = sqrt(Canon(v * correction2)) + eps
//   u  = Canon(Canon(m * correction1) / denominator)
//   u  = Canon(fma(weight_decay, p, u))
//   p  = fma(-lr, u, p)
// The parameter is p_f32, or p_bf16 where p_f32 is null, rounded to nearest even when stored. With
// both, p_f32 is the parameter and p_bf16 is written only: its rounding to bf16. No two arrays
// overlap. Items are elements.
struct AdamWArgs {
  float* p_f32;      // [count] or null
  BFloat16* p_bf16;  // [count] or null; one of the two is set, or both
  float* m;          // [count]
  float* v;          // [count]
  const float* g;    // [count]
  int64_t count;
  AdamWScalars scalars;
  float clip_scale;  // ClipScale of kernels/reduce/reduce.h

  int64_t items() const { return count; }
  int64_t grain() const { return 8192; }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_ADAMW_ADAMW_H_
