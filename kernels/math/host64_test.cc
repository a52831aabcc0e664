// SPDX-License-Identifier: Apache-2.0
//
// The binary64 functions against the C library's long double ones (64 or 113 bits of fraction): to
// what these can tell, correctly rounded. And their bits, by a digest and with flushing on.
#include "kernels/math/host64.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "gtest/gtest.h"
#include "kernels/testing/flush_mode.h"
#include "kernels/testing/inputs.h"

namespace lockstep::kernels {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Distance from the truth in ulp of the result's binade.
double UlpError(double got, long double truth) {
  int exponent;
  std::frexp(static_cast<double>(truth), &exponent);
  return static_cast<double>(fabsl(got - truth) / ldexpl(1.0L, exponent - 53));
}

// long double itself is up to an ulp off: 2^-11 of ours on x86.
constexpr double kBound = 0.5 + 0x1p-10;

double Uniform(TestRandom* random, double low, double high) {
  return low + (high - low) * (static_cast<double>(random->Next() >> 11) * 0x1p-53);
}

#if defined(__aarch64__)
constexpr int kSamples = 20000;  // this build may run under an emulator
#else
constexpr int kSamples = 200000;
#endif

double WorstError(double low, double high, double (*ours)(double),
                  long double (*truth)(long double)) {
  TestRandom random(1);
  double worst = 0.0;
  for (int i = 0; i < kSamples; ++i) {
    const double x = Uniform(&random, low, high);
    worst = std::fmax(worst, UlpError(ours(x), truth(x)));
  }
  return worst;
}

TEST(Host64, ExpIsCorrectlyRounded) {
  EXPECT_LE(WorstError(-1.0, 1.0, Exp64, expl), kBound);
  EXPECT_LE(WorstError(-599.0, 599.0, Exp64, expl), kBound);
}

TEST(Host64, LogIsCorrectlyRounded) {
  EXPECT_LE(WorstError(0.5, 2.0, Log64, logl), kBound);
  EXPECT_LE(WorstError(0.0, 1e9, Log64, logl), kBound);
  EXPECT_LE(WorstError(1.0 - 1e-9, 1.0 + 1e-9, Log64, logl), kBound);
}

TEST(Host64, SinAndCosAreCorrectlyRounded) {
  for (double range : {0x1p-20, 1.0, 100.0, 0x1p17, 0x1p30}) {
    EXPECT_LE(WorstError(-range, range, Sin64, sinl), kBound) << range;
    EXPECT_LE(WorstError(-range, range, Cos64, cosl), kBound) << range;
  }
}

TEST(Host64, SinAndCosNearMultiplesOfAQuarterTurn) {
  double worst = 0.0;
  for (int i = 0; i < kSamples; ++i) {
    const double n = std::fmod(i * 7919.0, 680000000.0);
    const double x = n * 0x1.921fb54442d18p+0;  // the double nearest to n quarter turns, nearly
    worst = std::fmax(worst, UlpError(Sin64(x), sinl(x)));
    if (n > 0) worst = std::fmax(worst, UlpError(Cos64(x), cosl(x)));
  }
  EXPECT_LE(worst, kBound);
}

TEST(Host64, PowersOfMomentDecayAndRotaryFrequencies) {
  double worst = 0.0;
  for (double beta : {0.9, 0.95, 0.99, 0.999, 0.9999}) {
    for (int64_t t = 1; t <= 1000000; t = t * 21 / 20 + 1) {
      const long double truth = powl(beta, t);
      if (truth < 0x1p-860L) continue;
      worst = std::fmax(worst, UlpError(Pow64(beta, static_cast<double>(t)), truth));
    }
  }
  for (double theta : {10000.0, 500000.0, 1e6}) {
    for (int i = 0; i < 64; ++i) {
      const double y = -2.0 * i / 128.0;
      worst = std::fmax(worst, UlpError(Pow64(theta, y), powl(theta, y)));
    }
  }
  // powl's own error grows with the exponent, to a few of its ulp.
  EXPECT_LE(worst, 0.5 + 0x1p-8);
}

TEST(Host64, KnownValues) {
  EXPECT_EQ(Exp64(0.0), 1.0);
  EXPECT_EQ(Exp64(1.0), 0x1.5bf0a8b145769p+1);
  EXPECT_EQ(Log64(1.0), 0.0);
  EXPECT_EQ(Log64(2.0), 0x1.62e42fefa39efp-1);
  EXPECT_EQ(Sin64(0.0), 0.0);
  EXPECT_EQ(Cos64(0.0), 1.0);
  EXPECT_EQ(Cos64(kPi64), -1.0);
  EXPECT_EQ(Sin64(kPi64), 0x1.1a62633145c07p-53);
  EXPECT_EQ(Pow64(2.0, 10.0), 1024.0);
  EXPECT_EQ(Pow64(2.0, 0.5), std::sqrt(2.0));
}

TEST(Host64, OutsideTheRanges) {
  EXPECT_EQ(Exp64(601.0), kInf);
  EXPECT_EQ(Exp64(-601.0), 0.0);
  EXPECT_EQ(Log64(0.0), -kInf);
  EXPECT_EQ(Log64(kInf), kInf);
  EXPECT_TRUE(std::isnan(Log64(-1.0)));
  EXPECT_TRUE(std::isnan(Sin64(0x1.1p30)));
  EXPECT_TRUE(std::isnan(Cos64(kInf)));
  EXPECT_TRUE(std::isnan(Exp64(std::nan(""))));
  EXPECT_EQ(Pow64(0.0, 0.0), 1.0);
  EXPECT_EQ(Pow64(0.0, 2.0), 0.0);
  EXPECT_EQ(Pow64(0.0, -2.0), kInf);
  EXPECT_EQ(Pow64(0.5, 1e9), 0.0);
  EXPECT_TRUE(std::isnan(Pow64(-2.0, 2.0)));
}

// The inputs are made before the mode is switched: some are subnormal.
std::string DigestOfSamples(bool flush) {
  TestRandom random(3);
  std::vector<double> inputs;
  for (int i = 0; i < 4000; ++i) {
    const double x = Uniform(&random, -1000.0, 1000.0);
    for (double y : {x, x * 0x1p-30, x * 0x1p20, x * 0x1p-600, x * 0x1p-1060}) inputs.push_back(y);
  }
  std::vector<double> values;
  const FlushMode mode(flush);
  for (double x : inputs) {
    for (double y : {Exp64(x), Log64(x), Sin64(x), Cos64(x), Pow64(1.5, x), Pow64(x, 1.5)}) {
      values.push_back(y == y ? y : 0.0);
    }
  }
  return Sha256(ByteSpan(reinterpret_cast<const uint8_t*>(values.data()),
                         values.size() * sizeof(double)))
      .ToHex();
}

TEST(Host64, BitsAreTheSameEverywhere) {
  constexpr char kDigest[] = "0133da35068efbf32ed0698bfb1a2a70bac0af680afbc4b9c07f33a27e323229";
  EXPECT_EQ(DigestOfSamples(false), kDigest);
  EXPECT_EQ(DigestOfSamples(true), kDigest);
}

}  // namespace
}  // namespace lockstep::kernels
