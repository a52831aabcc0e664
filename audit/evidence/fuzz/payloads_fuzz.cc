// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: the payloads of log entries. The first byte chooses which reader gets the rest, as
// it is and as a change in a valid text. What is accepted is written back to the same bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "audit/evidence/log_entry.h"
#include "audit/testing/digests.h"
#include "audit/testing/small_log.h"
#include "base/logging.h"

namespace lockstep::audit {
namespace {

template <typename T>
void Check(const absl::StatusOr<T>& parsed, std::string (*encode)(const T&),
           absl::string_view text) {
  if (parsed.ok()) LOCKSTEP_CHECK(encode(*parsed) == text);
}

void CheckKind(int kind, absl::string_view text) {
  switch (kind) {
    case 0:
      return Check(ParseAttestation(text), EncodeAttestation, text);
    case 1:
      return Check(ParseKeyEvent(text), EncodeKeyEvent, text);
    case 2:
      return Check(ParseRunRegistration(text), EncodeRunRegistration, text);
    case 3:
      return Check(ParseCheckpointAnnouncement(text), EncodeCheckpointAnnouncement, text);
    case 4:
      return Check(ParseOpening(text), EncodeOpening, text);
    case 5:
      return Check(ParseDispute(text), EncodeDispute, text);
    default:
      return Check(ParseEvaluation(text), EncodeEvaluation, text);
  }
}

// A valid text of each kind.
std::vector<std::string> Valid() {
  const RunRegistration run = TestRegistration();
  const StepRecord record = TestRecord(run, nullptr);
  StepRecord other = record;
  other.cursor = Filled(1);
  const Digest id = Filled(2);
  const Attestation attestation = TestAttestation(id, record, TestPublicKey(3), &other);
  CheckpointAnnouncement checkpoint;
  for (const char* name : kCheckpointFiles) {
    checkpoint.files.push_back({.name = name, .bytes = 1, .sha256 = id});
  }
  const Ed25519Signature challenge{};
  return {
      EncodeAttestation(attestation),
      EncodeKeyEvent(OperatorEvent{.operator_key = TestPublicKey(1),
                                   .revocation_key = TestPublicKey(2),
                                   .name = "a",
                                   .contact = "b"}),
      EncodeRunRegistration(run),
      EncodeCheckpointAnnouncement(checkpoint),
      EncodeOpening(MakeOpening(id, challenge, id, TestPublicKey(3), TestTranscript(0), 1).value()),
      EncodeDispute({.run_id = id, .evidence = {id, std::string("x")}}),
      EncodeEvaluation({.run_id = id,
                        .files = {{.name = "a",
                                   .sha256 = id,
                                   .documents = 1,
                                   .bytes = 2,
                                   .tokens = 3,
                                   .nats_per_token = 0.5}}})};
}

}  // namespace
}  // namespace lockstep::audit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::audit;
  static const auto* const valid = new std::vector<std::string>(Valid());
  if (size < 3) return 0;
  const int kind = data[0] % 7;
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  CheckKind(kind, input.substr(1));
  // The input over a part of the valid text, or put into it.
  std::string text = (*valid)[kind];
  const size_t at = (data[1] | size_t{data[2]} << 8) % text.size();
  const absl::string_view piece = input.substr(3);
  text.replace(at, data[0] >= 128 ? std::min(piece.size(), text.size() - at) : 0,
               std::string(piece));
  CheckKind(kind, text);
  return 0;
}
