// SPDX-License-Identifier: Apache-2.0
//
// Reverse-mode differentiation of binary64 scalars on a tape: slow, obvious, and nothing in common
// with the engine's hand-written passes that it checks. For tests.
#ifndef LOCKSTEP_ENGINE_MODEL_TESTING_AUTODIFF_H_
#define LOCKSTEP_ENGINE_MODEL_TESTING_AUTODIFF_H_

#include <cmath>
#include <cstdint>
#include <vector>

namespace lockstep::engine::testing {

// One number of the computation: its place on the tape.
struct Var {
  int32_t at = -1;
};

class Tape {
 public:
  Var Constant(double value) { return Push(value, -1, 0, -1, 0); }
  double value(Var x) const { return nodes_[x.at].value; }

  Var Add(Var a, Var b) { return Push(value(a) + value(b), a.at, 1, b.at, 1); }
  Var Sub(Var a, Var b) { return Push(value(a) - value(b), a.at, 1, b.at, -1); }
  Var Mul(Var a, Var b) { return Push(value(a) * value(b), a.at, value(b), b.at, value(a)); }
  Var Scale(Var a, double s) { return Push(value(a) * s, a.at, s, -1, 0); }
  Var Shift(Var a, double s) { return Push(value(a) + s, a.at, 1, -1, 0); }
  Var Exp(Var a) {
    const double e = std::exp(value(a));
    return Push(e, a.at, e, -1, 0);
  }
  Var Log(Var a) { return Push(std::log(value(a)), a.at, 1 / value(a), -1, 0); }
  Var Rsqrt(Var a) {
    const double r = 1 / std::sqrt(value(a));
    return Push(r, a.at, -0.5 * r / value(a), -1, 0);
  }
  Var Reciprocal(Var a) { return Push(1 / value(a), a.at, -1 / (value(a) * value(a)), -1, 0); }

  // The derivative of `of` by every number before it, by place.
  std::vector<double> Gradient(Var of) const {
    std::vector<double> gradient(nodes_.size());
    gradient[of.at] = 1;
    for (int32_t i = of.at; i >= 0; --i) {
      const Node& node = nodes_[i];
      if (node.a >= 0) gradient[node.a] += gradient[i] * node.da;
      if (node.b >= 0) gradient[node.b] += gradient[i] * node.db;
    }
    return gradient;
  }

 private:
  struct Node {
    double value;
    int32_t a;
    double da;
    int32_t b;
    double db;
  };
  Var Push(double value, int32_t a, double da, int32_t b, double db) {
    nodes_.push_back({value, a, da, b, db});
    return {static_cast<int32_t>(nodes_.size()) - 1};
  }

  std::vector<Node> nodes_;
};

}  // namespace lockstep::engine::testing

#endif  // LOCKSTEP_ENGINE_MODEL_TESTING_AUTODIFF_H_
