// SPDX-License-Identifier: Apache-2.0
//
// An f32 array in the parameters' layout that is in memory, or in a file of which a piece at a time
// is in memory: moments, master parameters and partial gradients, which most of a step does not
// touch. What comes back from the file is checked against the digest of what went there, so that a
// bad disk is an error and never a different result.
#ifndef LOCKSTEP_ENGINE_STATE_FLAT_ARRAY_H_
#define LOCKSTEP_ENGINE_STATE_FLAT_ARRAY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/sha256.h"
#include "engine/backend/backend.h"
#include "engine/model/parameters.h"

namespace lockstep::engine {

// Zeros at first. Not for several threads at once.
class FlatArray {
 public:
  // In the backend's memory.
  static absl::StatusOr<std::unique_ptr<FlatArray>> InMemory(Backend& backend,
                                                             const ParameterLayout& layout);
  // In an unnamed file of `folder`, which is gone when the array is.
  static absl::StatusOr<std::unique_ptr<FlatArray>> Spilled(Backend& backend,
                                                            const ParameterLayout& layout,
                                                            const std::string& folder);
  ~FlatArray();
  FlatArray(const FlatArray&) = delete;
  FlatArray& operator=(const FlatArray&) = delete;

  bool in_memory() const { return file_ < 0; }
  // The whole of one in memory.
  float* flat() const { return memory_.as<float>(); }

  // The elements of a piece, until the next Load. DataLoss if the file gives back something else
  // than it was given.
  absl::StatusOr<float*> Load(const Piece& piece);
  // After what Load returned was changed.
  absl::Status Store(const Piece& piece);
  // Load, copy, Store, without reading what was there. data: in the backend's memory.
  absl::Status Put(const Piece& piece, const float* data);

 private:
  explicit FlatArray(Backend& backend) : backend_(backend) {}

  size_t IndexOf(const Piece& piece) const;

  Backend& backend_;
  Buffer memory_;  // all of it, or a piece
  int file_ = -1;
  std::string folder_;
  std::vector<Piece> pieces_;    // of one in a file
  std::vector<bool> written_;    // by piece; the others are zeros
  std::vector<Digest> digests_;  // by piece
  std::vector<char> host_;       // a piece on its way
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_STATE_FLAT_ARRAY_H_
