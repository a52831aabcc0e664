// SPDX-License-Identifier: Apache-2.0
//
// Attention against an independent implementation in binary64, and that against finite differences;
// and the query gradient where it is hardest to keep: tiny and peaked. The reference is what is
// measured here; that all machines return its bits is attention_test.cc's matter.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/attention/attention.h"
#include "kernels/context.h"
#include "kernels/testing/inputs.h"

namespace lockstep::kernels {
namespace {

// One batch, in binary64. q, k, v, out and their gradients are [T, heads, Dh].
struct Exact {
  explicit Exact(const AttentionShape& s) : shape(s) {
    const size_t query = s.tokens * s.query_heads * s.head_dim;
    const size_t key = s.tokens * s.kv_heads * s.head_dim;
    for (std::vector<double>* x : {&q, &out, &dout, &dq}) x->assign(query, 0.0);
    for (std::vector<double>* x : {&k, &v, &dk, &dv}) x->assign(key, 0.0);
    lse.assign(s.query_heads * s.tokens, 0.0);
  }

  int64_t Query(int64_t i, int64_t h) const { return (i * shape.query_heads + h) * shape.head_dim; }
  int64_t Key(int64_t j, int64_t h) const {
    return (j * shape.kv_heads + h * shape.kv_heads / shape.query_heads) * shape.head_dim;
  }
  int64_t First(int64_t i) const {
    return shape.window > 0 ? std::max<int64_t>(0, i - shape.window + 1) : 0;
  }
  double Dot(const std::vector<double>& a, int64_t at_a, const std::vector<double>& b,
             int64_t at_b) const {
    double sum = 0;
    for (int64_t d = 0; d < shape.head_dim; ++d) sum += a[at_a + d] * b[at_b + d];
    return sum;
  }
  // The weights of query i, by key from First(i) on.
  std::vector<double> Weights(int64_t i, int64_t h, double* log_sum) const {
    std::vector<double> p;
    for (int64_t j = First(i); j <= i; ++j) {
      p.push_back(Dot(q, Query(i, h), k, Key(j, h)) /
                  std::sqrt(static_cast<double>(shape.head_dim)));
    }
    const double largest = *std::max_element(p.begin(), p.end());
    double sum = 0;
    for (double& x : p) sum += x = std::exp(x - largest);
    for (double& x : p) x /= sum;
    if (log_sum != nullptr) *log_sum = largest + std::log(sum);
    return p;
  }

  void Forward() {
    for (int64_t h = 0; h < shape.query_heads; ++h) {
      for (int64_t i = 0; i < shape.tokens; ++i) {
        const std::vector<double> p = Weights(i, h, &lse[h * shape.tokens + i]);
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          double sum = 0;
          for (size_t x = 0; x < p.size(); ++x) sum += p[x] * v[Key(First(i) + x, h) + d];
          out[Query(i, h) + d] = sum;
        }
      }
    }
  }
  double Loss() {
    Forward();
    double loss = 0;
    for (size_t x = 0; x < out.size(); ++x) loss += out[x] * dout[x];
    return loss;
  }
  // By the chain rule, one pair after the other.
  void Backward() {
    for (std::vector<double>* x : {&dq, &dk, &dv}) std::fill(x->begin(), x->end(), 0.0);
    const double scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
    for (int64_t h = 0; h < shape.query_heads; ++h) {
      for (int64_t i = 0; i < shape.tokens; ++i) {
        const std::vector<double> p = Weights(i, h, nullptr);
        std::vector<double> dp(p.size());
        double mean = 0;
        for (size_t x = 0; x < p.size(); ++x) {
          dp[x] = Dot(dout, Query(i, h), v, Key(First(i) + x, h));
          mean += p[x] * dp[x];
        }
        for (size_t x = 0; x < p.size(); ++x) {
          const int64_t key = Key(First(i) + x, h);
          const double ds = p[x] * (dp[x] - mean) * scale;
          for (int64_t d = 0; d < shape.head_dim; ++d) {
            dv[key + d] += p[x] * dout[Query(i, h) + d];
            dk[key + d] += ds * q[Query(i, h) + d];
            dq[Query(i, h) + d] += ds * k[key + d];
          }
        }
      }
    }
  }

  AttentionShape shape;
  std::vector<double> q, k, v, out, dout, dq, dk, dv, lse;
};

// The kernels on the same tensors, which are apart here and not fused.
struct Ours {
  explicit Ours(const AttentionShape& s) : shape(s) {
    const size_t query = s.tokens * s.query_heads * s.head_dim;
    const size_t key = s.tokens * s.kv_heads * s.head_dim;
    for (std::vector<BFloat16>* x : {&q, &out, &dout, &dq}) x->resize(query);
    for (std::vector<BFloat16>* x : {&k, &v, &dk, &dv}) x->resize(key);
    lse.resize(s.query_heads * s.tokens);
  }
  Ours(const AttentionShape& s, uint64_t seed) : Ours(s) {
    for (std::vector<BFloat16>* x : {&q, &k, &v, &dout}) {
      FillInput(x->data(), static_cast<int64_t>(x->size()), InputKind::kNormal, ++seed);
    }
  }
  // Query heads and key heads have different strides, so the kernels see one fused tensor.
  void Compute(bool int8_pv) {
    const int64_t d = shape.head_dim;
    const int64_t stride = (shape.query_heads + 2 * shape.kv_heads) * d;
    std::vector<BFloat16> qkv(shape.tokens * stride);
    std::vector<BFloat16> dqkv(qkv.size());
    const int64_t query = shape.query_heads * d;
    const int64_t key = shape.kv_heads * d;
    for (int64_t t = 0; t < shape.tokens; ++t) {
      std::copy_n(&q[t * query], query, &qkv[t * stride]);
      std::copy_n(&k[t * key], key, &qkv[t * stride + query]);
      std::copy_n(&v[t * key], key, &qkv[t * stride + query + key]);
    }
    ThreadPool pool(1);
    const Context context{pool, KernelsFor(AvailableIsas().back())};
    Run(context, AttentionForwardArgs{.out = out.data(),
                                      .lse = lse.data(),
                                      .q = qkv.data(),
                                      .k = qkv.data() + query,
                                      .v = qkv.data() + query + key,
                                      .stride = stride,
                                      .shape = shape,
                                      .int8_pv = int8_pv});
    Run(context, AttentionBackwardArgs{.dq = dqkv.data(),
                                       .dk = dqkv.data() + query,
                                       .dv = dqkv.data() + query + key,
                                       .gradient_stride = stride,
                                       .dout = dout.data(),
                                       .q = qkv.data(),
                                       .k = qkv.data() + query,
                                       .v = qkv.data() + query + key,
                                       .stride = stride,
                                       .lse = lse.data(),
                                       .shape = shape});
    for (int64_t t = 0; t < shape.tokens; ++t) {
      std::copy_n(&dqkv[t * stride], query, &dq[t * query]);
      std::copy_n(&dqkv[t * stride + query], key, &dk[t * key]);
      std::copy_n(&dqkv[t * stride + query + key], key, &dv[t * key]);
    }
  }
  Exact InBinary64() const {
    Exact exact(shape);
    const auto widen = [](const std::vector<BFloat16>& from, std::vector<double>& to) {
      for (size_t x = 0; x < from.size(); ++x) to[x] = static_cast<double>(ToFloat(from[x]));
    };
    widen(q, exact.q);
    widen(k, exact.k);
    widen(v, exact.v);
    widen(dout, exact.dout);
    exact.Forward();
    exact.Backward();
    return exact;
  }

  AttentionShape shape;
  std::vector<BFloat16> q, k, v, out, dout, dq, dk, dv;
  std::vector<float> lse;
};

// The error's root mean square by the exact value's.
double RelativeError(const std::vector<BFloat16>& got, const std::vector<double>& exact) {
  double error = 0;
  double size = 0;
  for (size_t x = 0; x < got.size(); ++x) {
    const double difference = static_cast<double>(ToFloat(got[x])) - exact[x];
    error += difference * difference;
    size += exact[x] * exact[x];
  }
  return std::sqrt(error / size);
}

double LargestError(const std::vector<BFloat16>& got, const std::vector<double>& exact) {
  double largest = 0;
  for (size_t x = 0; x < got.size(); ++x) {
    largest = std::max(largest, std::fabs(static_cast<double>(ToFloat(got[x])) - exact[x]));
  }
  return largest;
}

const AttentionShape kShapes[] = {
    {1, 150, 4, 2, 16, 0}, {1, 150, 2, 1, 64, 40}, {1, 200, 2, 2, 128, 0}, {1, 300, 1, 1, 64, 100}};

// f32 P·V: the rounding of out to bf16 (2^-8 of each value) and little else.
TEST(AttentionAccuracy, ForwardInBinary32) {
  for (const AttentionShape& shape : kShapes) {
    Ours ours(shape, 1);
    ours.Compute(false);
    const Exact exact = ours.InBinary64();
    for (size_t x = 0; x < ours.out.size(); ++x) {
      ASSERT_NEAR(ToFloat(ours.out[x]), exact.out[x], std::fabs(exact.out[x]) * 0x1.01p-8 + 4e-6);
    }
    for (size_t x = 0; x < ours.lse.size(); ++x) ASSERT_NEAR(ours.lse[x], exact.lse[x], 4e-6);
  }
}

// int8 P·V. With P = sum of p, a weight is wrong by at most pmax / 254 of its block, a value by
// amax / 254: out is wrong by at most amax / 254 for the values and amax / 254 * (sum over the keys
// that a query sees of pmax of their block) / P for the weights.
TEST(AttentionAccuracy, ForwardInInt8) {
  for (const AttentionShape& shape : kShapes) {
    Ours ours(shape, 2);
    ours.Compute(true);
    const Exact exact = ours.InBinary64();
    double amax = 0;
    for (double x : exact.v) amax = std::max(amax, std::fabs(x));
    for (int64_t h = 0; h < shape.query_heads; ++h) {
      for (int64_t i = 0; i < shape.tokens; ++i) {
        const std::vector<double> p = exact.Weights(i, h, nullptr);
        double sum_of_max = 0;
        for (int64_t j = exact.First(i); j <= i;) {
          const int64_t end = std::min(i + 1, (j / kAttentionBlock + 1) * kAttentionBlock);
          double pmax = 0;
          for (int64_t x = j; x < end; ++x) pmax = std::max(pmax, p[x - exact.First(i)]);
          sum_of_max += pmax * static_cast<double>(end - j);
          j = end;
        }
        const double bound = amax / 254 * (1 + sum_of_max) * 1.01;
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          const int64_t at = exact.Query(i, h) + d;
          ASSERT_NEAR(ToFloat(ours.out[at]), exact.out[at],
                      bound + std::fabs(exact.out[at]) * 0x1p-8);
        }
      }
    }
    EXPECT_LT(RelativeError(ours.out, exact.out), 0.015);
  }
}

// Gradients: bf16 results of binary32 sums. The error of a single element goes with the largest
// terms of its sum, so the bound is on the whole and on the worst against the typical.
TEST(AttentionAccuracy, Backward) {
  for (const AttentionShape& shape : kShapes) {
    Ours ours(shape, 3);
    ours.Compute(true);
    const Exact exact = ours.InBinary64();
    EXPECT_LT(RelativeError(ours.dq, exact.dq), 0x1p-9);
    EXPECT_LT(RelativeError(ours.dk, exact.dk), 0x1p-9);
    EXPECT_LT(RelativeError(ours.dv, exact.dv), 0x1p-9);
    EXPECT_LT(LargestError(ours.dq, exact.dq), 0x1p-6);
    EXPECT_LT(LargestError(ours.dk, exact.dk), 0x1p-5);
    EXPECT_LT(LargestError(ours.dv, exact.dv), 0x1p-5);
  }
}

TEST(AttentionAccuracy, Binary64AgreesWithFiniteDifferences) {
  for (const AttentionShape& shape : {AttentionShape{1, 9, 4, 2, 16, 0}, {1, 9, 2, 1, 16, 3}}) {
    Exact exact = Ours(shape, 4).InBinary64();
    const auto check = [&](std::vector<double>& x, const std::vector<double>& gradient) {
      for (size_t at = 0; at < x.size(); at += 5) {
        const double step = 1e-5;
        const double value = x[at];
        x[at] = value + step;
        const double up = exact.Loss();
        x[at] = value - step;
        const double down = exact.Loss();
        x[at] = value;
        ASSERT_NEAR((up - down) / (2 * step), gradient[at], 1e-7);
      }
    };
    check(exact.q, exact.dq);
    check(exact.k, exact.dk);
    check(exact.v, exact.dv);
  }
}

// A loss scaled by 2^-60: all gradients are as accurate as before.
TEST(AttentionAccuracy, TinyGradientsLive) {
  const AttentionShape shape = {1, 150, 4, 2, 64, 0};
  Ours ours(shape, 5);
  for (BFloat16& x : ours.dout) Store(&x, ToFloat(x) * 0x1p-60f);
  ours.Compute(true);
  const Exact exact = ours.InBinary64();
  EXPECT_LT(RelativeError(ours.dq, exact.dq), 0x1p-9);
  EXPECT_LT(RelativeError(ours.dk, exact.dk), 0x1p-9);
  EXPECT_LT(RelativeError(ours.dv, exact.dv), 0x1p-9);
}

// Peaked attention: each query's own key takes all but about 2^-8 of its weight, so that dq is
// what is left of large terms. (With D = do · out, and out rounded, it would be noise: an int8 step
// of out is larger than all of it.) Also with a loss of 2^-60.
TEST(AttentionAccuracy, PeakedQueryGradientsLive) {
  const AttentionShape shape = {1, 100, 2, 2, 64, 0};
  for (float loss_scale : {1.0f, 0x1p-60f}) {
    Ours ours(shape, 6);
    for (int64_t t = 0; t < shape.tokens; ++t) {
      for (int64_t h = 0; h < 2; ++h) {
        // Keys are nearly orthogonal, and q is its own key scaled: own score 10, others about 0.
        double size = 0;
        for (int64_t d = 0; d < 64; ++d) {
          const float k = ToFloat(ours.k[(t * 2 + h) * 64 + d]);
          size += static_cast<double>(k * k);
        }
        for (int64_t d = 0; d < 64; ++d) {
          const int64_t at = (t * 2 + h) * 64 + d;
          Store(&ours.q[at], ToFloat(ours.k[at]) * static_cast<float>(10 * 8 / size));
        }
      }
    }
    for (BFloat16& x : ours.dout) Store(&x, ToFloat(x) * loss_scale);
    ours.Compute(true);
    const Exact exact = ours.InBinary64();
    double peak = 1;
    for (int64_t i = 1; i < shape.tokens; ++i)
      peak = std::min(peak, exact.Weights(i, 0, nullptr)[i]);
    EXPECT_GT(peak, 0.9);
    EXPECT_LT(RelativeError(ours.dq, exact.dq), 0x1p-8);
    EXPECT_LT(RelativeError(ours.dk, exact.dk), 0x1p-8);
    // Row by row. dp - D is a difference of binary32 numbers, so that what it can resolve is 2^-23
    // of |do| |v| |k|; nearly all rows lie above.
    const auto largest_norm = [&](const std::vector<double>& x) {
      double largest = 0;
      for (size_t at = 0; at < x.size(); at += 64)
        largest = std::max(largest, exact.Dot(x, at, x, at));
      return std::sqrt(largest);
    };
    const double noise =
        0x1p-23 * largest_norm(exact.dout) * largest_norm(exact.v) * largest_norm(exact.k);
    int64_t resolved = 0;
    for (int64_t i = 0; i < shape.tokens; ++i) {
      double error = 0;
      double square = 0;
      for (int64_t d = 0; d < 64; ++d) {
        const double want = exact.dq[exact.Query(i, 0) + d];
        const double got = static_cast<double>(ToFloat(ours.dq[exact.Query(i, 0) + d]));
        error += (got - want) * (got - want);
        square += want * want;
      }
      EXPECT_LT(std::sqrt(error), std::sqrt(square) * 0x1p-7 + noise) << "query " << i;
      resolved += std::sqrt(square) > 16 * noise;
    }
    EXPECT_GE(resolved, shape.tokens * 9 / 10);
  }
}

}  // namespace
}  // namespace lockstep::kernels
