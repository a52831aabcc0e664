// SPDX-License-Identifier: Apache-2.0
//
// How the fuzz targets here read their input: as the bytes to parse, or as edits of good bytes.
#ifndef LOCKSTEP_ENGINE_DATA_FUZZ_EDITS_H_
#define LOCKSTEP_ENGINE_DATA_FUZZ_EDITS_H_

#include <algorithm>
#include <string>

#include "base/bytes.h"

namespace lockstep::engine::fuzz {

// First byte even: the rest is the result. Odd: the rest is edits of `good`, each an offset (two
// bytes), how many bytes to take out there, how many of the input's to put in, and those.
inline std::string BytesOrEdits(ByteSpan input, const std::string& good) {
  if (input.empty()) return "";
  const bool edits = input[0] & 1;
  input = input.subspan(1);
  if (!edits) return ToString(input);
  std::string result = good;
  while (input.size() >= 4) {
    const size_t at = (input[0] | input[1] << 8) % (result.size() + 1);
    const size_t in = std::min<size_t>(input[3] % 24, input.size() - 4);
    result.replace(at, input[2] % 24, ToString(input.subspan(4, in)));
    input = input.subspan(4 + in);
  }
  return result;
}

}  // namespace lockstep::engine::fuzz

#endif  // LOCKSTEP_ENGINE_DATA_FUZZ_EDITS_H_
