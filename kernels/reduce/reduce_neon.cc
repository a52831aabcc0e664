// SPDX-License-Identifier: Apache-2.0
//
// The sums for NEON.
#include "kernels/reduce/reduce_body.h"
#include "kernels/simd/neon.h"

namespace lockstep::kernels {

void RowSumsNeon(const RowSumsArgs& args, Range range) { RowSumsBody<Neon>(args, range); }
void ColumnBlocksNeon(const ColumnBlocksArgs& args, Range range) {
  ColumnBlocksBody<Neon>(args, range);
}
void ColumnFoldNeon(const ColumnFoldArgs& args, Range range) { ColumnFoldBody<Neon>(args, range); }
void SumOfSquaresNeon(const SumOfSquaresArgs& args, Range range) {
  SumOfSquaresBody<Neon>(args, range);
}
void GlobalNormNeon(const GlobalNormArgs& args, Range range) { GlobalNormBody<Neon>(args, range); }

}  // namespace lockstep::kernels
