// SPDX-License-Identifier: Apache-2.0
//
// The index of an ordered scatter.
#include "kernels/embedding/embedding.h"

#include <algorithm>

namespace lockstep::kernels {

void BuildTokenIndex(const int32_t* ids, int64_t tokens, int64_t vocab, int32_t* starts,
                     int32_t* positions) {
  // starts[v] first counts the ids below v, then is where the next v goes; when all are placed that
  // is where v + 1 starts, so the array is moved up by one.
  std::fill(starts, starts + vocab + 1, 0);
  for (int64_t t = 0; t < tokens; ++t) ++starts[ids[t] + 1];
  for (int64_t v = 0; v < vocab; ++v) starts[v + 1] += starts[v];
  for (int64_t t = 0; t < tokens; ++t) positions[starts[ids[t]]++] = static_cast<int32_t>(t);
  std::copy_backward(starts, starts + vocab, starts + vocab + 1);
  starts[0] = 0;
}

}  // namespace lockstep::kernels
