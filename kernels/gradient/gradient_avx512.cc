// SPDX-License-Identifier: Apache-2.0
//
// The gradient's elementwise kernels for AVX-512.
#include "kernels/gradient/gradient_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {

void AccumulateAvx512(const AccumulateArgs& args, Range range) {
  AccumulateBody<Avx512>(args, range);
}
void AddIntoAvx512(const AddIntoArgs& args, Range range) { AddIntoBody<Avx512>(args, range); }
void ScaleAvx512(const ScaleArgs& args, Range range) { ScaleBody<Avx512>(args, range); }
void ConvertBf16Avx512(const ConvertBf16Args& args, Range range) {
  ConvertBf16Body<Avx512>(args, range);
}
void WidenF32Avx512(const WidenF32Args& args, Range range) { WidenF32Body<Avx512>(args, range); }

}  // namespace lockstep::kernels
