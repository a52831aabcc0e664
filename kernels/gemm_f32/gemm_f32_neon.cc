// SPDX-License-Identifier: Apache-2.0
//
// The inner kernels of the f32 matrix product for NEON: tiles of 4 rows by 6 vectors.
#include "kernels/gemm_f32/gemm_f32_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {
namespace {

struct Tile128 {
  using V = Neon;
  static constexpr int kVectors = kGemmTileColumnsNeon / V::kWidth;

  static void Transpose4(float32x4_t (&x)[4]) {
    const float32x4x2_t top = vtrnq_f32(x[0], x[1]);
    const float32x4x2_t bottom = vtrnq_f32(x[2], x[3]);
    x[0] = vcombine_f32(vget_low_f32(top.val[0]), vget_low_f32(bottom.val[0]));
    x[1] = vcombine_f32(vget_low_f32(top.val[1]), vget_low_f32(bottom.val[1]));
    x[2] = vcombine_f32(vget_high_f32(top.val[0]), vget_high_f32(bottom.val[0]));
    x[3] = vcombine_f32(vget_high_f32(top.val[1]), vget_high_f32(bottom.val[1]));
  }
  template <int q>
  static void StoreQuad(float* p, float32x4_t x) {
    vst1q_f32(p, x);
  }
};

}  // namespace

void GemmF32PackNeon(const GemmF32PackArgs& args, Range panels) {
  GemmF32PackBody<Tile128>(args, panels);
}
void GemmF32TilesNeon(const GemmF32TilesArgs& args, Range tiles) {
  GemmF32TilesBody<Tile128>(args, tiles);
}

}  // namespace lockstep::kernels
