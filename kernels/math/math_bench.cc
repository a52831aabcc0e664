// SPDX-License-Identifier: Apache-2.0
//
// The binary32 functions in the cache, against a loop over the C library's function; and the host's
// binary64 functions against the C library's.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "kernels/math/functions.h"
#include "kernels/math/host64.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kCount = 4096;  // 16 KiB in, 16 KiB out

struct FunctionRow {
  const char* name;
  UnaryFunction function;
  float low, high;  // of the arguments
  float (*libc)(float);
};

const FunctionRow kRows[] = {
    {"exp", UnaryFunction::kExp, -20.0f, 20.0f, [](float x) { return std::exp(x); }},
    {"log", UnaryFunction::kLog, 0.001f, 1000.0f, [](float x) { return std::log(x); }},
    {"sin", UnaryFunction::kSin, -100.0f, 100.0f, [](float x) { return std::sin(x); }},
    {"cos", UnaryFunction::kCos, -100.0f, 100.0f, [](float x) { return std::cos(x); }},
    {"sigmoid", UnaryFunction::kSigmoid, -10.0f, 10.0f,
     [](float x) { return 1.0f / (1.0f + std::exp(-x)); }},
    {"silu", UnaryFunction::kSilu, -10.0f, 10.0f,
     [](float x) { return x / (1.0f + std::exp(-x)); }},
    {"silu gradient", UnaryFunction::kSiluGrad, -10.0f, 10.0f,
     [](float x) {
       const float s = 1.0f / (1.0f + std::exp(-x));
       return s * (1.0f + x * (1.0f - s));
     }},
    {"rsqrt", UnaryFunction::kRsqrt, 0.001f, 1000.0f, [](float x) { return 1.0f / std::sqrt(x); }},
    {"erfinv", UnaryFunction::kErfinv, -0.9999f, 0.9999f, nullptr},
};

std::vector<float> Spread(float low, float high) {
  std::vector<float> x(kCount);
  for (int64_t i = 0; i < kCount; ++i) {
    x[i] = low + (high - low) * static_cast<float>(i * 2654435761u % kCount) / kCount;
  }
  return x;
}

LOCKSTEP_BENCH(functions, "binary32 functions in the cache, against libm", b) {
  std::vector<float> out(kCount), libm_out(kCount);
  for (const FunctionRow& row : kRows) {
    const std::vector<float> in = Spread(row.low, row.high);
    for (Isa isa : bench::Bench::Isas()) {
      const UnaryArgs args = {
          .out = out.data(), .in = in.data(), .count = kCount, .function = row.function};
      const auto libm = [&] {
        for (int64_t i = 0; i < kCount; ++i) libm_out[i] = row.libc(in[i]);
      };
      b.Compare({.name = std::string(row.name) + " " + std::string(IsaName(isa)),
                 .unit = "Gelem/s",
                 .work = kCount,
                 .ours =
                     [&] {
                       KernelsFor(isa).Unary(args, Range{0, kCount});
                     },
                 .peer = row.libc == nullptr ? "" : "libm",
                 .peer_call = row.libc == nullptr ? std::function<void()>() : libm});
    }
  }
  const std::vector<float> x = Spread(0.1f, 10.0f);
  const std::vector<float> y = Spread(-5.0f, 5.0f);
  for (Isa isa : bench::Bench::Isas()) {
    const PowArgs args = {.out = out.data(), .x = x.data(), .y = y.data(), .count = kCount};
    b.Compare({.name = "pow " + std::string(IsaName(isa)),
               .unit = "Gelem/s",
               .work = kCount,
               .ours =
                   [&] {
                     KernelsFor(isa).Pow(args, Range{0, kCount});
                   },
               .peer = "libm",
               .peer_call =
                   [&] {
                     for (int64_t i = 0; i < kCount; ++i) libm_out[i] = std::pow(x[i], y[i]);
                   }});
  }
}

LOCKSTEP_BENCH(host64, "binary64 functions of the host, against libm", b) {
  const struct {
    const char* name;
    double (*ours)(double);
    double (*libm)(double);
  } rows[] = {{"exp", Exp64, std::exp},
              {"log", Log64, std::log},
              {"sin", Sin64, std::sin},
              {"cos", Cos64, std::cos}};
  std::vector<double> out(kCount), libm_out(kCount);
  for (const auto& row : rows) {
    b.Compare({.name = row.name,
               .unit = "Melem/s",
               .work = 1e3 * kCount,
               .ours =
                   [&] {
                     for (int64_t i = 0; i < kCount; ++i) out[i] = row.ours(0.01 * (i + 1));
                   },
               .peer = "libm",
               .peer_call =
                   [&] {
                     for (int64_t i = 0; i < kCount; ++i) libm_out[i] = row.libm(0.01 * (i + 1));
                   }});
  }
}

}  // namespace
}  // namespace lockstep::kernels
