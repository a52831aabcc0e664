// SPDX-License-Identifier: Apache-2.0
//
// Attention: conformance of forward and backward, and what the contract promises beyond equal bits
// between machines. Accuracy against binary64 is in attention_accuracy_test.cc.
#include "kernels/attention/attention.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/context.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/isas.h"

namespace lockstep::kernels {
namespace {

int64_t StrideOf(const AttentionShape& s) { return (s.query_heads + 2 * s.kv_heads) * s.head_dim; }

std::string NameOf(const AttentionShape& s) {
  return absl::StrCat("B", s.batch, " T", s.tokens, " H", s.query_heads, "/", s.kv_heads, " D",
                      s.head_dim, " W", s.window);
}

// q, k and v of a fused [B, T, stride] tensor.
template <class Args>
void PointInto(const BFloat16* qkv, Args& args) {
  args.q = qkv;
  args.k = qkv + args.shape.query_heads * args.shape.head_dim;
  args.v = args.k + args.shape.kv_heads * args.shape.head_dim;
  args.stride = StrideOf(args.shape);
}

AttentionForwardArgs ForwardArgs(const AttentionShape& shape, const BFloat16* qkv, BFloat16* out,
                                 float* lse, bool int8_pv) {
  AttentionForwardArgs args = {.out = out,
                               .lse = lse,
                               .q = {},
                               .k = {},
                               .v = {},
                               .stride = {},
                               .shape = shape,
                               .int8_pv = int8_pv};
  PointInto(qkv, args);
  return args;
}

AttentionBackwardArgs BackwardArgs(const AttentionShape& shape, const BFloat16* qkv,
                                   const BFloat16* dout, const float* lse, BFloat16* dqkv) {
  AttentionBackwardArgs args = {.dq = dqkv,
                                .dk = dqkv + shape.query_heads * shape.head_dim,
                                .dv = dqkv + (shape.query_heads + shape.kv_heads) * shape.head_dim,
                                .gradient_stride = StrideOf(shape),
                                .dout = dout,
                                .q = {},
                                .k = {},
                                .v = {},
                                .stride = {},
                                .lse = lse,
                                .shape = shape};
  PointInto(qkv, args);
  return args;
}

// Everything of one call, in memory of its own.
struct Tensors {
  explicit Tensors(const AttentionShape& s)
      : shape(s),
        qkv(s.batch * s.tokens * StrideOf(s)),
        out(s.batch * s.tokens * s.query_heads * s.head_dim),
        dout(out.size()),
        dqkv(qkv.size()),
        lse(s.batch * s.query_heads * s.tokens) {}
  Tensors(const AttentionShape& s, InputKind kind, uint64_t seed) : Tensors(s) {
    FillInput(qkv.data(), static_cast<int64_t>(qkv.size()), kind, seed);
    FillInput(dout.data(), static_cast<int64_t>(dout.size()), kind, seed + 1);
  }
  void Forward(Isa isa, bool int8_pv) {
    ThreadPool pool(2);
    Run(Context{pool, KernelsFor(isa)},
        ForwardArgs(shape, qkv.data(), out.data(), lse.data(), int8_pv));
  }
  void Backward(Isa isa) {
    ThreadPool pool(2);
    Run(Context{pool, KernelsFor(isa)},
        BackwardArgs(shape, qkv.data(), dout.data(), lse.data(), dqkv.data()));
  }

  AttentionShape shape;
  std::vector<BFloat16> qkv;
  std::vector<BFloat16> out;
  std::vector<BFloat16> dout;
  std::vector<BFloat16> dqkv;
  std::vector<float> lse;
};

bool IsFiniteBits(float x) { return (Bits(x) & 0x7fffffffu) < 0x7f800000u; }

std::vector<Isa> AllIsas() {
  std::vector<Isa> isas = TestedIsas();
  isas.push_back(Isa::kReference);
  return isas;
}

// All lengths and windows with small heads, then large heads at fewer of them.
std::vector<AttentionShape> Shapes() {
  std::vector<AttentionShape> shapes;
  int64_t turn = 0;
  for (int64_t tokens : {1, 2, 63, 64, 65, 130, 200}) {
    for (int64_t window : {0, 1, 3, 64, 100}) {
      const bool grouped = ++turn % 2 == 0;
      shapes.push_back({.batch = tokens <= 2 ? 2 : 1,
                        .tokens = tokens,
                        .query_heads = grouped ? 4 : 1,
                        .kv_heads = grouped ? 2 : 1,
                        .head_dim = 16,
                        .window = window});
    }
  }
  shapes.push_back({2, 66, 2, 2, 32, 64});
  shapes.push_back({1, 65, 6, 2, 64, 0});
  shapes.push_back({1, 130, 2, 1, 64, 3});
  shapes.push_back({1, 130, 1, 1, 128, 0});
  shapes.push_back({1, 70, 2, 1, 48, 100});
  shapes.push_back({1, 67, 1, 1, 256, 0});
  return shapes;
}

// use(shape, kind, turn): short sequences with every kind of input, longer ones, which take an
// emulator its time, with two or three kinds each.
template <class Use>
void ForShapesAndKinds(Use&& use) {
  const std::vector<AttentionShape> shapes = Shapes();
  for (size_t s = 0; s < shapes.size(); ++s) {
    for (InputKind kind : kAllInputKinds) {
      const size_t turn = s + static_cast<size_t>(kind);
      if (shapes[s].tokens <= 64 || turn % 3 == 0) use(shapes[s], kind, turn);
    }
  }
}

KERNEL_CASES(AttentionForward, cases) {
  ForShapesAndKinds([&](const AttentionShape& shape, InputKind kind, size_t turn) {
    for (bool int8_pv : {false, true}) {
      if (turn % 2 == 0 && !int8_pv) continue;
      Case& c = cases.New(absl::StrCat(NameOf(shape), int8_pv ? " int8" : " f32"), kind);
      const int64_t rows = shape.batch * shape.tokens * shape.query_heads;
      const BFloat16* qkv = c.Input<BFloat16>(shape.batch * shape.tokens * StrideOf(shape));
      BFloat16* out = c.Output<BFloat16>(rows * shape.head_dim);
      float* lse = c.Output<float>(rows);
      c.Runs(ForwardArgs(shape, qkv, out, lse, int8_pv));
    }
  });
}

KERNEL_CASES(AttentionBackward, cases) {
  const auto add = [&](const AttentionShape& shape, InputKind kind, const char* what,
                       InputKind dout_kind, bool forwards_lse) {
    Case& c = cases.New(NameOf(shape) + what, kind);
    const int64_t elements = shape.batch * shape.tokens * StrideOf(shape);
    const int64_t rows = shape.batch * shape.tokens * shape.query_heads;
    const BFloat16* qkv = c.Input<BFloat16>(elements);
    const BFloat16* dout = c.Input<BFloat16>(rows * shape.head_dim, dout_kind);
    const float* lse = nullptr;
    if (forwards_lse) {
      Tensors tensors(shape);
      tensors.qkv.assign(qkv, qkv + elements);
      tensors.Forward(Isa::kReference, false);
      lse = c.Values(tensors.lse);
    } else {
      lse = c.Input<float>(rows);
    }
    c.Runs(BackwardArgs(shape, qkv, dout, lse, c.Output<BFloat16>(elements)));
  };
  ForShapesAndKinds([&](const AttentionShape& shape, InputKind kind, size_t) {
    add(shape, kind, "", kind, true);
  });
  for (InputKind kind : kAllInputKinds) {
    const AttentionShape shape = {1, 70, 1, 1, 16, 0};
    add(shape, InputKind::kNormal, InputKindName(kind), kind, true);
    for (InputKind dout_kind : kAllInputKinds) {
      if (dout_kind <= kind) add({1, 20, 2, 1, 16, 0}, kind, " any lse", dout_kind, false);
    }
  }
}

TEST(Attention, WindowOfAllTokensIsCausal) {
  for (int64_t window : {150, 151, 1000}) {
    Tensors causal({2, 150, 4, 2, 32, 0}, InputKind::kNormal, 1);
    Tensors windowed({2, 150, 4, 2, 32, window}, InputKind::kNormal, 1);
    for (Isa isa : AllIsas()) {
      for (Tensors* t : {&causal, &windowed}) {
        t->Forward(isa, true);
        t->Backward(isa);
      }
      EXPECT_EQ(causal.out, windowed.out);
      EXPECT_EQ(causal.dqkv, windowed.dqkv);
    }
  }
}

TEST(Attention, RowsDoNotDependOnTheBatchTheySitIn) {
  const AttentionShape shape = {3, 100, 4, 2, 32, 70};
  Tensors all(shape, InputKind::kNormal, 2);
  for (Isa isa : AllIsas()) {
    for (bool int8_pv : {false, true}) {
      all.Forward(isa, int8_pv);
      all.Backward(isa);
      AttentionShape one_shape = shape;
      one_shape.batch = 1;
      Tensors one(one_shape);
      for (int64_t b = 0; b < shape.batch; ++b) {
        const int64_t in = static_cast<int64_t>(one.qkv.size());
        const int64_t out = static_cast<int64_t>(one.out.size());
        one.qkv.assign(&all.qkv[b * in], &all.qkv[b * in] + in);
        one.dout.assign(&all.dout[b * out], &all.dout[b * out] + out);
        one.Forward(isa, int8_pv);
        one.Backward(isa);
        EXPECT_EQ(std::memcmp(one.out.data(), &all.out[b * out], out * sizeof(BFloat16)), 0);
        EXPECT_EQ(std::memcmp(one.dqkv.data(), &all.dqkv[b * in], in * sizeof(BFloat16)), 0);
      }
    }
  }
}

// In f32 at any position; in int8, where a block of v shares a scale, at the ends of blocks.
TEST(Attention, LaterTokensDoNotChangeEarlierOnes) {
  for (Isa isa : AllIsas()) {
    for (int64_t tokens : {1, 37, 64, 90, 128}) {
      const bool int8_pv = tokens % kAttentionBlock == 0;
      Tensors all({1, 150, 2, 1, 32, 50}, InputKind::kNormal, 3);
      Tensors some({1, tokens, 2, 1, 32, 50}, InputKind::kNormal, 3);
      all.Forward(isa, int8_pv);
      some.Forward(isa, int8_pv);
      EXPECT_EQ(std::memcmp(some.out.data(), all.out.data(), some.out.size() * sizeof(BFloat16)), 0)
          << tokens << " tokens";
    }
  }
}

TEST(Attention, OneTokenGivesItsValue) {
  Tensors t({1, 1, 1, 1, 16, 0}, InputKind::kNormal, 4);
  for (Isa isa : AllIsas()) {
    t.Forward(isa, false);
    const std::vector<BFloat16> v(t.qkv.begin() + 32, t.qkv.end());
    EXPECT_EQ(t.out, v);
    float score = 0.0f;
    for (int d = 0; d < 16; ++d) {
      score = Fma(0.25f * ToFloat(t.qkv[d]), ToFloat(t.qkv[16 + d]), score);
    }
    EXPECT_EQ(Bits(t.lse[0]), Bits(score));
  }
}

// Equal scores: the mean of the values that each query sees, exact in int8 for these values.
TEST(Attention, EqualScoresGiveTheMeanOfTheWindow) {
  const AttentionShape shape = {1, 200, 1, 1, 16, 4};
  Tensors t(shape);
  for (int64_t i = 0; i < shape.tokens; ++i) {
    for (int64_t d = 0; d < 16; ++d) {
      Store(&t.qkv[i * 48 + 32 + d],
            static_cast<float>((i * 7 + d * 3) % 128));  // 127 is in each block
    }
  }
  for (Isa isa : AllIsas()) {
    for (bool int8_pv : {false, true}) {
      t.Forward(isa, int8_pv);
      for (int64_t i = 0; i < shape.tokens; ++i) {
        for (int64_t d = 0; d < 16; ++d) {
          const int64_t first = i < 3 ? 0 : i - 3;
          double sum = 0;
          for (int64_t j = first; j <= i; ++j) sum += static_cast<double>((j * 7 + d * 3) % 128);
          const double mean = sum / static_cast<double>(i + 1 - first);
          EXPECT_NEAR(ToFloat(t.out[i * 16 + d]), mean, mean * 0x1p-8);
        }
      }
    }
  }
}

// The scale of the loss is a power of two that passes through the backward untouched, far beyond
// what Snap would leave of the gradients.
TEST(Attention, GradientsScaleWithTheLossExactly) {
  const AttentionShape shape = {2, 130, 4, 2, 32, 0};
  Tensors plain(shape, InputKind::kNormal, 5);
  for (Isa isa : AllIsas()) {
    plain.Forward(isa, true);
    plain.Backward(isa);
    for (int power : {-60, -80, 20}) {
      const float scale = power < 0 ? 1.0f / FromBits(static_cast<uint32_t>(127 - power) << 23)
                                    : FromBits(static_cast<uint32_t>(127 + power) << 23);
      Tensors scaled = plain;
      for (BFloat16& x : scaled.dout) Store(&x, ToFloat(x) * scale);
      scaled.Backward(isa);
      int64_t zeros = 0;
      for (size_t x = 0; x < plain.dqkv.size(); ++x) {
        ASSERT_EQ(Bits(ToFloat(scaled.dqkv[x])), Bits(ToFloat(plain.dqkv[x]) * scale))
            << "2^" << power;
        zeros += scaled.dqkv[x].bits == 0;
      }
      EXPECT_LT(zeros, static_cast<int64_t>(plain.dqkv.size()) / 50);
    }
  }
}

// Where k or v is not finite, every query gradient of the head is NaN, and no other head's.
TEST(Attention, NonFiniteKeysGiveNaNInTheirHeadOnly) {
  const AttentionShape shape = {1, 80, 4, 2, 16, 0};
  for (Isa isa : AllIsas()) {
    Tensors t(shape, InputKind::kNormal, 6);
    t.qkv[70 * StrideOf(shape) + 4 * 16 + 3] = BFloat16{0x7f80};  // k of head 0 at position 70
    t.Forward(isa, true);
    t.Backward(isa);
    for (int64_t i = 0; i < shape.tokens; ++i) {
      for (int64_t h = 0; h < 4; ++h) {
        for (int64_t d = 0; d < 16; ++d) {
          EXPECT_EQ(t.dqkv[i * StrideOf(shape) + h * 16 + d].bits == 0x7fc0, h < 2);
        }
        EXPECT_TRUE(IsFiniteBits(t.lse[h * shape.tokens + i]) || (h < 2 && i >= 70));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
