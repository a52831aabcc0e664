// SPDX-License-Identifier: Apache-2.0
//
// The gradient's elementwise kernels for AVX2.
#include "kernels/gradient/gradient_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {

void AccumulateAvx2(const AccumulateArgs& args, Range range) { AccumulateBody<Avx2>(args, range); }
void AddIntoAvx2(const AddIntoArgs& args, Range range) { AddIntoBody<Avx2>(args, range); }
void ScaleAvx2(const ScaleArgs& args, Range range) { ScaleBody<Avx2>(args, range); }
void ConvertBf16Avx2(const ConvertBf16Args& args, Range range) {
  ConvertBf16Body<Avx2>(args, range);
}
void WidenF32Avx2(const WidenF32Args& args, Range range) { WidenF32Body<Avx2>(args, range); }

}  // namespace lockstep::kernels
