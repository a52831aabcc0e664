// SPDX-License-Identifier: Apache-2.0
//
// The scalars of an AdamW step.
#include "kernels/adamw/adamw.h"

#include "kernels/math/host64.h"

namespace lockstep::kernels {
namespace {

float Rounded(double x) { return Canon(static_cast<float>(x)); }

// 1 / (1 - beta^step).
double Correction(double beta, int64_t step) {
  return 1.0 / (1.0 - Pow64(beta, static_cast<double>(step)));
}

}  // namespace

AdamWScalars AdamWScalarsAt(int64_t step, double lr, double beta1, double beta2, double eps,
                            double weight_decay) {
  return AdamWScalars{.lr = Rounded(lr),
                      .beta1 = Rounded(beta1),
                      .beta2 = Rounded(beta2),
                      .one_minus_beta1 = Rounded(1.0 - beta1),
                      .one_minus_beta2 = Rounded(1.0 - beta2),
                      .eps = Rounded(eps),
                      .weight_decay = Rounded(weight_decay),
                      .correction1 = Rounded(Correction(beta1, step)),
                      .correction2 = Rounded(Correction(beta2, step))};
}

}  // namespace lockstep::kernels
