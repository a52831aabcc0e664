// SPDX-License-Identifier: Apache-2.0
//
// The sums for AVX-512.
#include "kernels/reduce/reduce_body.h"
#include "kernels/simd/avx512.h"

namespace lockstep::kernels {

void RowSumsAvx512(const RowSumsArgs& args, Range range) { RowSumsBody<Avx512>(args, range); }
void ColumnBlocksAvx512(const ColumnBlocksArgs& args, Range range) {
  ColumnBlocksBody<Avx512>(args, range);
}
void ColumnFoldAvx512(const ColumnFoldArgs& args, Range range) {
  ColumnFoldBody<Avx512>(args, range);
}
void SumOfSquaresAvx512(const SumOfSquaresArgs& args, Range range) {
  SumOfSquaresBody<Avx512>(args, range);
}
void GlobalNormAvx512(const GlobalNormArgs& args, Range range) {
  GlobalNormBody<Avx512>(args, range);
}

}  // namespace lockstep::kernels
