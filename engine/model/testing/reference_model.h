// SPDX-License-Identifier: Apache-2.0
//
// The network of the paper's section 3.1 written a second time, from the paper: binary64, one loop
// for each sum, no quantisation, gradients by autodiff.h. For tests.
#ifndef LOCKSTEP_ENGINE_MODEL_TESTING_REFERENCE_MODEL_H_
#define LOCKSTEP_ENGINE_MODEL_TESTING_REFERENCE_MODEL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "audit/run_manifest.h"
#include "engine/model/testing/autodiff.h"

namespace lockstep::engine::testing {

struct ReferenceResult {
  double loss;                                           // mean cross-entropy
  double z_loss;                                         // mean, before its coefficient
  std::map<std::string, std::vector<double>> gradients;  // by tensor
};

class ReferenceModel {
 public:
  ReferenceModel(const audit::ModelConfig& config, double z_coefficient)
      : c_(config), z_coefficient_(z_coefficient) {}

  // parameters: by the names of checkpoints; inputs, targets: [windows, T].
  ReferenceResult Run(const std::map<std::string, std::vector<double>>& parameters,
                      const std::vector<int32_t>& inputs, const std::vector<int32_t>& targets) {
    for (const auto& [name, values] : parameters) {
      for (const double value : values) w_[name].push_back(tape_.Constant(value));
    }
    Var loss = tape_.Constant(0);
    Var z = tape_.Constant(0);
    const auto n = static_cast<int64_t>(inputs.size());
    for (int64_t window = 0; window < n; window += c_.seq_len) {
      std::vector<Row> x;
      for (int64_t t = 0; t < c_.seq_len; ++t) {
        x.push_back(Norm(RowOf("embedding", inputs[window + t]), &w_["embedding_norm"]));
      }
      for (int64_t l = 0; l < c_.layers; ++l) Layer(l, x);
      for (int64_t t = 0; t < c_.seq_len; ++t) {
        const Row h = Norm(x[t], &w_["final_norm"]);
        const Row logits = Linear("head", h);
        const Var lse = LogSumExp(logits);
        loss = tape_.Add(loss, tape_.Sub(lse, logits[targets[window + t]]));
        z = tape_.Add(z, tape_.Mul(lse, lse));
      }
    }
    const double mean = 1.0 / static_cast<double>(n);
    loss = tape_.Scale(loss, mean);
    z = tape_.Scale(z, mean);
    const std::vector<double> d = tape_.Gradient(tape_.Add(loss, tape_.Scale(z, z_coefficient_)));
    ReferenceResult result = {.loss = tape_.value(loss), .z_loss = tape_.value(z), .gradients = {}};
    for (const auto& [name, vars] : w_) {
      for (const Var var : vars) result.gradients[name].push_back(d[var.at]);
    }
    return result;
  }

 private:
  using Row = std::vector<Var>;

  void Layer(int64_t l, std::vector<Row>& x) {
    const std::string name = "layers." + std::to_string(l) + ".";
    std::vector<Row> qkv;
    for (const Row& row : x) {
      Row heads = Linear(name + "attention.qkv", Norm(row, &w_[name + "attention.norm"]));
      const int64_t rotated = c_.query_heads + c_.kv_heads;
      for (int64_t h = 0; h < rotated; ++h) {
        const auto begin = heads.begin() + h * c_.head_dim;
        const Row head = Rotate(Norm(Row(begin, begin + c_.head_dim), nullptr),
                                static_cast<int64_t>(qkv.size()));
        std::copy(head.begin(), head.end(), begin);
      }
      qkv.push_back(std::move(heads));
    }
    for (int64_t t = 0; t < c_.seq_len; ++t) {
      Row attended;
      for (int64_t h = 0; h < c_.query_heads; ++h) AppendHead(l, qkv, t, h, attended);
      Residual(x[t], Linear(name + "attention.output", attended));
    }
    for (Row& row : x) {
      const Row gate_up = Linear(name + "mlp.gate_up", Norm(row, &w_[name + "mlp.norm"]));
      Row activated;
      for (int64_t f = 0; f < c_.ffn_width; ++f) {
        const Var gate = gate_up[f];
        const Var sigmoid = tape_.Reciprocal(tape_.Shift(tape_.Exp(tape_.Scale(gate, -1)), 1));
        activated.push_back(tape_.Mul(tape_.Mul(gate, sigmoid), gate_up[c_.ffn_width + f]));
      }
      Residual(row, Linear(name + "mlp.down", activated));
    }
  }

  void AppendHead(int64_t l, const std::vector<Row>& qkv, int64_t t, int64_t h, Row& out) {
    const int64_t kv = h / (c_.query_heads / c_.kv_heads);
    const int64_t key_at = c_.query_width() + kv * c_.head_dim;
    const int64_t value_at = key_at + c_.kv_width();
    const int64_t window = c_.WindowOfLayer(l);
    const int64_t first = window > 0 ? std::max<int64_t>(0, t - window + 1) : 0;
    Row scores;
    for (int64_t j = first; j <= t; ++j) {
      Var dot = tape_.Constant(0);
      for (int64_t d = 0; d < c_.head_dim; ++d) {
        dot = tape_.Add(dot, tape_.Mul(qkv[t][h * c_.head_dim + d], qkv[j][key_at + d]));
      }
      scores.push_back(tape_.Scale(dot, 1 / std::sqrt(static_cast<double>(c_.head_dim))));
    }
    const Var lse = LogSumExp(scores);
    for (int64_t d = 0; d < c_.head_dim; ++d) {
      Var sum = tape_.Constant(0);
      for (int64_t j = first; j <= t; ++j) {
        const Var p = tape_.Exp(tape_.Sub(scores[j - first], lse));
        sum = tape_.Add(sum, tape_.Mul(p, qkv[j][value_at + d]));
      }
      out.push_back(sum);
    }
  }

  Row RowOf(const std::string& name, int64_t row) {
    const auto begin = w_[name].begin() + row * c_.width;
    return Row(begin, begin + c_.width);
  }

  Row Linear(const std::string& name, const Row& x) {
    const Row& w = w_[name];
    Row y;
    for (size_t o = 0; o < w.size() / x.size(); ++o) {
      Var sum = tape_.Constant(0);
      for (size_t k = 0; k < x.size(); ++k) {
        sum = tape_.Add(sum, tape_.Mul(w[o * x.size() + k], x[k]));
      }
      y.push_back(sum);
    }
    return y;
  }

  Row Norm(const Row& x, const Row* gain) {
    Var squares = tape_.Constant(0);
    for (const Var v : x) squares = tape_.Add(squares, tape_.Mul(v, v));
    const Var rstd = tape_.Rsqrt(
        tape_.Shift(tape_.Scale(squares, 1.0 / static_cast<double>(x.size())), c_.norm_eps));
    Row y;
    for (size_t i = 0; i < x.size(); ++i) {
      Var v = tape_.Mul(x[i], rstd);
      if (gain != nullptr) v = tape_.Mul(v, (*gain)[i]);
      y.push_back(v);
    }
    return y;
  }

  // Element i turns with element i + d/2 by position * theta^(-2i/d).
  Row Rotate(const Row& x, int64_t position) {
    const auto half = static_cast<int64_t>(x.size()) / 2;
    Row y(x.size());
    for (int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(position) *
          std::pow(c_.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(x.size()));
      const double cos = std::cos(angle);
      const double sin = std::sin(angle);
      y[i] = tape_.Sub(tape_.Scale(x[i], cos), tape_.Scale(x[i + half], sin));
      y[i + half] = tape_.Add(tape_.Scale(x[i + half], cos), tape_.Scale(x[i], sin));
    }
    return y;
  }

  Var LogSumExp(const Row& x) {
    double max = tape_.value(x[0]);
    for (const Var v : x) max = std::max(max, tape_.value(v));
    Var sum = tape_.Constant(0);
    for (const Var v : x) sum = tape_.Add(sum, tape_.Exp(tape_.Shift(v, -max)));
    return tape_.Shift(tape_.Log(sum), max);
  }

  void Residual(Row& x, const Row& branch) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = tape_.Add(x[i], branch[i]);
  }

  const audit::ModelConfig c_;
  const double z_coefficient_;
  Tape tape_;
  std::map<std::string, Row> w_;
};

}  // namespace lockstep::engine::testing

#endif  // LOCKSTEP_ENGINE_MODEL_TESTING_REFERENCE_MODEL_H_
