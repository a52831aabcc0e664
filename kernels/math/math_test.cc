// SPDX-License-Identifier: Apache-2.0
//
// The binary32 functions: conformance, special values, error in ulp against binary64, and digests
// of their outputs, which every instruction set must give.
//
// Every day the inputs are every 251st (errors) or 16411th (digests) of the 2^32 patterns; with
// LOCKSTEP_FULL_FUNCTIONS=1 all of them. golden_full.txt holds a line for each function: name,
// digest of all outputs, digest of the strided ones. The first is the SHA-256 of 256 SHA-256
// digests, of the outputs (binary32, little-endian) of inputs s * 2^24 ... (s + 1) * 2^24 - 1 in
// ascending order of their bits, s ascending; the second the SHA-256 of the outputs of inputs 0,
// 16411, 32822, ... LOCKSTEP_UPDATE_GOLDEN=1 writes what the reference gives.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/sha256.h"
#include "gtest/gtest.h"
#include "kernels/math/erfinv.h"
#include "kernels/math/exp.h"
#include "kernels/math/functions.h"
#include "kernels/math/log.h"
#include "kernels/math/pow.h"
#include "kernels/math/sigmoid.h"
#include "kernels/math/sin_cos.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/flush_mode.h"
#include "kernels/testing/isas.h"

namespace lockstep::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = FromBits(0x7fc00000u);

bool Full() { return std::getenv("LOCKSTEP_FULL_FUNCTIONS") != nullptr; }
bool Updating() { return std::getenv("LOCKSTEP_UPDATE_GOLDEN") != nullptr; }

// By Newton's method in binary64 from Erfinv's own answer.
double TrueErfinv(double x) {
  if (std::fabs(x) >= 1.0) return std::fabs(x) == 1.0 ? x * kInf : kNan;
  constexpr double kHalfSqrtPi = 0.88622692545275801365;
  if (std::fabs(x) < 0x1p-12) {
    return kHalfSqrtPi * x * (1.0 + x * x * 0.26179938779914943654);  // the next term: x^4 / 8
  }
  double y = Erfinv(static_cast<float>(x));
  for (int i = 0; i < 2; ++i) {
    const double error = std::fabs(x) < 0.5
                             ? std::erf(y) - x
                             : std::copysign(1.0 - std::fabs(x) - std::erfc(std::fabs(y)), x);
    y -= error * kHalfSqrtPi * std::exp(y * y);
  }
  return y;
}

double TrueSigmoid(double x) { return x < kExpMin ? 0.0 : 1.0 / (1.0 + std::exp(-x)); }
double TrueSiluGrad(double x) {
  const double s = TrueSigmoid(x);
  return s * (1.0 + x * (1.0 / (1.0 + std::exp(x))));
}

struct FunctionCase {
  const char* name;
  UnaryFunction function;
  double (*truth)(double);
  double ulp_max;  // as its header states
};

void PrintTo(const FunctionCase& function, std::ostream* out) { *out << function.name; }

const FunctionCase kFunctions[] = {
    {"Exp", UnaryFunction::kExp, [](double x) { return std::exp(x); }, 0.90},
    {"Log", UnaryFunction::kLog, [](double x) { return std::log(x); }, 0.83},
    {"Sin", UnaryFunction::kSin, [](double x) { return std::sin(x); }, 0.97},
    {"Cos", UnaryFunction::kCos, [](double x) { return std::cos(x); }, 0.97},
    {"Sigmoid", UnaryFunction::kSigmoid, TrueSigmoid, 2.41},
    {"Silu", UnaryFunction::kSilu, [](double x) { return x * TrueSigmoid(x); }, 3.23},
    {"SiluGrad", UnaryFunction::kSiluGrad, TrueSiluGrad, 4.3},
    {"Rsqrt", UnaryFunction::kRsqrt,
     [](double x) { return x == 0.0 ? double{kInf} : 1.0 / std::sqrt(x); }, 1.5},
    {"Erfinv", UnaryFunction::kErfinv, TrueErfinv, 5.2},
};

// Distance from the true value in units of the last place of a float of its size (of `scale`, if
// that is larger); infinite where one is a number and the other is not. Below 2^-125 the result is
// +0, and what rounds to the bound may be either.
double UlpError(float got, double truth, double scale = 0.0) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (std::isnan(truth)) return Bits(got) == 0x7fc00000u ? 0.0 : kNever;
  const double size = std::fabs(truth);
  if (size < kCanonBound * (1.0 - 0x1p-22)) return Bits(got) == 0 ? 0.0 : kNever;
  if (size < kCanonBound * (1.0 + 0x1p-22) && Bits(got) == 0) return 0.0;
  if (std::isinf(static_cast<float>(truth))) return got == static_cast<float>(truth) ? 0 : kNever;
  if (!std::isfinite(got)) return kNever;
  int exponent;
  std::frexp(std::fmax(size, scale), &exponent);
  return std::fabs(static_cast<double>(got) - truth) / std::ldexp(1.0, exponent - 24);
}

// The argument as the functions see it.
double Seen(float x) {
  return std::fabs(x) < 0x1p-126f ? std::copysign(0.0, x) : static_cast<double>(x);
}

int Cores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

Isa Fastest() {
  const std::vector<Isa> isas = TestedIsas();
  return isas.empty() ? Isa::kReference : isas.back();
}

// Outputs for the inputs of patterns first, first + stride, ... (count of them).
void Evaluate(Isa isa, UnaryFunction function, uint32_t first, uint32_t stride, int64_t count,
              std::vector<float>* in, std::vector<float>* out) {
  in->resize(count);
  out->resize(count);
  for (int64_t i = 0; i < count; ++i) {
    (*in)[i] = FromBits(first + static_cast<uint32_t>(i) * stride);
  }
  const UnaryArgs args = {
      .out = out->data(), .in = in->data(), .count = count, .function = function};
  KernelsFor(isa).Unary(args, Range{0, count});
}

ByteSpan BytesOf(const std::vector<float>& values) {
  return ByteSpan(reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float));
}

// Slab s of the full set.
constexpr int64_t kSlabs = 256;
constexpr int64_t kSlab = int64_t{1} << 24;
constexpr int64_t kPiece = 1 << 14;  // stays in the cache between the function and the hash

std::string FullDigest(Isa isa, UnaryFunction function, bool flush) {
  std::vector<Digest> slabs(kSlabs);
  ThreadPool pool(Cores());
  pool.ParallelFor(kSlabs, 1, [&](int64_t begin, int64_t end) {
    const FlushMode mode(flush);
    std::vector<float> in, out;
    Sha256Hasher hasher;
    for (int64_t s = begin; s < end; ++s) {
      for (int64_t at = 0; at < kSlab; at += kPiece) {
        Evaluate(isa, function, static_cast<uint32_t>(s * kSlab + at), 1, kPiece, &in, &out);
        hasher.Update(BytesOf(out));
      }
      slabs[s] = hasher.Finish();
    }
  });
  Sha256Hasher all;
  for (const Digest& slab : slabs) all.Update(slab.bytes);
  return all.Finish().ToHex();
}

std::string StridedDigest(Isa isa, UnaryFunction function, bool flush) {
  constexpr uint32_t kStride = 16411;
  const FlushMode mode(flush);
  std::vector<float> in, out;
  Evaluate(isa, function, 0, kStride, (int64_t{1} << 32) / kStride + 1, &in, &out);
  return Sha256(BytesOf(out)).ToHex();
}

struct GoldenLine {
  std::string full = "-";  // not computed yet
  std::string strided = "-";
};

std::string GoldenPath() { return SourceFolder(__FILE__) + "/golden_full.txt"; }

std::map<std::string, GoldenLine> ReadGolden() {
  std::map<std::string, GoldenLine> golden;
  std::ifstream in(GoldenPath());
  std::string name;
  GoldenLine line;
  while (in >> name >> line.full >> line.strided) golden[name] = line;
  return golden;
}

void WriteGolden(const std::map<std::string, GoldenLine>& golden) {
  std::ofstream out(GoldenPath());
  for (const auto& [name, line] : golden) {
    out << name << " " << line.full << " " << line.strided << "\n";
  }
}

std::vector<Isa> AllIsas() {
  std::vector<Isa> isas = TestedIsas();
  isas.insert(isas.begin(), Isa::kReference);
  return isas;
}

class FunctionDigest : public testing::TestWithParam<std::tuple<Isa, FunctionCase>> {};

TEST_P(FunctionDigest, IsGolden) {
  const auto& [isa, function] = GetParam();
  std::map<std::string, GoldenLine> golden = ReadGolden();
  GoldenLine& line = golden[function.name];
  for (bool flush : {false, true}) {
    const std::string strided = StridedDigest(isa, function.function, flush);
    if (Updating() && isa == Isa::kReference) line.strided = strided;
    EXPECT_EQ(strided, line.strided) << "flushing " << flush;
  }
  if (Full()) {
    // Flushing concerns few inputs, all met by the strided set and the conformance cases; one mode
    // for the reference, the other for the rest.
    const std::string full = FullDigest(isa, function.function, isa != Isa::kReference);
    if (Updating() && isa == Isa::kReference) line.full = full;
    EXPECT_EQ(full, line.full);
  }
  if (Updating() && isa == Isa::kReference) WriteGolden(golden);
}

INSTANTIATE_TEST_SUITE_P(Functions, FunctionDigest,
                         testing::Combine(testing::ValuesIn(AllIsas()),
                                          testing::ValuesIn(kFunctions)),
                         [](const auto& info) {
                           return std::string(std::get<1>(info.param).name) + "_" +
                                  std::string(IsaName(std::get<0>(info.param)));
                         });

// SiluGrad's error is relative to the larger of itself and the sigmoid.
double ScaleOf(const FunctionCase& function, double x) {
  return function.function == UnaryFunction::kSiluGrad ? TrueSigmoid(x) : 0.0;
}

class FunctionError : public testing::TestWithParam<FunctionCase> {};

TEST_P(FunctionError, IsAsStated) {
  const FunctionCase& function = GetParam();
#if defined(__aarch64__)
  const uint32_t stride = Full() ? 1 : 16411;  // this build may run under an emulator
#else
  const uint32_t stride = Full() ? 1 : 251;
#endif
  const Isa isa = Fastest();
  const int64_t inputs = (int64_t{1} << 32) / stride;
  double worst = 0.0;
  float worst_at = 0.0f;
  std::mutex mutex;
  ThreadPool pool(Cores());
  pool.ParallelFor(inputs / kPiece + 1, 16, [&](int64_t begin, int64_t end) {
    double worst_here = -1.0;
    float at = 0.0f;
    std::vector<float> in, out;
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t first = piece * kPiece;
      const int64_t count = std::min(kPiece, inputs - first);
      Evaluate(isa, function.function, static_cast<uint32_t>(first) * stride, stride, count, &in,
               &out);
      for (int64_t i = 0; i < count; ++i) {
        const double x = Seen(in[i]);
        const double error = UlpError(out[i], function.truth(x), ScaleOf(function, x));
        if (error > worst_here) worst_here = error, at = in[i];
      }
    }
    const std::lock_guard<std::mutex> lock(mutex);
    if (worst_here > worst) worst = worst_here, worst_at = at;
  });
  std::printf("%s: at most %.4f ulp, at %a\n", function.name, worst, worst_at);
  EXPECT_LE(worst, function.ulp_max) << "at " << worst_at;
  EXPECT_GT(worst, 0.5);  // no function is correctly rounded: less means nothing was measured
}

INSTANTIATE_TEST_SUITE_P(Functions, FunctionError, testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Functions, SpecialValues) {
  EXPECT_EQ(Bits(Exp(0.0f)), Bits(1.0f));
  EXPECT_EQ(Bits(Exp(-0.0f)), Bits(1.0f));
  EXPECT_EQ(Bits(Exp(kExpMin)), Bits(static_cast<float>(std::exp(double{kExpMin}))));
  EXPECT_EQ(Bits(Exp(std::nextafter(kExpMin, -kInf))), 0u);
  EXPECT_TRUE(std::isfinite(Exp(kExpMax)));
  EXPECT_EQ(Exp(std::nextafter(kExpMax, kInf)), kInf);
  EXPECT_EQ(Bits(Log(1.0f)), 0u);
  EXPECT_EQ(Log(0x1p-127f), -kInf);
  EXPECT_EQ(Log(-0x1p-127f), -kInf);
  EXPECT_EQ(Bits(Log(-1.0f)), 0x7fc00000u);
  EXPECT_EQ(Bits(Sin(-0.0f)), 0u);
  EXPECT_EQ(Bits(Cos(0x1p-149f)), Bits(1.0f));
  EXPECT_EQ(Bits(Sin(kInf)), 0x7fc00000u);
  EXPECT_EQ(Bits(Sigmoid(0.0f)), Bits(0.5f));
  EXPECT_EQ(Bits(Sigmoid(FromBits(0xff800001u))), 0x7fc00000u);
  EXPECT_EQ(Bits(Silu(-kInf)), 0x7fc00000u);
  EXPECT_EQ(Silu(kInf), kInf);
  EXPECT_EQ(Bits(SiluGrad(0.0f)), Bits(0.5f));
  EXPECT_EQ(Erfinv(1.0f), kInf);
  EXPECT_EQ(Erfinv(-1.0f), -kInf);
  EXPECT_EQ(Bits(Erfinv(1.5f)), 0x7fc00000u);
}

// Backward passes recompute what forward passes stored.
TEST(Functions, SiluIsTheSameInBothDirections) {
  for (float x = -90.0f; x < 90.0f; x += 0.01171875f) {
    EXPECT_EQ(Bits(SiluRawV<Scalar>(x)), Bits(SiluPairRawV<Scalar>(x).silu));
  }
}

TEST(Pow, SpecialValuesAreThoseOfIeee) {
  const float values[] = {
      0.0f,          -0.0f,   1.0f,      -1.0f,           2.0f,           -2.0f,
      0.5f,          -0.5f,   3.0f,      -3.0f,           2.5f,           -2.5f,
      kInf,          -kInf,   kNan,      1e30f,           -1e30f,         1e-30f,
      -1e-30f,       0x1p24f, 0x1.8p23f, -0x1.000002p23f, 0x1.fffffep-1f, 0x1.000002p0f,
      -0x1.000002p0f};
  for (float x : values) {
    for (float y : values) {
      const float want = Canon(static_cast<float>(std::pow(double{x}, double{y})));
      EXPECT_LE(UlpError(Pow(x, y), want), 1.5) << x << " to the " << y;
    }
  }
  // Subnormal arguments are zeros of their sign.
  EXPECT_EQ(Pow(-0x1p-149f, -3.0f), -kInf);
  EXPECT_EQ(Pow(0x1p-149f, -2.0f), kInf);
  EXPECT_EQ(Pow(kNan, 0x1p-149f), 1.0f);
}

// Pairs whose powers cover the whole range, half of them with x near 1 and a large y.
void PowPair(TestRandom* random, float* x, float* y) {
  const auto uniform = [random] { return static_cast<double>(random->Next() >> 11) * 0x1p-52 - 1; };
  const double log_x = uniform() * (random->Next() % 2 == 0 ? 87.0 : 0.5);
  *x = static_cast<float>(std::exp(log_x));
  *y = static_cast<float>(uniform() * (random->Next() % 2 == 0 ? 88.0 / log_x : 3.0));
}

TEST(Pow, ErrorIsAsStated) {
#if defined(__aarch64__)
  constexpr int64_t kCount = 1 << 16;
#else
  constexpr int64_t kCount = 1 << 21;
#endif
  TestRandom random(20240607);
  std::vector<float> x(kCount), y(kCount), out(kCount);
  for (int64_t i = 0; i < kCount; ++i) PowPair(&random, &x[i], &y[i]);
  KernelsFor(Fastest()).Pow(
      PowArgs{.out = out.data(), .x = x.data(), .y = y.data(), .count = kCount}, Range{0, kCount});
  double worst = 0.0;
  for (int64_t i = 0; i < kCount; ++i) {
    const long double truth = powl(static_cast<long double>(x[i]), static_cast<long double>(y[i]));
    worst = std::fmax(worst, UlpError(out[i], static_cast<double>(truth)));
  }
  std::printf("Pow: at most %.4f ulp\n", worst);
  EXPECT_LE(worst, 1.05);
  EXPECT_GT(worst, 0.5);
}

constexpr int64_t kSizes[] = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 100};

KERNEL_CASES(Unary, cases) {
  for (int64_t count : kSizes) {
    Case& c = cases.New("Exp of " + std::to_string(count), InputKind::kNormal);
    c.Runs(UnaryArgs{.out = c.Output<float>(count),
                     .in = c.Input<float>(count),
                     .count = count,
                     .function = UnaryFunction::kExp});
  }
  for (const FunctionCase& function : kFunctions) {
    for (InputKind kind : kAllInputKinds) {
      for (int64_t count : {17, 100}) {
        Case& c = cases.New(std::string(function.name) + " of " + std::to_string(count), kind);
        c.Runs(UnaryArgs{.out = c.Output<float>(count),
                         .in = c.Input<float>(count),
                         .count = count,
                         .function = function.function});
      }
    }
    // Bits that no tensor holds: subnormal numbers, NaN of other signs and payloads, -0; large
    // ones.
    std::vector<float> odd = {-0.0f, kExpMin, kExpMax, -kInf, 0x1p17f, -0x1p127f, 0x1.921fb6p30f};
    for (uint32_t bits : {0x7f800001u, 0xffffffffu, 0xff800001u, 1u, 0x80000001u, 0x007fffffu,
                          0x807fffffu, 0x00800000u, 0x00ffffffu, 0x01000000u, 0x81000000u}) {
      odd.push_back(FromBits(bits));
    }
    Case& c = cases.New(std::string(function.name) + " of odd bits", InputKind::kNormal);
    const auto count = static_cast<int64_t>(odd.size());
    float* x = c.InOut<float>(count);
    for (int64_t i = 0; i < count; ++i) x[i] = odd[i];
    c.Runs(UnaryArgs{.out = x, .in = x, .count = count, .function = function.function});
  }
}

KERNEL_CASES(Pow, cases) {
  for (int64_t count : kSizes) {
    Case& c = cases.New(std::to_string(count) + " pairs", InputKind::kNormal);
    c.Runs(PowArgs{.out = c.Output<float>(count),
                   .x = c.Input<float>(count),
                   .y = c.Input<float>(count),
                   .count = count});
  }
  for (InputKind x_kind : kAllInputKinds) {
    for (InputKind y_kind : {InputKind::kNormal, InputKind::kTiny, InputKind::kSpecial}) {
      for (int64_t count : kSizes) {
        Case& c = cases.New(std::to_string(count) + " exponents " + InputKindName(y_kind), x_kind);
        c.Runs(PowArgs{.out = c.Output<float>(count),
                       .x = c.Input<float>(count),
                       .y = c.Input<float>(count, y_kind),
                       .count = count});
      }
    }
  }
  Case& c = cases.New("powers of every size", InputKind::kNormal);
  constexpr int64_t kCount = 500;
  std::vector<float> x(kCount), y(kCount);
  TestRandom random(7);
  for (int64_t i = 0; i < kCount; ++i) {
    // Bits alone, so that the case is the same on every machine.
    x[i] = FromBits(static_cast<uint32_t>(random.Next()) & 0x7fffffffu);
    y[i] = FromBits((static_cast<uint32_t>(random.Next()) & 0x83ffffffu) | 0x3c000000u);
  }
  c.Runs(
      PowArgs{.out = c.Output<float>(kCount), .x = c.Values(x), .y = c.Values(y), .count = kCount});
}

}  // namespace
}  // namespace lockstep::kernels
