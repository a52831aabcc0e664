// SPDX-License-Identifier: Apache-2.0
//
// Elementary functions in binary64 for the host's tables and schedules: rotary angles and
// frequencies, learning rates, bias corrections. Fixed sequences of binary64 operations, so the
// bits are the same on every machine and under every compiler; nothing here is called in a kernel.
//
// Arguments are reduced, and power series with their plain factorial or odd-integer coefficients
// summed, in double-double arithmetic (pairs h + l, about 2^-100 relative), and the pair is rounded
// once at the end: each result is the correctly rounded value unless that lies within about 2^-90
// of the middle between two doubles, and is less than 0.5001 ulp off in any case. Another
// implementation that rounds correctly therefore gives the same bits. A call takes under a
// microsecond.
//
// No result depends on hardware flushing: outside the ranges below results are given without
// arithmetic, and inside them nothing that matters is below 2^-900.
#ifndef LOCKSTEP_KERNELS_MATH_HOST64_H_
#define LOCKSTEP_KERNELS_MATH_HOST64_H_

namespace lockstep::kernels {

constexpr double kPi64 = 0x1.921fb54442d18p+1;

// e^x. x < -600 -> 0, x > 600 -> +Inf: far beyond any use here, and clear of the ends of the
// exponent range. NaN -> NaN.
double Exp64(double x);

// The natural logarithm of 2^-900 <= x < Inf; |x| < 2^-900 -> -Inf, +Inf -> +Inf, other negative x
// and NaN -> NaN.
double Log64(double x);

// Sine and cosine for |x| <= 2^30 radians; NaN beyond, and for NaN.
double Sin64(double x);
double Cos64(double x);

// x^y = e^(y ln x) for x > 0, in the ranges of Exp64 and Log64; the product is kept as a pair, so
// that the result is as good as the others. |y| < 2^-1022 -> 1; otherwise |x| < 2^-900 and y > 0 ->
// 0, y < 0 -> +Inf, other negative x and infinite or NaN x or y -> NaN.
double Pow64(double x, double y);

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_MATH_HOST64_H_
