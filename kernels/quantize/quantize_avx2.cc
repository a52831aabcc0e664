// SPDX-License-Identifier: Apache-2.0
//
// The quantisation kernels for AVX2.
#include "kernels/quantize/dequantize_body.h"
#include "kernels/quantize/quantize_body.h"
#include "kernels/quantize/weights_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {

void AmaxBlocksAvx2(const AmaxBlocksArgs& args, Range range) { AmaxBlocksBody<Avx2>(args, range); }
void QuantizeAvx2(const QuantizeArgs& args, Range range) { QuantizeBody<Avx2>(args, range); }
void QuantizeRowsAvx2(const QuantizeRowsArgs& args, Range range) {
  QuantizeRowsBody<Avx2>(args, range);
}
void QuantizeColumnsAvx2(const QuantizeColumnsArgs& args, Range range) {
  QuantizeColumnsBody<Avx2>(args, range);
}
void QuantizeWeightsAvx2(const QuantizeWeightsArgs& args, Range range) {
  QuantizeWeightsBody<Avx2>(args, range);
}
void MaskClippedAvx2(const MaskClippedArgs& args, Range range) {
  MaskClippedBody<Avx2>(args, range);
}
void DequantizeProductAvx2(const DequantizeProductArgs& args, Range range) {
  DequantizeProductBody<Avx2>(args, range);
}
void DequantizeRowsAvx2(const DequantizeRowsArgs& args, Range range) {
  DequantizeRowsBody<Avx2>(args, range);
}

}  // namespace lockstep::kernels
