// SPDX-License-Identifier: Apache-2.0
//
// SwiGLU: the gate's SiLU times the up projection, forward and backward, on the fused bf16 output
// of one matrix product: the first `width` columns of a row are the gate, the next `width` are up.
//
// The results are bf16, whose rounding is up to 2^-8 relative, so the exponential inside is a
// shorter polynomial than kernels/math/exp.h has; its formula stands in swiglu_formula.h, once for
// all instruction sets. For a gate g (bf16), every line one rounding, fma where written:
//   gc = max(-80, g)            (-80 > g ? -80 : g, so NaN stays)
//   x  = min(gc, 80)            (gc < 80 ? gc : 80)
//   e  = SwigluExp(x)           (e^-x; see swiglu_formula.h)
//   d  = 1 + e
// Below the clamp, SiLU is -80 / (1 + e^80), a magnitude of 2^-109 where the true value is smaller.
// Relative error against the true SiLU for g >= -80, over all bf16: at most 2^-15.
#ifndef LOCKSTEP_KERNELS_SWIGLU_SWIGLU_H_
#define LOCKSTEP_KERNELS_SWIGLU_SWIGLU_H_

#include "kernels/numeric.h"
#include "kernels/range.h"

namespace lockstep::kernels {

// out[r, j] = bf16((gc / d) * up). The quotient needs no Canon: e = 1 exactly for |g| < 2^-24, so
// it is 0 or at least 2^-125 / 2 = 2^-126 in magnitude, which no machine flushes.
struct SwigluForwardArgs {
  BFloat16* out;      // [rows, width]
  const BFloat16* x;  // [rows, 2 * width]: gate, up
  int64_t rows;
  int64_t width;

  int64_t items() const { return rows; }
  int64_t grain() const { return 1 + 8192 / (width + 1); }
};

// The gradients of gate and up, from the forward pass's input:
//   s    = 1 / d                                       (the sigmoid)
//   silu = gc * s                                      (0 or at least 2^-126, as above)
//   w    = fma(silu, 1 - s, s)                         (the derivative of SiLU)
//   dup   = bf16(dout * silu)
//   dgate = bf16(Canon(dout * up) * w)
// w is 0 or far above the tiny range: s >= 2^-116, and where the two terms cancel (near g = -1.28)
// what is left is at least an ulp of s. A gate of +Inf gives dgate = NaN. dx may be x.
struct SwigluBackwardArgs {
  BFloat16* dx;          // [rows, 2 * width]: dgate, dup
  const BFloat16* dout;  // [rows, width]
  const BFloat16* x;     // [rows, 2 * width]: gate, up
  int64_t rows;
  int64_t width;

  int64_t items() const { return rows; }
  int64_t grain() const { return 1 + 8192 / (width + 1); }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_SWIGLU_SWIGLU_H_
