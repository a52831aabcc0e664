// SPDX-License-Identifier: Apache-2.0
//
// Double-double arithmetic and the power series of kernels/math/host64.h. Named _ref so that it is
// compiled with fused multiply-add, which the products' tails need.
#include <cstdint>

#include "kernels/math/host64.h"

namespace lockstep::kernels {
namespace {

// An unevaluated sum, |low| at most half an ulp of high.
struct Pair {
  double high;
  double low;
};

double Fma64(double a, double b, double c) { return __builtin_fma(a, b, c); }

// a + b exactly; OrderedSum for |a| >= |b| or a = 0.
Pair OrderedSum(double a, double b) {
  const double high = a + b;
  return {high, b - (high - a)};
}
Pair Sum(double a, double b) {
  const double high = a + b;
  const double b_part = high - a;
  return {high, (a - (high - b_part)) + (b - b_part)};
}
// a * b exactly.
Pair Product(double a, double b) {
  const double high = a * b;
  return {high, Fma64(a, b, -high)};
}

Pair Add(Pair a, Pair b) {
  const Pair high = Sum(a.high, b.high);
  const Pair low = Sum(a.low, b.low);
  const Pair sum = OrderedSum(high.high, high.low + low.high);
  return OrderedSum(sum.high, sum.low + low.low);
}
Pair Multiply(Pair a, Pair b) {
  const Pair product = Product(a.high, b.high);
  return OrderedSum(product.high, product.low + (a.high * b.low + a.low * b.high));
}
Pair Divide(Pair a, double b) {
  const double high = a.high / b;
  const double rest = Fma64(-high, b, a.high) + a.low;
  return OrderedSum(high, rest / b);
}
Pair Divide(Pair a, Pair b) {
  const double high = a.high / b.high;
  const Pair back = Multiply(b, {high, 0.0});
  const Pair rest = Add(a, {-back.high, -back.low});
  return OrderedSum(high, rest.high / b.high);
}
Pair Negative(Pair a) { return {-a.high, -a.low}; }

// To the nearest integer, for |x| < 2^51.
double Round(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

// x - n * (c[0] + c[1] + c[2]) for a double or pair x close to n * c, as a pair.
Pair TakeMultiple(Pair x, double n, const double (&c)[3]) {
  Pair rest = x;
  for (double part : c) rest = Add(rest, Negative(Product(n, part)));
  return rest;
}

constexpr double kLn2Parts[3] = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56,
                                 0x1.7b57a079a1934p-111};
constexpr double kHalfPiParts[3] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                    -0x1.f1976b7ed8fbcp-110};

double PowerOfTwo(int n) {
  return __builtin_bit_cast(double, static_cast<uint64_t>(n + 1023) << 52);
}

// e^x for |x| <= 600: 2^n times the exponential series of r, |r| < 0.35, to r^22 / 22!.
double ExpOfPair(Pair x) {
  const double n = Round(x.high * 0x1.71547652b82fep+0);
  const Pair r = TakeMultiple(x, n, kLn2Parts);
  Pair sum = {1.0, 0.0};
  for (int k = 22; k >= 1; --k) sum = Add({1.0, 0.0}, Divide(Multiply(r, sum), k));
  return sum.high * PowerOfTwo(static_cast<int>(n));
}

// ln x for 2^-900 <= x < Inf: x = 2^e m, s = (m - 1) / (m + 1), ln m = 2 (s + s^3/3 + s^5/5 + ...)
// to s^41 / 41, |s| < 0.1716.
Pair LogAsPair(double x) {
  const int64_t bits = __builtin_bit_cast(int64_t, x);
  const int64_t sqrt_half = 0x3fe6a09e667f3bcd;
  const double e = static_cast<double>((bits - sqrt_half) >> 52);
  const double m =
      __builtin_bit_cast(double, ((bits - sqrt_half) & 0x000fffffffffffff) + sqrt_half);
  const Pair s = Divide({m - 1.0, 0.0}, Sum(m, 1.0));
  const Pair z = Multiply(s, s);
  Pair sum = Divide({1.0, 0.0}, 41.0);
  for (int k = 39; k >= 1; k -= 2) sum = Add(Divide({1.0, 0.0}, k), Multiply(z, sum));
  const Pair log_m = Multiply({s.high * 2.0, s.low * 2.0}, sum);
  const Pair log_2 = Add(Multiply({kLn2Parts[0], kLn2Parts[1]}, {e, 0.0}), {kLn2Parts[2] * e, 0.0});
  return Add(log_2, log_m);
}

// 1 - z/(k (k+1)) (1 - z/((k+2) (k+3)) (1 - ...)): with z = r^2 the cosine's series for k = 1 and
// the sine's, over r, for k = 2; 14 terms, |r| < 0.786.
Pair AlternatingSeries(Pair z, int k) {
  Pair sum = {1.0, 0.0};
  for (int i = k + 26; i >= k; i -= 2) {
    sum = Add({1.0, 0.0}, Negative(Divide(Multiply(z, sum), i * (i + 1))));
  }
  return sum;
}

// sin(x + quarters * pi/2).
double SinOfTurns(double x, int64_t quarters) {
  const double size = __builtin_fabs(x);
  if (!(size <= 0x1p30)) return __builtin_nan("");
  const double n = Round(x * 0x1.45f306dc9c883p-1);
  const int64_t turns = static_cast<int64_t>(n) + quarters;
  // Below 2^-27 the sine rounds to x and the cosine to 1.
  if (size < 0x1p-27) return turns % 2 == 0 ? x : 1.0;
  const Pair r = TakeMultiple({x, 0.0}, n, kHalfPiParts);
  const Pair z = Multiply(r, r);
  const Pair value =
      turns % 2 == 0 ? Multiply(r, AlternatingSeries(z, 2)) : AlternatingSeries(z, 1);
  return (turns & 2) != 0 ? -value.high : value.high;
}

constexpr double kSmallest = 0x1p-900;
constexpr double kExpBound = 600.0;

}  // namespace

double Exp64(double x) {
  if (x > kExpBound) return __builtin_inf();
  if (x < -kExpBound) return 0.0;
  if (x != x) return __builtin_nan("");
  return ExpOfPair({x, 0.0});
}

double Log64(double x) {
  if (__builtin_fabs(x) < kSmallest) return -__builtin_inf();
  if (!(x > 0.0)) return __builtin_nan("");
  if (x == __builtin_inf()) return x;
  return LogAsPair(x).high;
}

double Sin64(double x) { return SinOfTurns(x, 0); }
double Cos64(double x) { return SinOfTurns(x, 1); }

double Pow64(double x, double y) {
  const double infinity = __builtin_inf();
  if (__builtin_fabs(y) < 0x1p-1022) return 1.0;
  const bool x_is_zero = __builtin_fabs(x) < kSmallest;
  if (!((x_is_zero || x > 0.0) && x < infinity && __builtin_fabs(y) < infinity)) {
    return __builtin_nan("");
  }
  if (x_is_zero) return y > 0.0 ? 0.0 : infinity;
  const Pair log = LogAsPair(x);
  const double rough = log.high * y;
  if (rough > kExpBound) return infinity;
  if (rough < -kExpBound) return 0.0;
  return ExpOfPair(Multiply(log, {y, 0.0}));
}

}  // namespace lockstep::kernels
