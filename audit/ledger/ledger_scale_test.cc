// SPDX-License-Identifier: Apache-2.0
//
// A run with three attestations a step, for how much memory and time its ledger takes. 4,000 steps;
// LOCKSTEP_LEDGER_STEPS=80957 makes it the published run's size (and takes a minute).
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "audit/evidence/dsse.h"
#include "audit/ledger/ledger.h"
#include "audit/testing/small_log.h"
#include "base/logging.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

uint64_t Steps() {
  uint64_t steps = 4000;
  const char* const text = std::getenv("LOCKSTEP_LEDGER_STEPS");
  if (text != nullptr) LOCKSTEP_CHECK(absl::SimpleAtoi(text, &steps));
  return steps;
}

// What a key has signed, without signing: the ledger is told to trust signatures here.
std::string Unsigned(const char* type, std::string payload, int key) {
  return EncodeDsse({.payload_type = type,
                     .payload = std::move(payload),
                     .signatures = {{.key_id = TestPublicKey(key).Id().ToHex(),
                                     .bytes = std::string(kEd25519SignatureBytes, 's')}}});
}

size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(LedgerScale, AWholeRunIsSmall) {
  const uint64_t steps = Steps();
  SmallLog log({.operators = 3, .backends = 1, .openings = 1});
  log.MakeLong();
  for (int n = 0; n < 3; ++n) log.AddOperator(n);
  log.AddRun(0);
  Ledger ledger(TestPublicKey(kLogKey));
  uint64_t index = 0;
  for (const std::string& entry : log.entries()) {
    ASSERT_THAT(ledger.Apply(index++, entry, Signatures::kTrust), IsOk());
  }
  const size_t before = HeapBytes();
  using Clock = std::chrono::steady_clock;
  Clock::duration applying{};
  const auto apply = [&](const char* type, std::string payload, int key) {
    const std::string entry = Unsigned(type, std::move(payload), key);
    const auto start = Clock::now();
    const auto outcome = ledger.Apply(index++, entry, Signatures::kTrust);
    applying += Clock::now() - start;
    ASSERT_THAT(outcome, IsOk());
  };
  StepRecord record;
  const Digest run_id = log.run_id();
  for (uint64_t step = 0; step < steps; ++step) {
    record = TestRecord(log.registration(), step == 0 ? nullptr : &record);
    apply(kRecordPayloadType, ToString(run_id.bytes) + EncodeStepRecord(record), kTrainerKey);
    for (int n = 0; n < 3; ++n) {
      const Attestation a = TestAttestation(run_id, record, TestPublicKey(WorkerKey(n)));
      apply(kAttestationPayloadType, EncodeAttestation(a), WorkerKey(n));
    }
  }
  // None has opened anything yet, so everything that is waited for is in it too: the most there is.
  const size_t bytes = HeapBytes() - before;
  EXPECT_LT(bytes, steps * 3000) << "with the slack of growing tables";
  const RunLedger& run = ledger.runs()[0];
  const auto start = Clock::now();
  const std::vector<StepState> states(run.states().begin(), run.states().end());
  const auto copied = Clock::now();
  const auto tallies = ledger.TalliesUnder(
      run, {.quorum = {.operators = 3, .backends = 1, .openings = 0}, .trusted_operators = {}});
  const auto tallied = Clock::now();
  EXPECT_EQ(states.size(), steps);
  EXPECT_TRUE(std::all_of(tallies.begin(), tallies.end(),
                          [](const StepTally& tally) { return tally.operators == 3; }));
  const auto us = [](auto duration) {
    return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  };
  LOCKSTEP_LOG_INFO(
      "{} steps, {} attestations: {:.1f} MB; {:.1f} us an entry, read and applied; states in {} "
      "us, "
      "tallies in {} us",
      steps, run.attestations().size(), static_cast<double>(bytes) / 1e6,
      static_cast<double>(us(applying)) / static_cast<double>(4 * steps), us(copied - start),
      us(tallied - copied));
}

}  // namespace
}  // namespace lockstep::audit
