// SPDX-License-Identifier: Apache-2.0
//
// Token embedding: gather of table rows, and its backward pass, an ordered scatter.
#ifndef LOCKSTEP_KERNELS_EMBEDDING_EMBEDDING_H_
#define LOCKSTEP_KERNELS_EMBEDDING_EMBEDDING_H_

#include "kernels/elements.h"
#include "kernels/numeric.h"
#include "kernels/range.h"

namespace lockstep::kernels {

// out[t, :] = bf16(table[ids[t], :]): canonical and rounded to nearest even, which for a canonical
// bf16 table is a copy. An id outside [0, vocab) is a bug of the caller and is not looked for.
struct EmbeddingGatherArgs {
  BFloat16* out;        // [tokens, cols]
  ConstElements table;  // [vocab, cols]
  const int32_t* ids;   // [tokens]
  int64_t tokens;
  int64_t cols;

  int64_t items() const { return tokens; }
  int64_t grain() const { return 1 + 16384 / (cols + 1); }
};

// Where each id stands: positions[starts[v]] .. positions[starts[v + 1] - 1] are the t with ids[t]
// = v, ascending. A counting sort on the calling thread; ids in [0, vocab), tokens < 2^31.
void BuildTokenIndex(const int32_t* ids, int64_t tokens, int64_t vocab, int32_t* starts,
                     int32_t* positions);

// dtable[v, c] = Canon(acc), acc = acc + Snap(dy[t, c]) for the positions t of v, ascending, from
// +0. Rows without a token become +0. Every row is written.
struct EmbeddingScatterArgs {
  float* dtable;             // [vocab, cols]
  const BFloat16* dy;        // [tokens, cols]
  const int32_t* starts;     // [vocab + 1], by BuildTokenIndex
  const int32_t* positions;  // [tokens], by BuildTokenIndex
  int64_t vocab;
  int64_t cols;

  int64_t items() const { return vocab; }
  int64_t grain() const { return 1 + 16384 / (cols + 1); }
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_EMBEDDING_EMBEDDING_H_
