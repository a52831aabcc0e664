// SPDX-License-Identifier: Apache-2.0
//
// The quantisation kernels for NEON.
#include "kernels/quantize/dequantize_body.h"
#include "kernels/quantize/quantize_body.h"
#include "kernels/quantize/weights_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {

void AmaxBlocksNeon(const AmaxBlocksArgs& args, Range range) { AmaxBlocksBody<Neon>(args, range); }
void QuantizeNeon(const QuantizeArgs& args, Range range) { QuantizeBody<Neon>(args, range); }
void QuantizeRowsNeon(const QuantizeRowsArgs& args, Range range) {
  QuantizeRowsBody<Neon>(args, range);
}
void QuantizeColumnsNeon(const QuantizeColumnsArgs& args, Range range) {
  QuantizeColumnsBody<Neon>(args, range);
}
void QuantizeWeightsNeon(const QuantizeWeightsArgs& args, Range range) {
  QuantizeWeightsBody<Neon>(args, range);
}
void MaskClippedNeon(const MaskClippedArgs& args, Range range) {
  MaskClippedBody<Neon>(args, range);
}
void DequantizeProductNeon(const DequantizeProductArgs& args, Range range) {
  DequantizeProductBody<Neon>(args, range);
}
void DequantizeRowsNeon(const DequantizeRowsArgs& args, Range range) {
  DequantizeRowsBody<Neon>(args, range);
}

}  // namespace lockstep::kernels
