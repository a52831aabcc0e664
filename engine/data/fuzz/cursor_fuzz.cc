// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: stream cursors, and the streams that are asked to go there. What Seek accepts is a
// place to go on from; what it refuses leaves the stream where it was.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/logging.h"
#include "engine/data/fuzz/edits.h"
#include "engine/data/stream.h"
#include "engine/data/testing/memory_corpus.h"

namespace lockstep::engine {
namespace {

constexpr uint64_t kSeqLen = 6;

std::shared_ptr<const CorpusReader> Corpus() {
  using testing::Tokens;
  const std::vector<Tokens> few = {Tokens(3, 1), Tokens(0, 1), Tokens(20, 2)};
  return testing::MakeMemoryCorpus({{"a", {few, few}, {}}, {"b", {}, 3}, {"c", {few}, 70}}).reader;
}

std::string GoodCursor(const Stream& start) {
  Stream stream = start;
  LOCKSTEP_CHECK(stream.Skip(9).ok() && stream.cursor().carry.has_value());
  return EncodeCursor(stream.cursor());
}

void Check(const std::string& bytes, const Stream& start) {
  const absl::StatusOr<StreamCursor> cursor = DecodeCursor(AsBytes(bytes));
  LOCKSTEP_CHECK(cursor.ok() || absl::IsDataLoss(cursor.status()));
  if (!cursor.ok()) return;
  LOCKSTEP_CHECK(EncodeCursor(*cursor) == bytes);
  Stream stream = start;
  if (!stream.Seek(*cursor).ok()) {
    LOCKSTEP_CHECK(stream.cursor() == start.cursor());
    return;
  }
  LOCKSTEP_CHECK(stream.cursor() == *cursor);
  std::vector<TokenSpan> spans;
  std::vector<int32_t> tokens(kSeqLen + 1);
  for (int i = 0; i < 12; ++i) {
    LOCKSTEP_CHECK(stream.Next(&spans).ok());
    LOCKSTEP_CHECK(stream.ReadTokens(spans, tokens).ok());
  }
  // Where it came to is a place too.
  Stream again = start;
  LOCKSTEP_CHECK(again.Seek(stream.cursor()).ok());
}

}  // namespace
}  // namespace lockstep::engine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::engine;
  static const Stream* const start = new Stream(*Stream::Open(Corpus(), 5, kSeqLen));
  static const std::string* const good = new std::string(GoodCursor(*start));
  Check(fuzz::BytesOrEdits({data, size}, *good), *start);
  return 0;
}
