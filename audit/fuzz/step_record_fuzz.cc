// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: step records, and logs of them. What is accepted is written back to the same bytes;
// a log's records follow each other.
#include <cstddef>
#include <cstdint>
#include <string>

#include "audit/step_log.h"
#include "audit/step_record.h"
#include "base/bytes.h"
#include "base/logging.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::audit;
  const ByteSpan input(data, size);
  if (const auto record = DecodeStepRecord(input); record.ok()) {
    LOCKSTEP_CHECK(EncodeStepRecord(*record) == AsChars(input));
  }
  if (const auto records = ParseStepLog(input); records.ok()) {
    std::string bytes;
    for (size_t i = 0; i < records->size(); ++i) {
      bytes += EncodeStepRecord((*records)[i]);
      if (i > 0) LOCKSTEP_CHECK((*records)[i].previous_chain == ChainAfter((*records)[i - 1]));
    }
    LOCKSTEP_CHECK(bytes == AsChars(input));
  }
  // A record of these bytes behind a right head, so that every field is reached.
  StepRecord r;
  std::string bytes = EncodeStepRecord(r).substr(0, 8);
  bytes.append(reinterpret_cast<const char*>(data), size);
  bytes.resize(kStepRecordBytes);
  if (const auto record = DecodeStepRecord(AsBytes(bytes)); record.ok()) {
    LOCKSTEP_CHECK(EncodeStepRecord(*record) == bytes);
    StepRecord next = *record;
    next.step += 1;
    next.previous_chain = ChainAfter(*record);
    const std::string log = bytes + EncodeStepRecord(next);
    LOCKSTEP_CHECK(ParseStepLog(AsBytes(log)).ok());
  }
  return 0;
}
