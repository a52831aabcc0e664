// SPDX-License-Identifier: Apache-2.0
//
// Coding of stream cursors. See cursor.h.
#include "engine/data/cursor.h"

#include "absl/strings/str_cat.h"
#include "base/coding.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

constexpr absl::string_view kMagic = "LSCURSR1";
constexpr size_t kPositionBytes = 16;

absl::StatusOr<StreamCursor> Decode(ByteReader& reader) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan magic, reader.ReadFixed("magic", kMagic.size()));
  if (AsChars(magic) != kMagic) {
    return absl::DataLossError(absl::StrCat("offset 0: expected ", kMagic, ", found other bytes"));
  }
  StreamCursor cursor;
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan manifest, reader.ReadFixed("manifest", sizeof(Digest)));
  LOCKSTEP_ASSIGN_OR_RETURN(cursor.key.manifest, Digest::FromBytes(manifest));
  LOCKSTEP_ASSIGN_OR_RETURN(cursor.key.seed, reader.ReadU64("seed"));
  LOCKSTEP_ASSIGN_OR_RETURN(cursor.key.seq_len, reader.ReadU64("sequence length"));
  LOCKSTEP_ASSIGN_OR_RETURN(cursor.window, reader.ReadU64("window"));
  LOCKSTEP_ASSIGN_OR_RETURN(cursor.draws, reader.ReadU64("draws"));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t sources, reader.ReadU32("number of sources"));
  if (sources > reader.remaining() / kPositionBytes) {
    return absl::DataLossError(absl::StrCat("offset ", reader.offset(), ": expected ", sources,
                                            " sources of 16 bytes, found ", reader.remaining(),
                                            " bytes"));
  }
  cursor.sources.resize(sources);
  for (SourcePosition& position : cursor.sources) {
    LOCKSTEP_ASSIGN_OR_RETURN(position.epoch, reader.ReadU64("epoch"));
    LOCKSTEP_ASSIGN_OR_RETURN(position.documents, reader.ReadU64("documents"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const uint8_t carries, reader.ReadU8("carry-over flag"));
  if (carries > 1) {
    return absl::DataLossError(absl::StrCat("offset ", reader.offset() - 1,
                                            ": carry-over flag: expected 0 or 1, found ",
                                            static_cast<int>(carries)));
  }
  if (carries == 1) {
    CarryOver& carry = cursor.carry.emplace();
    for (uint32_t* field : {&carry.source, &carry.shard, &carry.document, &carry.token}) {
      LOCKSTEP_ASSIGN_OR_RETURN(*field, reader.ReadU32("carry-over"));
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.ExpectEnd());
  return cursor;
}

}  // namespace

std::string EncodeCursor(const StreamCursor& cursor) {
  ByteWriter writer;
  writer.WriteFixed(AsBytes(kMagic));
  writer.WriteFixed(cursor.key.manifest.bytes);
  writer.WriteU64(cursor.key.seed);
  writer.WriteU64(cursor.key.seq_len);
  writer.WriteU64(cursor.window);
  writer.WriteU64(cursor.draws);
  writer.WriteU32(static_cast<uint32_t>(cursor.sources.size()));
  for (const SourcePosition& position : cursor.sources) {
    writer.WriteU64(position.epoch);
    writer.WriteU64(position.documents);
  }
  writer.WriteU8(cursor.carry.has_value() ? 1 : 0);
  if (cursor.carry) {
    const CarryOver& carry = *cursor.carry;
    for (uint32_t field : {carry.source, carry.shard, carry.document, carry.token}) {
      writer.WriteU32(field);
    }
  }
  return writer.Take();
}

absl::StatusOr<StreamCursor> DecodeCursor(ByteSpan bytes) {
  ByteReader reader(bytes);
  absl::StatusOr<StreamCursor> cursor = Decode(reader);
  if (cursor.ok() || absl::IsDataLoss(cursor.status())) return cursor;
  return absl::DataLossError(cursor.status().message());
}

Digest CursorDigest(const StreamCursor& cursor) { return Sha256(AsBytes(EncodeCursor(cursor))); }

}  // namespace lockstep::engine
