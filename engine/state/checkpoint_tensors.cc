// SPDX-License-Identifier: Apache-2.0
//
// Headers expected and found.
#include "engine/state/checkpoint_tensors.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lockstep::engine {

SafetensorsHeader HeaderOf(const audit::TensorTable& table, TensorType type) {
  SafetensorsHeader header;
  for (const audit::TensorInfo& tensor : table.tensors()) {
    header.entries.push_back({.name = tensor.name, .type = type, .shape = tensor.shape});
  }
  return header;
}

absl::Status CheckHeader(const SafetensorsFile& file, const audit::TensorTable& table,
                         TensorType type) {
  SafetensorsHeader expected = HeaderOf(table, type);
  EncodeSafetensorsHeader(expected);  // sets the offsets
  const std::vector<SafetensorsEntry>& found = file.header().entries;
  if (found.size() != expected.entries.size()) {
    return absl::DataLossError(absl::StrCat(file.path(), ": expected ", expected.entries.size(),
                                            " tensors; found ", found.size()));
  }
  for (size_t t = 0; t < found.size(); ++t) {
    if (found[t] == expected.entries[t]) continue;
    return absl::DataLossError(absl::StrCat(file.path(), ": expected tensor ", t, " to be \"",
                                            expected.entries[t].name,
                                            "\" in the type and shape of the run's model; found \"",
                                            found[t].name, "\" or another type or shape"));
  }
  return absl::OkStatus();
}

absl::Status ReadPiece(const SafetensorsFile& file, const Piece& piece, std::span<char> out) {
  const SafetensorsEntry& entry = file.header().entries[piece.tensor];
  return file.Read(entry.begin + piece.first * BytesOf(entry.type), out);
}

}  // namespace lockstep::engine
