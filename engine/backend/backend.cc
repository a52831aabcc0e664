// SPDX-License-Identifier: Apache-2.0
//
// Buffers.
#include "engine/backend/backend.h"

#include "base/status.h"

namespace lockstep::engine {

absl::StatusOr<Buffer> Buffer::Create(Backend& backend, size_t bytes) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  LOCKSTEP_ASSIGN_OR_RETURN(buffer.data_, backend.Allocate(bytes));
  buffer.backend_ = &backend;
  buffer.bytes_ = bytes;
  return buffer;
}

}  // namespace lockstep::engine
