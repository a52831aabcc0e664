// SPDX-License-Identifier: Apache-2.0
//
// The whole position of a data stream as a small record that knows nothing of ranks or machines. It
// is part of the training state, and its digest of every step record. Format: docs/stream.md.
#ifndef LOCKSTEP_ENGINE_DATA_CURSOR_H_
#define LOCKSTEP_ENGINE_DATA_CURSOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/sha256.h"

namespace lockstep::engine {

inline constexpr uint64_t kSeqLenMax = uint64_t{1} << 24;

// How far a source is. At the end of an epoch at once (epoch + 1, 0), so that a position has one
// form.
struct SourcePosition {
  uint64_t epoch = 0;
  uint64_t documents = 0;  // drawn in this epoch: below the source's documents, or 0
  bool operator==(const SourcePosition&) const = default;
};

// The document that the last window cut: it goes on, in the next window, at `token`.
struct CarryOver {
  uint32_t source = 0;
  uint32_t shard = 0;
  uint32_t document = 0;  // within the shard, in file order
  uint32_t token = 0;     // within the document: 1 ... its length - 1
  bool operator==(const CarryOver&) const = default;
};

// What fixes a stream.
struct StreamKey {
  Digest manifest;  // of the corpus: ManifestDigest
  uint64_t seed = 0;
  uint64_t seq_len = 0;
  bool operator==(const StreamKey&) const = default;
};

// A function of the key and `window` alone: whoever walks there has the same one. Which step of a
// run begins there is for the run's schedule to say (schedule.h).
struct StreamCursor {
  StreamKey key;
  uint64_t window = 0;                  // windows taken: the next one's number
  uint64_t draws = 0;                   // documents drawn, all sources together: the mix counter
  std::vector<SourcePosition> sources;  // as in the manifest
  std::optional<CarryOver> carry;
  bool operator==(const StreamCursor&) const = default;
};

// One byte string for each cursor.
std::string EncodeCursor(const StreamCursor& cursor);

// Accepts exactly what EncodeCursor writes. Untrusted input; DataLoss gives the offset. Whether the
// numbers make sense for a stream is for Stream::Seek to say.
absl::StatusOr<StreamCursor> DecodeCursor(ByteSpan bytes);

// SHA-256 of the encoding.
Digest CursorDigest(const StreamCursor& cursor);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_DATA_CURSOR_H_
