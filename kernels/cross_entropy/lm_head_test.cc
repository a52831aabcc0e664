// SPDX-License-Identifier: Apache-2.0
//
// The language-model head: its bits against whole products, its chunks, its accuracy.
#include "kernels/cross_entropy/lm_head.h"

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/sums.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/isas.h"

namespace lockstep::kernels {
namespace {

struct Shape {
  int64_t tokens;
  int64_t width;
  int64_t vocab;
  int64_t chunk;
};

std::vector<int32_t> Targets(const Shape& s) {
  std::vector<int32_t> targets(s.tokens);
  TestRandom random(s.tokens + s.vocab);
  for (int32_t& t : targets) t = static_cast<int32_t>(random.Below(s.vocab + 1)) - 1;
  return targets;
}

// All logits at once, products by their definition.
template <class W>
void WholeReference(const LmHeadLossArgs& args, const W* w) {
  const bool gradient = args.dx != nullptr;
  std::vector<float> logits(args.tokens * args.vocab);
  GemmF32Reference({.c = Out(logits.data(), args.vocab),
                    .a = Plain(args.x, args.width),
                    .b = Transposed(w, args.width),
                    .m = args.tokens,
                    .n = args.vocab,
                    .k = args.width});
  ThreadPool pool(1);
  kernels::Run(Context{pool, KernelsFor(Isa::kReference)},
               CrossEntropyArgs{.loss = args.loss,
                                .z = args.z,
                                .logits = logits.data(),
                                .targets = args.targets,
                                .rows = args.tokens,
                                .vocab = args.vocab,
                                .scale = args.scale,
                                .z_coefficient = args.z_coefficient,
                                .gradient = gradient});
  if (!gradient) return;
  GemmF32Reference({.c = Out(args.dx, args.width),
                    .a = Plain(logits.data(), args.vocab),
                    .b = Plain(w, args.width),
                    .m = args.tokens,
                    .n = args.width,
                    .k = args.vocab});
  GemmF32Reference({.c = Out(args.dw, args.width),
                    .a = Transposed(logits.data(), args.vocab),
                    .b = Plain(args.x, args.width),
                    .m = args.vocab,
                    .n = args.width,
                    .k = args.tokens,
                    .accumulate = args.accumulate_dw});
}

template <class W>
void HeadCases(Cases& cases, const char* type) {
  for (InputKind kind : {InputKind::kNormal, InputKind::kSmall, InputKind::kSpecial}) {
    for (const Shape& s : {Shape{1, 3, 2, 256}, Shape{20, 17, 65, 0}, Shape{300, 9, 70, 256}}) {
      for (bool gradient : {true, false}) {
        Case& c =
            cases.New(std::to_string(s.tokens) + "x" + std::to_string(s.width) + "x" +
                          std::to_string(s.vocab) + " " + type + (gradient ? "" : ", loss only"),
                      kind);
        const W* w = c.Input<W>(s.vocab * s.width);
        const LmHeadLossArgs args = {
            .loss = c.Output<float>(s.tokens),
            .z = c.Output<float>(s.tokens),
            .dx = gradient ? c.Output<BFloat16>(s.tokens * s.width) : nullptr,
            .dw = gradient ? c.Output<float>(s.vocab * s.width) : nullptr,
            .x = c.Input<BFloat16>(s.tokens * s.width),
            .w = w,
            .targets = c.Values(Targets(s)),
            .tokens = s.tokens,
            .width = s.width,
            .vocab = s.vocab,
            .scale = 0x1p-8f,
            .z_coefficient = 1e-4f,
            .chunk = s.chunk};
        c.Calls([args](const Context& context) { LmHeadLoss(context, args); });
        c.Reference([args, w] { WholeReference(args, w); });
      }
    }
  }
}
KERNEL_CASES(LmHeadLoss, cases) {
  HeadCases<BFloat16>(cases, "bf16");
  HeadCases<float>(cases, "f32");
}

struct Head {
  explicit Head(const Shape& s)
      : shape(s),
        loss(s.tokens),
        z(s.tokens),
        dx(s.tokens * s.width),
        dw(s.vocab * s.width),
        x(s.tokens * s.width),
        w(s.vocab * s.width),
        targets(Targets(s)) {
    FillInput(x.data(), x.size(), InputKind::kNormal, 1);
    FillInput(w.data(), w.size(), InputKind::kNormal, 2);
  }
  LmHeadLossArgs Args(int64_t chunk) {
    return {.loss = loss.data(),
            .z = z.data(),
            .dx = dx.data(),
            .dw = dw.data(),
            .x = x.data(),
            .w = w.data(),
            .targets = targets.data(),
            .tokens = shape.tokens,
            .width = shape.width,
            .vocab = shape.vocab,
            .scale = 0x1p-9f,
            .z_coefficient = 1e-4f,
            .chunk = chunk};
  }

  Shape shape;
  std::vector<float> loss, z;
  std::vector<BFloat16> dx;
  std::vector<float> dw;
  std::vector<BFloat16> x;
  std::vector<float> w;
  std::vector<int32_t> targets;
};

TEST(LmHead, ChunkDoesNotChangeABit) {
  const Shape shape = {1000, 24, 130, 0};
  ThreadPool pool(2);
  for (Isa isa : TestedIsas()) {
    const Context context{pool, KernelsFor(isa)};
    Head whole(shape);
    LmHeadLoss(context, whole.Args(1024));
    for (int64_t chunk : {0, 256, 512, 768}) {
      Head cut(shape);
      LmHeadLoss(context, cut.Args(chunk));
      EXPECT_EQ(whole.loss, cut.loss) << chunk;
      EXPECT_EQ(whole.z, cut.z) << chunk;
      EXPECT_EQ(whole.dx, cut.dx) << chunk;
      EXPECT_EQ(whole.dw, cut.dw) << chunk;
    }
  }
}

TEST(LmHead, AccumulatingTwoHalvesIsTheWhole) {
  const Shape shape = {512, 8, 40, 0};
  ThreadPool pool(1);
  const Context context{pool, KernelsFor(AvailableIsas().back())};
  Head whole(shape);
  LmHeadLoss(context, whole.Args(0));
  Head halves(shape);
  LmHeadLossArgs args = halves.Args(0);
  args.tokens = 256;
  LmHeadLoss(context, args);
  args.x += 256 * shape.width;
  args.dx += 256 * shape.width;
  args.targets += 256;
  args.loss += 256;
  args.z += 256;
  args.accumulate_dw = true;
  LmHeadLoss(context, args);
  EXPECT_EQ(whole.loss, halves.loss);
  EXPECT_EQ(whole.dx, halves.dx);
  EXPECT_EQ(whole.dw, halves.dw);
}

// The mean-like loss sum(scale * (loss + z_coefficient * z)) of binary64 weights.
double TotalLoss(const Head& head, const std::vector<double>& x, const std::vector<double>& w,
                 const LmHeadLossArgs& args) {
  const Shape& s = head.shape;
  double total = 0;
  std::vector<double> logits(s.vocab);
  for (int64_t n = 0; n < s.tokens; ++n) {
    if (head.targets[n] < 0) continue;
    double sum = 0;
    for (int64_t v = 0; v < s.vocab; ++v) {
      logits[v] = 0;
      for (int64_t i = 0; i < s.width; ++i) logits[v] += x[n * s.width + i] * w[v * s.width + i];
      sum += std::exp(logits[v]);
    }
    const double lse = std::log(sum);
    total += args.scale * (lse - logits[head.targets[n]] + args.z_coefficient * lse * lse);
  }
  return total;
}

TEST(LmHead, GradientsAgreeWithFiniteDifferences) {
  Head head({40, 6, 30, 0});
  LmHeadLossArgs args = head.Args(0);
  args.z_coefficient = 0.01f;
  ThreadPool pool(1);
  LmHeadLoss(Context{pool, KernelsFor(AvailableIsas().back())}, args);
  std::vector<double> xs;
  for (BFloat16 v : head.x) xs.push_back(ToFloat(v));
  std::vector<double> ws(head.w.begin(), head.w.end());
  constexpr double kStep = 1e-5;
  const auto loss_slope = [&](double& moved) {
    const double value = moved;
    moved = value + kStep;
    const double up = TotalLoss(head, xs, ws, args);
    moved = value - kStep;
    const double down = TotalLoss(head, xs, ws, args);
    moved = value;
    return (up - down) / (2 * kStep);
  };
  for (size_t i = 0; i < xs.size(); i += 7) {
    const double exact = loss_slope(xs[i]);
    ASSERT_NEAR(ToFloat(head.dx[i]), exact, 0x1p-8 * std::abs(exact) + 1e-8) << i;  // bf16
  }
  for (size_t i = 0; i < ws.size(); i += 7) {
    const double exact = loss_slope(ws[i]);
    ASSERT_NEAR(head.dw[i], exact, 1e-5 * std::abs(exact) + 1e-8) << i;
  }
}

}  // namespace
}  // namespace lockstep::kernels
