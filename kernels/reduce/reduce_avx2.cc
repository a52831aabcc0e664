// SPDX-License-Identifier: Apache-2.0
//
// The sums for AVX2.
#include "kernels/reduce/reduce_body.h"
#include "kernels/simd/avx2.h"

namespace lockstep::kernels {

void RowSumsAvx2(const RowSumsArgs& args, Range range) { RowSumsBody<Avx2>(args, range); }
void ColumnBlocksAvx2(const ColumnBlocksArgs& args, Range range) {
  ColumnBlocksBody<Avx2>(args, range);
}
void ColumnFoldAvx2(const ColumnFoldArgs& args, Range range) { ColumnFoldBody<Avx2>(args, range); }
void SumOfSquaresAvx2(const SumOfSquaresArgs& args, Range range) {
  SumOfSquaresBody<Avx2>(args, range);
}
void GlobalNormAvx2(const GlobalNormArgs& args, Range range) { GlobalNormBody<Avx2>(args, range); }

}  // namespace lockstep::kernels
