// SPDX-License-Identifier: Apache-2.0
//
// The Walsh-Hadamard kernels for NEON.
#include "kernels/hadamard/hadamard_body.h"
#include "kernels/hadamard/hadamard_columns_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {
namespace {

struct NeonHadamard : Neon {
  static constexpr int kLog = 4;  // 16 of 32 registers

  template <int kH>
  static F Exchange(F x) {
    static_assert(kH == 1 || kH == 2);
    if constexpr (kH == 1) return vrev64q_f32(x);
    return vextq_f32(x, x, 2);
  }
};

}  // namespace

void HadamardRowsNeon(const HadamardRowsArgs& args, Range range) {
  HadamardRowsBody<NeonHadamard>(args, range);
}
void HadamardColumnsNeon(const HadamardColumnsArgs& args, Range range) {
  HadamardColumnsBody<NeonHadamard>(args, range);
}
void HadamardQuantizeRowsNeon(const HadamardQuantizeRowsArgs& args, Range range) {
  HadamardQuantizeRowsBody<NeonHadamard>(args, range);
}
void HadamardQuantizeColumnsNeon(const HadamardQuantizeColumnsArgs& args, Range range) {
  HadamardQuantizeColumnsBody<NeonHadamard>(args, range);
}

}  // namespace lockstep::kernels
