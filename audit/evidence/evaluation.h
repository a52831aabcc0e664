// SPDX-License-Identifier: Apache-2.0
//
// How well a state of a run predicts texts that it was not trained on: what `lockstep eval` found
// (docs/evaluation.md). Signed by the trainer, and nobody's word but the trainer's: no quorum
// stands behind it. Whoever has the state and the texts can compute the same numbers again, to the
// last bit. Format: docs/attestation.md.
#ifndef LOCKSTEP_AUDIT_EVIDENCE_EVALUATION_H_
#define LOCKSTEP_AUDIT_EVIDENCE_EVALUATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"

namespace lockstep::audit {

inline constexpr char kEvaluationPayloadType[] = "application/vnd.lockstep.evaluation.v1+json";
inline constexpr size_t kHeldOutFilesMax = 16;
inline constexpr double kNatsPerTokenMax = 1e6;  // far more than any model is wrong by

struct HeldOutFile {
  std::string name;  // for people
  Digest sha256;     // of the file, whatever part of it was taken
  int64_t documents = 0;
  int64_t bytes = 0;   // of the texts that were taken
  int64_t tokens = 0;  // that were predicted
  double nats_per_token = 0;
  bool operator==(const HeldOutFile&) const = default;
};

struct Evaluation {
  Digest run_id;
  uint64_t next_step = 0;  // the step that goes on from the state
  Digest chain;            // before that step
  int64_t limit = 0;       // documents taken of each file at most; 0: all
  std::vector<HeldOutFile> files;
  bool operator==(const Evaluation&) const = default;
};

// Over all files: the sum of the tokens' losses by their number, and by the texts' bytes.
double NatsPerToken(const Evaluation& evaluation);
double BitsPerByte(const Evaluation& evaluation);

// What was asked: `limit` and the digests of the files, in their order. Evaluations of one run with
// the same texts compare.
Digest TextsOf(const Evaluation& evaluation);

std::string EncodeEvaluation(const Evaluation& evaluation);

// Accepts exactly what EncodeEvaluation writes of a valid one. Untrusted input; DataLoss.
absl::StatusOr<Evaluation> ParseEvaluation(absl::string_view text);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_EVIDENCE_EVALUATION_H_
