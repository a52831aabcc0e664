// SPDX-License-Identifier: Apache-2.0
//
// What a run publishes of each step: the digests of everything that the step read and made, in a
// fixed layout of kStepRecordBytes bytes, and the chain that strings the records together. The last
// chain hash stands for the whole run. Offsets and a worked example: docs/step_record.md.
#ifndef LOCKSTEP_AUDIT_STEP_RECORD_H_
#define LOCKSTEP_AUDIT_STEP_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/sha256.h"

namespace lockstep::audit {

enum class StepOutcome : uint8_t {
  kUpdated = 0,
  kSkippedNonFinite = 1,  // loss or gradient norm is Inf or NaN
  kSkippedSpike = 2,      // the norm exceeded the recipe's
  kSkippedAfterSpike = 3  // one of the steps after either of those
};

// The spike protocol's memory, part of the training state.
struct SpikeState {
  uint32_t skips_left = 0;    // updates yet to be skipped
  uint32_t events = 0;        // events in the current count of the halt rule
  uint64_t events_since = 0;  // the step at which that count began
  bool operator==(const SpikeState&) const = default;
};

struct StepRecord {
  uint64_t step = 0;           // from 0
  uint64_t tokens_before = 0;  // consumed before the step
  uint64_t tokens = 0;         // that it consumes
  uint64_t updates = 0;        // of the parameters, this step's among them: Adam's time
  // Roots over the state after the step (audit/state_tree.h).
  Digest parameters;
  Digest first_moment;
  Digest second_moment;
  // What it made on the way.
  Digest gradient;    // reduced, after the clip
  Digest windows;     // the token ids
  Digest transcript;  // audit/transcript.h
  Digest cursor;      // of the data stream after the step
  // binary32 bits, so that a NaN keeps its place.
  float loss = 0;           // mean cross-entropy, nats a token
  float z_loss = 0;         // mean, before its coefficient
  float gradient_norm = 0;  // before the clip
  float learning_rate = 0;
  StepOutcome outcome = StepOutcome::kUpdated;
  SpikeState spike;  // after the step
  Digest previous_chain;

  // As bits: a NaN equals itself.
  bool operator==(const StepRecord& other) const;
};

inline constexpr size_t kStepRecordBytes = 336;

// Exactly kStepRecordBytes.
std::string EncodeStepRecord(const StepRecord& record);

// Accepts exactly what EncodeStepRecord writes. Untrusted input; DataLoss gives the offset.
absl::StatusOr<StepRecord> DecodeStepRecord(ByteSpan bytes);

// The chain before the first step: SHA-256(tag || run id || the roots of the initial state).
Digest GenesisChain(const Digest& run_id, const Digest& parameters, const Digest& first_moment,
                    const Digest& second_moment, const Digest& cursor);

// SHA-256(tag || previous_chain || SHA-256(record)).
Digest ChainAfter(const StepRecord& record);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_STEP_RECORD_H_
