// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of the function kernels.
#include "kernels/math/erfinv.h"
#include "kernels/math/exp.h"
#include "kernels/math/functions.h"
#include "kernels/math/log.h"
#include "kernels/math/pow.h"
#include "kernels/math/rsqrt.h"
#include "kernels/math/sigmoid.h"
#include "kernels/math/sin_cos.h"

namespace lockstep::kernels {
namespace {

float Apply(UnaryFunction function, float x) {
  switch (function) {
    case UnaryFunction::kExp:
      return Exp(x);
    case UnaryFunction::kLog:
      return Log(x);
    case UnaryFunction::kSin:
      return Sin(x);
    case UnaryFunction::kCos:
      return Cos(x);
    case UnaryFunction::kSigmoid:
      return Sigmoid(x);
    case UnaryFunction::kSilu:
      return Silu(x);
    case UnaryFunction::kSiluGrad:
      return SiluGrad(x);
    case UnaryFunction::kRsqrt:
      return RsqrtV<Scalar>(x);
    case UnaryFunction::kErfinv:
      return Erfinv(x);
  }
  __builtin_unreachable();
}

}  // namespace

void UnaryReference(const UnaryArgs& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    args.out[i] = Apply(args.function, args.in[i]);
  }
}

void PowReference(const PowArgs& args, Range range) {
  for (int64_t i = range.begin; i < range.end; ++i) args.out[i] = Pow(args.x[i], args.y[i]);
}

}  // namespace lockstep::kernels
