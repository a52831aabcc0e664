// SPDX-License-Identifier: Apache-2.0
//
// Attention for 64-bit ARM with the dot product extension.
#include "kernels/attention/attention_backward_body.h"
#include "kernels/attention/attention_forward_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {
namespace {

struct AttentionNeon : Neon {
  static constexpr int kRows = 6;
  static constexpr int kVectors = 4;

  static void Transpose(F (&x)[4]) {
    const F low01 = vzip1q_f32(x[0], x[1]);
    const F high01 = vzip2q_f32(x[0], x[1]);
    const F low23 = vzip1q_f32(x[2], x[3]);
    const F high23 = vzip2q_f32(x[2], x[3]);
    x[0] = vcombine_f32(vget_low_f32(low01), vget_low_f32(low23));
    x[1] = vcombine_f32(vget_high_f32(low01), vget_high_f32(low23));
    x[2] = vcombine_f32(vget_low_f32(high01), vget_low_f32(high23));
    x[3] = vcombine_f32(vget_high_f32(high01), vget_high_f32(high23));
  }

  static I Dot4(I sum, I a, I b) {
    return vdotq_s32(sum, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
  }

  static void AddRounded(int64_t* sum, F x) {
    const int64x2_t low = vcvtnq_s64_f64(vcvt_f64_f32(vget_low_f32(x)));
    const int64x2_t high = vcvtnq_s64_f64(vcvt_high_f64_f32(x));
    vst1q_s64(sum, vaddq_s64(vld1q_s64(sum), low));
    vst1q_s64(sum + 2, vaddq_s64(vld1q_s64(sum + 2), high));
  }
};

}  // namespace

void AttentionForwardNeon(const AttentionForwardArgs& args, Range range) {
  AttentionForwardBody<AttentionNeon>(args, range);
}
void AttentionBackwardNeon(const AttentionBackwardArgs& args, Range range) {
  AttentionBackwardBody<AttentionNeon>(args, range);
}

}  // namespace lockstep::kernels
