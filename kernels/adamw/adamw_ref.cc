// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of AdamW.
#include "kernels/adamw/adamw.h"

namespace lockstep::kernels {

void AdamWReference(const AdamWArgs& args, Range range) {
  const AdamWScalars& s = args.scalars;
  for (int64_t i = range.begin; i < range.end; ++i) {
    const float p = args.p_f32 != nullptr ? args.p_f32[i] : ToFloat(args.p_bf16[i]);
    const float g = Canon(args.g[i] * args.clip_scale);
    const float m = Canon(Fma(s.beta1, args.m[i], Canon(s.one_minus_beta1 * g)));
    const float v = Canon(Fma(s.beta2, args.v[i], Canon(s.one_minus_beta2 * Canon(g * g))));
    const float denominator = Sqrt(Canon(v * s.correction2)) + s.eps;
    float u = Canon(Canon(m * s.correction1) / denominator);
    u = Canon(Fma(s.weight_decay, p, u));
    const float updated = Fma(-s.lr, u, p);
    Store(&args.m[i], m);
    Store(&args.v[i], v);
    if (args.p_f32 != nullptr) Store(&args.p_f32[i], updated);
    if (args.p_bf16 != nullptr) Store(&args.p_bf16[i], updated);
  }
}

}  // namespace lockstep::kernels
