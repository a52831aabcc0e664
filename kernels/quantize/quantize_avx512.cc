// SPDX-License-Identifier: Apache-2.0
//
// The quantisation kernels for AVX-512.
#include "kernels/quantize/dequantize_body.h"
#include "kernels/quantize/quantize_body.h"
#include "kernels/quantize/weights_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {

void AmaxBlocksAvx512(const AmaxBlocksArgs& args, Range range) {
  AmaxBlocksBody<Avx512>(args, range);
}
void QuantizeAvx512(const QuantizeArgs& args, Range range) { QuantizeBody<Avx512>(args, range); }
void QuantizeRowsAvx512(const QuantizeRowsArgs& args, Range range) {
  QuantizeRowsBody<Avx512>(args, range);
}
void QuantizeColumnsAvx512(const QuantizeColumnsArgs& args, Range range) {
  QuantizeColumnsBody<Avx512>(args, range);
}
void QuantizeWeightsAvx512(const QuantizeWeightsArgs& args, Range range) {
  QuantizeWeightsBody<Avx512>(args, range);
}
void MaskClippedAvx512(const MaskClippedArgs& args, Range range) {
  MaskClippedBody<Avx512>(args, range);
}
void DequantizeProductAvx512(const DequantizeProductArgs& args, Range range) {
  DequantizeProductBody<Avx512>(args, range);
}
void DequantizeRowsAvx512(const DequantizeRowsArgs& args, Range range) {
  DequantizeRowsBody<Avx512>(args, range);
}

}  // namespace lockstep::kernels
