// SPDX-License-Identifier: Apache-2.0
//
// The record's fields in their order, and the chain.
#include "audit/step_record.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "base/coding.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

constexpr uint8_t kMagic[4] = {'L', 'K', 'S', 'R'};
constexpr uint32_t kVersion = 1;
constexpr absl::string_view kGenesisTag = "lockstep chain genesis 1";
constexpr absl::string_view kChainTag = "lockstep chain 1";

ByteSpan Span(absl::string_view text) {
  return ByteSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

}  // namespace

bool StepRecord::operator==(const StepRecord& other) const {
  return EncodeStepRecord(*this) == EncodeStepRecord(other);
}

std::string EncodeStepRecord(const StepRecord& r) {
  ByteWriter writer;
  writer.WriteFixed(kMagic);
  writer.WriteU32(kVersion);
  writer.WriteU64(r.step);
  writer.WriteU64(r.tokens_before);
  writer.WriteU64(r.tokens);
  writer.WriteU64(r.updates);
  for (const Digest* digest : {&r.parameters, &r.first_moment, &r.second_moment, &r.gradient,
                               &r.windows, &r.transcript, &r.cursor}) {
    writer.WriteFixed(digest->bytes);
  }
  writer.WriteF32(r.loss);
  writer.WriteF32(r.z_loss);
  writer.WriteF32(r.gradient_norm);
  writer.WriteF32(r.learning_rate);
  writer.WriteU32(static_cast<uint32_t>(r.outcome));
  writer.WriteU32(r.spike.skips_left);
  writer.WriteU32(r.spike.events);
  writer.WriteU32(0);
  writer.WriteU64(r.spike.events_since);
  writer.WriteFixed(r.previous_chain.bytes);
  return writer.Take();
}

absl::StatusOr<StepRecord> DecodeStepRecord(ByteSpan bytes) {
  if (bytes.size() != kStepRecordBytes) {
    return absl::DataLossError(
        absl::StrCat("step record: expected ", kStepRecordBytes, " bytes; found ", bytes.size()));
  }
  // The length is right, so that no read below can fail.
  ByteReader reader(bytes);
  const ByteSpan magic = *reader.ReadFixed("magic", sizeof(kMagic));
  if (!std::equal(magic.begin(), magic.end(), kMagic)) {
    return absl::DataLossError("step record: expected the bytes \"LKSR\" at offset 0");
  }
  if (const uint32_t version = *reader.ReadU32("version"); version != kVersion) {
    return absl::DataLossError(
        absl::StrCat("step record: expected version ", kVersion, " at offset 4; found ", version));
  }
  StepRecord r;
  r.step = *reader.ReadU64("step");
  r.tokens_before = *reader.ReadU64("tokens_before");
  r.tokens = *reader.ReadU64("tokens");
  r.updates = *reader.ReadU64("updates");
  for (Digest* digest : {&r.parameters, &r.first_moment, &r.second_moment, &r.gradient, &r.windows,
                         &r.transcript, &r.cursor}) {
    *digest = *Digest::FromBytes(*reader.ReadFixed("digest", 32));
  }
  r.loss = *reader.ReadF32("loss");
  r.z_loss = *reader.ReadF32("z_loss");
  r.gradient_norm = *reader.ReadF32("gradient_norm");
  r.learning_rate = *reader.ReadF32("learning_rate");
  const size_t outcome_offset = reader.offset();
  const uint32_t outcome = *reader.ReadU32("outcome");
  if (outcome > static_cast<uint32_t>(StepOutcome::kSkippedAfterSpike)) {
    return absl::DataLossError(
        absl::StrCat("step record: expected an outcome from 0 to 3 at offset ", outcome_offset,
                     "; found ", outcome));
  }
  r.outcome = static_cast<StepOutcome>(outcome);
  r.spike.skips_left = *reader.ReadU32("skips_left");
  r.spike.events = *reader.ReadU32("events");
  const size_t zero_offset = reader.offset();
  if (const uint32_t zero = *reader.ReadU32("zero"); zero != 0) {
    return absl::DataLossError(
        absl::StrCat("step record: expected 0 at offset ", zero_offset, "; found ", zero));
  }
  r.spike.events_since = *reader.ReadU64("events_since");
  r.previous_chain = *Digest::FromBytes(*reader.ReadFixed("previous_chain", 32));
  return r;
}

Digest GenesisChain(const Digest& run_id, const Digest& parameters, const Digest& first_moment,
                    const Digest& second_moment, const Digest& cursor) {
  return Sha256({Span(kGenesisTag), run_id.bytes, parameters.bytes, first_moment.bytes,
                 second_moment.bytes, cursor.bytes});
}

Digest ChainAfter(const StepRecord& record) {
  const Digest digest = Sha256(Span(EncodeStepRecord(record)));
  return Sha256({Span(kChainTag), record.previous_chain.bytes, digest.bytes});
}

}  // namespace lockstep::audit
