// SPDX-License-Identifier: Apache-2.0
//
// The int8 linear layer's three products, with all quantisation and rotation they need, against the
// bare int8 matrix product of the same shape.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/harness.h"
#include "kernels/gemm_i8/gemm_i8.h"
#include "kernels/linear_i8/linear_i8.h"
#include "kernels/quantize/quantize.h"

namespace lockstep::kernels {
namespace {

struct Layer {
  int64_t n;  // tokens
  int64_t o;  // outputs
  int64_t k;  // inputs
  std::vector<BFloat16> x = std::vector<BFloat16>(n * k, BFloat16{0x3f80});
  std::vector<int8_t> xq = std::vector<int8_t>(n * k, 1);
  float x_step = 1.0f;
  std::vector<BFloat16> w = std::vector<BFloat16>(o * k, BFloat16{0x3c80});
  std::vector<int8_t> q = std::vector<int8_t>(o * k, 1);
  std::vector<float> step = std::vector<float>(o, 1.0f);
  std::vector<int32_t> clipped = std::vector<int32_t>(o);
  std::vector<int8_t> q_rotated = std::vector<int8_t>(o * k, 1);
  std::vector<float> scale_rotated = std::vector<float>(k, 1.0f);
  std::vector<BFloat16> y = std::vector<BFloat16>(n * o, BFloat16{0x3f80});
  std::vector<int32_t> product = std::vector<int32_t>(std::max({n * o, n* k, o* k}));
  std::vector<float> dw = std::vector<float>(o * k);

  void Prepare(const Context& context) {
    PrepareLinearI8(context, {.q = q.data(),
                              .step = step.data(),
                              .clipped = clipped.data(),
                              .q_rotated = q_rotated.data(),
                              .scale_rotated = scale_rotated.data(),
                              .w = w.data(),
                              .outputs = o,
                              .inputs = k});
  }
  void Forward(const Context& context) {
    QuantizeTensor(context, {.q = xq.data(), .step = &x_step, .x = x.data(), .count = n * k});
    LinearI8(context, {.y = y.data(),
                       .xq = xq.data(),
                       .x_step = &x_step,
                       .q = q.data(),
                       .step = step.data(),
                       .tokens = n,
                       .outputs = o,
                       .inputs = k});
  }
  void InputGradient(const Context& context) {
    LinearI8InputGradient(context, {.dx = x.data(),
                                    .dy = y.data(),
                                    .q_rotated = q_rotated.data(),
                                    .scale_rotated = scale_rotated.data(),
                                    .tokens = n,
                                    .outputs = o,
                                    .inputs = k});
  }
  void WeightGradient(const Context& context) {
    LinearI8WeightGradient(context, {.dw = dw.data(),
                                     .dy = y.data(),
                                     .xq = xq.data(),
                                     .x_step = &x_step,
                                     .w = w.data(),
                                     .step = step.data(),
                                     .clipped = clipped.data(),
                                     .tokens = n,
                                     .outputs = o,
                                     .inputs = k});
  }
  // [rows, depth] times [depth, cols], of the layer's int8 matrices.
  void Bare(const Context& context, const int8_t* a, bool transpose_a, const int8_t* b,
            bool transpose_b, int64_t rows, int64_t cols, int64_t depth) {
    GemmI8(context, {.out_i32 = product.data(),
                     .ld_out = cols,
                     .a = a,
                     .lda = transpose_a ? rows : depth,
                     .transpose_a = transpose_a,
                     .b = b,
                     .ldb = transpose_b ? depth : cols,
                     .transpose_b = transpose_b,
                     .m = rows,
                     .n = cols,
                     .k = depth});
  }
};

void MeasureLayer(bench::Bench& b, Layer& d, Isa isa, int threads) {
  const Context context = b.ContextOf(isa, threads);
  d.Prepare(context);
  const std::vector<int8_t> g(d.n * d.o, 1);
  const std::string name =
      absl::StrCat(" ", d.n, " tokens ", d.k, " to ", d.o, " ", IsaName(isa), " ", threads, "T");
  const auto compare = [&](const char* what, const std::function<void()>& ours,
                           const std::function<void()>& bare) {
    b.Compare({.name = absl::StrCat(what, name),
               .unit = "GOP/s",
               .work = 2.0 * static_cast<double>(d.n) * static_cast<double>(d.o * d.k),
               .ours = ours,
               .peer = "bare product",
               .peer_call = bare});
  };
  compare(
      "forward", [&] { d.Forward(context); },
      [&] { d.Bare(context, d.xq.data(), false, d.q.data(), true, d.n, d.o, d.k); });
  compare(
      "input gradient", [&] { d.InputGradient(context); },
      [&] { d.Bare(context, g.data(), false, d.q_rotated.data(), false, d.n, d.k, d.o); });
  compare(
      "weight gradient", [&] { d.WeightGradient(context); },
      [&] { d.Bare(context, g.data(), true, d.xq.data(), false, d.o, d.k, d.n); });
}

LOCKSTEP_BENCH(linear_i8, "int8 linear layer with its quantisation, against the bare product", b) {
  Layer layers[] = {{.n = 2048, .o = 704, .k = 256},
                    {.n = 2048, .o = 2816, .k = 512},
                    {.n = 1024, .o = 11264, .k = 2048},
                    {.n = 1024, .o = 2048, .k = 5632}};
  for (Layer& layer : layers) {
    for (Isa isa : bench::Bench::Isas()) {
      for (int threads : {1, 2}) MeasureLayer(b, layer, isa, threads);
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
