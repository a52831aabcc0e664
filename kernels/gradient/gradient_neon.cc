// SPDX-License-Identifier: Apache-2.0
//
// The gradient's elementwise kernels for NEON.
#include "kernels/gradient/gradient_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {

void AccumulateNeon(const AccumulateArgs& args, Range range) { AccumulateBody<Neon>(args, range); }
void AddIntoNeon(const AddIntoArgs& args, Range range) { AddIntoBody<Neon>(args, range); }
void ScaleNeon(const ScaleArgs& args, Range range) { ScaleBody<Neon>(args, range); }
void ConvertBf16Neon(const ConvertBf16Args& args, Range range) {
  ConvertBf16Body<Neon>(args, range);
}
void WidenF32Neon(const WidenF32Args& args, Range range) { WidenF32Body<Neon>(args, range); }

}  // namespace lockstep::kernels
