// SPDX-License-Identifier: Apache-2.0
//
// What counts and what does not: records, attestations, openings, disputes, quorums, and those who
// cheat. Every refusal is shown to change nothing.
#include "audit/ledger/ledger.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "audit/ledger/refusal.h"
#include "audit/testing/digests.h"
#include "audit/testing/small_log.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

constexpr Quorum kTwo = {.operators = 2, .backends = 1, .openings = 1};

// All that a ledger says, so that two can be compared.
std::string Everything(const Ledger& ledger) {
  std::string all = absl::StrCat("next ", ledger.next_index());
  for (const KeyFacts& key : ledger.keys().keys()) {
    absl::StrAppend(&all, "\nkey ", key.key.ToHex(), " ", static_cast<int>(key.role), " ",
                    key.operator_id, " ", key.since, " ", key.until, " ", key.hardware);
  }
  for (const OperatorFacts& facts : ledger.keys().operators()) {
    absl::StrAppend(&all, "\noperator ", facts.key_id, " ", facts.name, " ", facts.until);
  }
  for (const std::string& backend : ledger.backends()) absl::StrAppend(&all, "\n", backend);
  for (const DisputeFacts& d : ledger.disputes()) {
    absl::StrAppend(&all, "\ndispute ", d.log_index, " ", d.step, " ", DisputeReasonName(d.reason));
  }
  for (const RunLedger& run : ledger.runs()) {
    absl::StrAppend(&all, "\nrun ", run.run_id().ToHex(), " ", run.chain().ToHex(), " ",
                    run.trainer_key_id(), " ", run.records().size(), " ", run.checkpoints().size(),
                    " ", run.second_records().size());
    for (const StepState state : run.states()) absl::StrAppend(&all, " ", StepStateName(state));
    for (const AttestationFacts& a : run.attestations()) {
      absl::StrAppend(&all, "\n  ", a.log_index, " ", a.key_id, " ", a.step_offset, " ", a.previous,
                      " ", a.backend_id, " ", static_cast<int>(a.standing), " ", a.openings);
    }
  }
  return all;
}

// The reason for which the ledger refuses an entry; nothing of it changes. Check says the same.
std::optional<Refusal> Why(SmallLog& log, const std::string& entry) {
  const std::string before = Everything(log.ledger());
  const auto parsed = LogEntry::Parse(entry);
  std::optional<Refusal> checked = Refusal::kMalformed;
  if (parsed.ok()) checked = RefusalOf(log.ledger().Check(*parsed, Signatures::kVerify));
  const std::optional<Refusal> why = RefusalOf(log.Append(entry).status());
  EXPECT_EQ(why, checked);
  EXPECT_EQ(Everything(log.ledger()), before);
  return why;
}
std::optional<Refusal> Why(SmallLog& log, const EntryPayload& payload,
                           const std::vector<int>& keys) {
  return Why(log, TestEntry(payload, keys));
}

PublishedRecord Published(const SmallLog& log, const StepRecord& record) {
  return {.run_id = log.run_id(), .record = record};
}

SmallLog LogOfThree(Quorum quorum = kTwo, int steps = 3) {
  SmallLog log(quorum);
  for (int n = 0; n < 3; ++n) log.AddOperator(n, 2);
  log.AddRun(steps);
  return log;
}

TEST(Ledger, FollowsAStepFromUnauditedToConfirmed) {
  SmallLog log = LogOfThree();
  EXPECT_THAT(log.run().states(),
              ElementsAre(StepState::kUnaudited, StepState::kUnaudited, StepState::kUnaudited));
  const Attestation a = log.MatchOf(1, WorkerKey(0));
  const std::string entry = TestEntry(a, {WorkerKey(0)});
  const auto attested = log.Append(entry);
  ASSERT_THAT(attested, IsOk());
  EXPECT_EQ(attested->kind, EntryKind::kAttestation);
  EXPECT_EQ(attested->step, 1u);
  EXPECT_EQ(attested->attestation, 0u);
  EXPECT_EQ(attested->after, StepState::kUnaudited);  // nothing opened yet
  const auto opened = log.Append(TestOpening(a, entry, WorkerKey(0)), {WorkerKey(0)});
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->before, StepState::kUnaudited);
  EXPECT_EQ(opened->after, StepState::kProvisional);
  log.Attest(1, WorkerKey(1), "arm-neon");
  EXPECT_THAT(log.run().states(),
              ElementsAre(StepState::kUnaudited, StepState::kConfirmed, StepState::kUnaudited));
  const StepTally tally =
      log.ledger().TallyOf(log.run(), 1, {.quorum = kTwo, .trusted_operators = {}});
  EXPECT_EQ(tally, (StepTally{.operators = 2, .backends = 2, .matches = 2}));
  EXPECT_THAT(log.run().AttestationsOf(1), ElementsAre(0, 1));
  EXPECT_THAT(log.run().AttestationsOf(9), ElementsAre());
  EXPECT_THAT(log.ledger().backends(), ElementsAre("x86-avx2", "arm-neon"));
}

TEST(Ledger, OperatorsAreCountedAndNotTheirKeys) {
  SmallLog log = LogOfThree();
  log.Attest(0, WorkerKey(0, 0));
  log.Attest(0, WorkerKey(0, 1));
  EXPECT_EQ(log.StateOfStep(0), StepState::kProvisional);
  log.Attest(0, WorkerKey(1));
  EXPECT_EQ(log.StateOfStep(0), StepState::kConfirmed);
}

TEST(Ledger, AThousandKeysOfOneOperatorAreOne) {
  SmallLog log(Quorum{.operators = 2, .backends = 1, .openings = 0});
  log.AddRun(1);
  log.AddOperator(0, 300);
  for (int w = 0; w < 300; ++w) log.Attest(0, WorkerKey(0, w));
  EXPECT_EQ(log.StateOfStep(0), StepState::kProvisional);
  const StepTally tally =
      log.ledger().TallyOf(log.run(), 0, {.quorum = kTwo, .trusted_operators = {}});
  EXPECT_EQ(tally.awaiting_openings, 300);
  EXPECT_EQ(tally.operators, 0);
}

TEST(Ledger, BackendsAreCountedWhereTheRunAsksForThem) {
  SmallLog log = LogOfThree({.operators = 2, .backends = 2, .openings = 0});
  log.Attest(0, WorkerKey(0), "x86-avx2");
  log.Attest(0, WorkerKey(1), "x86-avx2");
  EXPECT_EQ(log.StateOfStep(0), StepState::kProvisional);
  log.Attest(0, WorkerKey(2), "reference");
  EXPECT_EQ(log.StateOfStep(0), StepState::kConfirmed);
}

TEST(Ledger, TheTrainersOwnOperatorNeverCounts) {
  SmallLog log = LogOfThree({.operators = 1, .backends = 1, .openings = 0});
  log.Attest(0, WorkerKey(0));
  log.Attest(1, WorkerKey(1));
  EXPECT_EQ(log.StateOfStep(0), StepState::kConfirmed);
  // Found out later, it is taken back.
  EXPECT_THAT(log.Append(WorkerEvent{.worker_key = TestPublicKey(kTrainerKey),
                                     .operator_key = TestPublicKey(OperatorKey(0)),
                                     .hardware = "the trainer"},
                         {kTrainerKey, OperatorKey(0)}),
              IsOk());
  EXPECT_EQ(log.StateOfStep(0), StepState::kUnaudited);
  EXPECT_EQ(log.StateOfStep(1), StepState::kConfirmed);
  log.Attest(2, WorkerKey(0, 1));
  EXPECT_EQ(log.StateOfStep(2), StepState::kUnaudited);
  // Its word that something is wrong counts all the same.
  EXPECT_THAT(log.Append(log.MismatchOf(1, WorkerKey(0)), {WorkerKey(0)}), IsOk());
  EXPECT_EQ(log.StateOfStep(1), StepState::kDisputed);
}

TEST(Ledger, RecordsFollowEachOther) {
  SmallLog log;
  log.AddRun(0);
  StepRecord record = log.NextRecord();
  const auto refuses = [&](auto change, Refusal refusal) {
    StepRecord bad = record;
    change(bad);
    EXPECT_THAT(Why(log, Published(log, bad), {kTrainerKey}), Optional(refusal));
  };
  for (int i = 0; i < 3; ++i) {
    record = log.NextRecord();
    refuses([](StepRecord& r) { r.step += 1; }, Refusal::kChainBreak);
    refuses([](StepRecord& r) { r.step = std::numeric_limits<uint64_t>::max(); },
            Refusal::kChainBreak);
    refuses([](StepRecord& r) { r.previous_chain.bytes[5] ^= 1; }, Refusal::kChainBreak);
    refuses([](StepRecord& r) { r.tokens_before += 1; }, Refusal::kChainBreak);
    refuses([](StepRecord& r) { r.tokens -= 1; }, Refusal::kChainBreak);
    EXPECT_THAT(Why(log, Published(log, record), {OperatorKey(0)}),
                Optional(Refusal::kWrongSignature));
    EXPECT_THAT(log.Append(Published(log, record), {kTrainerKey}), IsOk());
    EXPECT_THAT(Why(log, Published(log, record), {kTrainerKey}), Optional(Refusal::kDuplicate));
    EXPECT_EQ(log.run().ChainBefore(i + 1), ChainAfter(record));
  }
  EXPECT_EQ(log.run().ChainBefore(4), std::nullopt);
  EXPECT_THAT(Why(log, PublishedRecord{.run_id = Filled(1), .record = record}, {kTrainerKey}),
              Optional(Refusal::kUnknownRun));
}

TEST(Ledger, ARunEndsWithItsLastPhase) {
  SmallLog log;
  const int64_t tokens = TestRecord(log.registration(), nullptr).tokens;
  log.registration().manifest.batch.resize(1);
  log.registration().manifest.batch[0].until_tokens = tokens + 1;
  log.AddRun(2);
  EXPECT_THAT(Why(log, Published(log, log.NextRecord()), {kTrainerKey}),
              Optional(Refusal::kChainBreak));
}

TEST(Ledger, ARewrittenHistoryIsKeptAndNeverBelieved) {
  SmallLog log = LogOfThree();
  log.Attest(1, WorkerKey(0));
  const StepRecord first = *log.run().FindRecord(1);
  const StepRecord other = TestRecord(log.registration(), log.run().FindRecord(0), " rewritten");
  const Digest chain = log.run().chain();
  const std::string entry = TestEntry(Published(log, other), {kTrainerKey});
  const auto outcome = log.Append(entry);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_TRUE(outcome->second_history);
  EXPECT_EQ(outcome->before, StepState::kProvisional);
  EXPECT_EQ(outcome->after, StepState::kDisputed);
  EXPECT_EQ(*log.run().FindRecord(1), first);
  EXPECT_EQ(log.run().chain(), chain);
  EXPECT_EQ(log.run().FindSecondRecord(1)->record, other);
  EXPECT_THAT(Why(log, entry), Optional(Refusal::kDuplicate));
  const StepRecord third = TestRecord(log.registration(), log.run().FindRecord(0), " again");
  EXPECT_THAT(Why(log, Published(log, third), {kTrainerKey}), Optional(Refusal::kSecondHistory));
  // Nobody else can make one up.
  const StepRecord forged = TestRecord(log.registration(), log.run().FindRecord(1), " forged");
  EXPECT_THAT(Why(log, Published(log, forged), {WorkerKey(0)}), Optional(Refusal::kWrongSignature));
  // Attestations of the second history are not taken; the coordinator's word for it needs it.
  EXPECT_THAT(
      Why(log, TestAttestation(log.run_id(), other, TestPublicKey(WorkerKey(1))), {WorkerKey(1)}),
      Optional(Refusal::kNotThePublishedRecord));
  Dispute dispute = {.run_id = log.run_id(),
                     .step = 1,
                     .reason = DisputeReason::kSecondHistory,
                     .evidence = {MerkleLeafHash(AsBytes(entry))}};
  EXPECT_THAT(log.Append(dispute, {kLogKey}), IsOk());
  EXPECT_THAT(Why(log, dispute, {kLogKey}), Optional(Refusal::kDuplicate));
  dispute.step = 0;
  EXPECT_THAT(Why(log, dispute, {kLogKey}), Optional(Refusal::kEvidenceMissing));
}

TEST(Ledger, RunsAreRegisteredByTheirTrainer) {
  SmallLog log;
  EXPECT_THAT(Why(log, log.registration(), {9}), Optional(Refusal::kWrongSignature));
  log.AddRun(1);
  EXPECT_THAT(Why(log, log.registration(), {kTrainerKey}), Optional(Refusal::kDuplicate));
  RunRegistration other = log.registration();
  other.trainer_key = TestPublicKey(9);
  EXPECT_THAT(Why(log, other, {9}), Optional(Refusal::kDuplicate));
}

TEST(Ledger, ASegmentGoesOnFromItsParent) {
  SmallLog log;
  log.AddRun(2);
  RunRegistration segment = log.registration();
  segment.genesis.reset();
  const uint64_t tokens = log.NextRecord().tokens_before;
  segment.manifest.name = "segment";
  segment.manifest.parent = ParentSegment{.run_id = log.run_id(),
                                          .step = 2,
                                          .tokens = static_cast<int64_t>(tokens),
                                          .chain = Filled(1)};
  EXPECT_THAT(Why(log, segment, {kTrainerKey}), Optional(Refusal::kChainBreak));
  segment.manifest.parent->chain = log.run().chain();
  segment.manifest.parent->step = 3;
  EXPECT_THAT(Why(log, segment, {kTrainerKey}), Optional(Refusal::kChainBreak));
  segment.manifest.parent->step = 2;
  ASSERT_THAT(log.Append(segment, {kTrainerKey}), IsOk());
  StepRecord record = TestRecord(segment, nullptr);
  const Digest run_id = RunIdOf(segment.manifest);
  EXPECT_THAT(Why(log, PublishedRecord{.run_id = run_id, .record = record}, {kTrainerKey}),
              Optional(Refusal::kChainBreak));  // consumed nothing before
  record.tokens_before = tokens;
  ASSERT_THAT(log.Append(PublishedRecord{.run_id = run_id, .record = record}, {kTrainerKey}),
              IsOk());
  const RunLedger& run = *log.ledger().FindRun(run_id);
  EXPECT_EQ(run.first_step(), 2u);
  EXPECT_EQ(run.FindRecord(1), nullptr);
  EXPECT_EQ(*run.FindRecord(2), record);
  EXPECT_EQ(run.ChainBefore(1), std::nullopt);
}

TEST(Ledger, ATrainersKeyMayBeRotatedAndRevoked) {
  SmallLog log;
  log.AddRun(1);
  ASSERT_THAT(
      log.Append(RotateEvent{.old_key = TestPublicKey(kTrainerKey), .new_key = TestPublicKey(50)},
                 {kTrainerKey, 50}),
      IsOk());
  EXPECT_THAT(Why(log, Published(log, log.NextRecord()), {kTrainerKey}),
              Optional(Refusal::kWrongSignature));
  ASSERT_THAT(log.Append(Published(log, log.NextRecord()), {50}), IsOk());
  ASSERT_THAT(log.Append(RevokeEvent{.key = TestPublicKey(50), .reason = "stolen"}, {50}), IsOk());
  EXPECT_THAT(Why(log, Published(log, log.NextRecord()), {50}), Optional(Refusal::kRevokedKey));
}

// The cheats: each a replayed, copied or made-up word.
TEST(Ledger, AttestationsAreTheSignersOwn) {
  SmallLog log = LogOfThree();
  const Attestation good = log.MatchOf(1, WorkerKey(0));
  EXPECT_THAT(Why(log, good, {9}), Optional(Refusal::kUnknownKey));
  EXPECT_THAT(Why(log, good, {OperatorKey(0)}), Optional(Refusal::kWrongRole));
  EXPECT_THAT(Why(log, good, {kTrainerKey}), Optional(Refusal::kWrongRole));
  EXPECT_THAT(Why(log, good, {WorkerKey(0), WorkerKey(1)}), Optional(Refusal::kMalformed));
  // Another's, with the own key's id on it.
  std::string entry = TestEntry(good, {WorkerKey(0)});
  const std::string id = TestPublicKey(WorkerKey(0)).Id().ToHex();
  entry.replace(entry.find(id), id.size(), TestPublicKey(WorkerKey(1)).Id().ToHex());
  EXPECT_THAT(Why(log, entry), Optional(Refusal::kWrongSignature));
  EXPECT_THAT(Why(log, "garbage"), Optional(Refusal::kMalformed));
  Attestation other_run = good;
  other_run.run_id = Filled(1);
  EXPECT_THAT(Why(log, other_run, {WorkerKey(0)}), Optional(Refusal::kUnknownRun));
  Attestation later = good;
  later.step = 7;
  EXPECT_THAT(Why(log, later, {WorkerKey(0)}), Optional(Refusal::kUnknownStep));
  Attestation other_step = good;  // true of step 1, said of step 2
  other_step.step = 2;
  EXPECT_THAT(Why(log, other_step, {WorkerKey(0)}), Optional(Refusal::kNotThePublishedRecord));
  // One a key and step, the first one.
  EXPECT_THAT(log.Append(good, {WorkerKey(0)}), IsOk());
  Attestation again = good;
  again.lease_id = "another-lease";
  EXPECT_THAT(Why(log, again, {WorkerKey(0)}), Optional(Refusal::kDuplicate));
  EXPECT_THAT(Why(log, log.MismatchOf(1, WorkerKey(0)), {WorkerKey(0)}),
              Optional(Refusal::kDuplicate));
}

TEST(Ledger, AVerdictIsWhatTheValuesSay) {
  SmallLog log = LogOfThree();
  const Attestation good = log.MatchOf(0, WorkerKey(0));
  Attestation bad = good;
  bad.computed_chain = Filled(1);
  EXPECT_THAT(Why(log, bad, {WorkerKey(0)}), Optional(Refusal::kFalseVerdict));
  bad = good;
  bad.roots.cursor = Filled(1);
  EXPECT_THAT(Why(log, bad, {WorkerKey(0)}), Optional(Refusal::kFalseVerdict));
  bad = good;
  bad.record = Filled(1);
  EXPECT_THAT(Why(log, bad, {WorkerKey(0)}), Optional(Refusal::kNotThePublishedRecord));
  bad = good;
  bad.from_chain = Filled(1);
  EXPECT_THAT(Why(log, bad, {WorkerKey(0)}), Optional(Refusal::kNotThePublishedRecord));
  bad = good;
  bad.engine.numerics = "lockstep-numerics-2";
  EXPECT_THAT(Why(log, bad, {WorkerKey(0)}), Optional(Refusal::kWrongNumerics));
}

TEST(Ledger, AMismatchDisputesTheStepAndBothHashesStay) {
  SmallLog log = LogOfThree();
  log.Attest(1, WorkerKey(0));
  const Attestation a = log.MismatchOf(1, WorkerKey(1));
  const std::string entry = TestEntry(a, {WorkerKey(1)});
  const auto outcome = log.Append(entry);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->after, StepState::kDisputed);
  const MismatchFacts* facts = log.run().FindMismatch(outcome->attestation);
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->computed, *a.computed_record);
  EXPECT_EQ(facts->difference.field, "parameters");
  EXPECT_EQ(log.run().FindMismatch(0), nullptr);
  log.Attest(1, WorkerKey(2));
  EXPECT_EQ(log.StateOfStep(1), StepState::kDisputed);
  Dispute dispute = {.run_id = log.run_id(),
                     .step = 1,
                     .reason = DisputeReason::kMismatch,
                     .evidence = {MerkleLeafHash(AsBytes(entry))}};
  EXPECT_THAT(Why(log, dispute, {WorkerKey(1)}), Optional(Refusal::kWrongSignature));
  EXPECT_THAT(log.Append(dispute, {kLogKey}), IsOk());
  ASSERT_EQ(log.ledger().disputes().size(), 1u);
  dispute.step = 2;
  EXPECT_THAT(Why(log, dispute, {kLogKey}), Optional(Refusal::kEvidenceMissing));
  dispute.step = 8;
  EXPECT_THAT(Why(log, dispute, {kLogKey}), Optional(Refusal::kUnknownStep));
  dispute.step = 1;
  dispute.evidence = {Filled(3), std::string("an envelope")};
  EXPECT_THAT(Why(log, dispute, {kLogKey}), Optional(Refusal::kEvidenceMissing));
}

TEST(Ledger, ARevokedKeySaysNothingMoreAndWhatItSaidStays) {
  SmallLog log = LogOfThree();
  log.Attest(0, WorkerKey(0));
  log.Attest(0, WorkerKey(1));
  const Attestation pending = log.MatchOf(1, WorkerKey(0));
  const std::string entry = TestEntry(pending, {WorkerKey(0)});
  ASSERT_THAT(log.Append(entry), IsOk());
  ASSERT_THAT(log.Append(RevokeEvent{.key = TestPublicKey(WorkerKey(0)), .reason = "stolen"},
                         {RevocationKey(0)}),
              IsOk());
  EXPECT_EQ(log.StateOfStep(0), StepState::kConfirmed);
  EXPECT_THAT(Why(log, log.MatchOf(2, WorkerKey(0)), {WorkerKey(0)}),
              Optional(Refusal::kRevokedKey));
  EXPECT_THAT(Why(log, TestOpening(pending, entry, WorkerKey(0)), {WorkerKey(0)}),
              Optional(Refusal::kRevokedKey));
}

TEST(Ledger, OpeningsAreThoseThatWereAskedFor) {
  SmallLog log = LogOfThree({.operators = 1, .backends = 1, .openings = 3});
  const Attestation a = log.MatchOf(0, WorkerKey(0));
  const std::string entry = TestEntry(a, {WorkerKey(0)});
  const Opening first = TestOpening(a, entry, WorkerKey(0), 0, 3);
  EXPECT_THAT(Why(log, first, {WorkerKey(0)}), Optional(Refusal::kUnknownAttestation));
  ASSERT_THAT(log.Append(entry), IsOk());
  EXPECT_THAT(Why(log, first, {WorkerKey(1)}), Optional(Refusal::kWrongSignature));
  Opening bad = first;
  bad.challenge[3] ^= 1;
  EXPECT_THAT(Why(log, bad, {WorkerKey(0)}), Optional(Refusal::kWrongChallenge));
  bad = first;
  bad.challenge = MakeChallenge(TestKey(WorkerKey(0)), first.attestation);  // its own
  EXPECT_THAT(Why(log, bad, {WorkerKey(0)}), Optional(Refusal::kWrongChallenge));
  // A leaf that was not asked for.
  const std::vector<uint64_t> asked = ChallengedIndices(first.challenge, 8, 3);
  uint64_t other = 0;
  while (std::find(asked.begin(), asked.end(), other) != asked.end()) ++other;
  bad = MakeOpening(first.attestation, first.challenge, a.nonce, TestPublicKey(WorkerKey(0)),
                    TestTranscript(0), other)
            .value();
  EXPECT_THAT(Why(log, bad, {WorkerKey(0)}), Optional(Refusal::kOpeningNotAsked));
  bad = first;
  bad.commitment_proof[0].bytes[0] ^= 1;
  EXPECT_THAT(Why(log, bad, {WorkerKey(0)}), Optional(Refusal::kOpeningWrong));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(log.StateOfStep(0), StepState::kUnaudited);
    const Opening opening = TestOpening(a, entry, WorkerKey(0), i, 3);
    EXPECT_THAT(log.Append(opening, {WorkerKey(0)}), IsOk());
    EXPECT_THAT(Why(log, opening, {WorkerKey(0)}), Optional(Refusal::kDuplicate));
  }
  EXPECT_EQ(log.StateOfStep(0), StepState::kConfirmed);
}

TEST(Ledger, MismatchesAndRunsWithoutOpeningsOpenNothing) {
  SmallLog log = LogOfThree();
  const Attestation a = log.MismatchOf(0, WorkerKey(0));
  const std::string entry = TestEntry(a, {WorkerKey(0)});
  ASSERT_THAT(log.Append(entry), IsOk());
  EXPECT_THAT(Why(log, TestOpening(a, entry, WorkerKey(0)), {WorkerKey(0)}),
              Optional(Refusal::kOpeningNotAsked));
  SmallLog none = LogOfThree({.operators = 1, .backends = 1, .openings = 0});
  const Attestation b = none.MatchOf(0, WorkerKey(0));
  const std::string other = TestEntry(b, {WorkerKey(0)});
  ASSERT_THAT(none.Append(other), IsOk());
  EXPECT_EQ(none.StateOfStep(0), StepState::kConfirmed);
  EXPECT_THAT(Why(none, TestOpening(b, other, WorkerKey(0)), {WorkerKey(0)}),
              Optional(Refusal::kOpeningNotAsked));
}

// Who copies the published hashes can commit to something, and never open it.
TEST(Ledger, ACopyistsAttestationNeverCounts) {
  SmallLog log = LogOfThree({.operators = 1, .backends = 1, .openings = 1});
  Attestation copied = log.MatchOf(0, WorkerKey(0));
  std::vector<TranscriptLeaf> made_up = TestTranscript(99);
  copied.openings_digest = OpeningsDigest(copied.nonce, TestPublicKey(WorkerKey(0)), made_up);
  const std::string entry = TestEntry(copied, {WorkerKey(0)});
  ASSERT_THAT(log.Append(entry), IsOk());
  EXPECT_EQ(log.StateOfStep(0), StepState::kUnaudited);
  const Digest leaf_hash = MerkleLeafHash(AsBytes(entry));
  const Ed25519Signature challenge = MakeChallenge(TestKey(kLogKey), leaf_hash);
  const uint64_t index = ChallengedIndices(challenge, 8, 1)[0];
  const Opening wrong =
      MakeOpening(leaf_hash, challenge, copied.nonce, TestPublicKey(WorkerKey(0)), made_up, index)
          .value();
  const std::string wrong_entry = TestEntry(wrong, {WorkerKey(0)});
  EXPECT_THAT(Why(log, wrong_entry), Optional(Refusal::kOpeningWrong));
  // An honest worker's opening, copied from the log, is under another commitment.
  log.Attest(0, WorkerKey(1));
  EXPECT_EQ(log.StateOfStep(0), StepState::kConfirmed);
  const Opening theirs = MakeOpening(leaf_hash, challenge, copied.nonce,
                                     TestPublicKey(WorkerKey(1)), TestTranscript(0), index)
                             .value();
  EXPECT_THAT(Why(log, theirs, {WorkerKey(0)}), Optional(Refusal::kOpeningWrong));
  // The wrong opening, signed by the copyist, is evidence that voids its attestation, and says
  // nothing about the step.
  Dispute dispute = {.run_id = log.run_id(),
                     .step = 0,
                     .reason = DisputeReason::kBadOpening,
                     .evidence = {std::string("x"), wrong_entry}};
  EXPECT_THAT(Why(log, dispute, {WorkerKey(1)}), Optional(Refusal::kWrongSignature));
  Dispute elsewhere = dispute;
  elsewhere.step = 1;
  EXPECT_THAT(Why(log, elsewhere, {kLogKey}), Optional(Refusal::kEvidenceMissing));
  Dispute forged = dispute;
  forged.evidence = {TestEntry(wrong, {WorkerKey(2)})};
  EXPECT_THAT(Why(log, forged, {kLogKey}), Optional(Refusal::kEvidenceMissing));
  EXPECT_THAT(log.Append(dispute, {kLogKey}), IsOk());
  EXPECT_EQ(log.StateOfStep(0), StepState::kConfirmed);
  const StepTally tally = log.ledger().TallyOf(
      log.run(), 0, {.quorum = log.run().registration().quorum, .trusted_operators = {}});
  EXPECT_EQ(tally.voided, 1);
  EXPECT_EQ(tally.matches, 1);
  EXPECT_THAT(Why(log, wrong_entry), Optional(Refusal::kOpeningNotAsked));
  EXPECT_THAT(Why(log, log.MatchOf(0, WorkerKey(0)), {WorkerKey(0)}),
              Optional(Refusal::kDuplicate));
}

TEST(Ledger, ARightOpeningIsNoEvidence) {
  SmallLog log = LogOfThree({.operators = 1, .backends = 1, .openings = 1});
  const Attestation a = log.MatchOf(0, WorkerKey(0));
  const std::string entry = TestEntry(a, {WorkerKey(0)});
  ASSERT_THAT(log.Append(entry), IsOk());
  const std::string right = TestEntry(TestOpening(a, entry, WorkerKey(0)), {WorkerKey(0)});
  const Dispute dispute = {
      .run_id = log.run_id(), .step = 0, .reason = DisputeReason::kBadOpening, .evidence = {right}};
  EXPECT_THAT(Why(log, dispute, {kLogKey}), Optional(Refusal::kEvidenceMissing));
}

TEST(Ledger, CheckpointsAreOfStatesOnTheChain) {
  SmallLog log = LogOfThree();
  CheckpointAnnouncement a = {.run_id = log.run_id(),
                              .next_step = 2,
                              .chain = *log.run().ChainBefore(2),
                              .manifest = Filled(1),
                              .files = {}};
  for (const char* name : kCheckpointFiles) {
    a.files.push_back({.name = name, .bytes = 1, .sha256 = Filled(2)});
  }
  EXPECT_THAT(Why(log, a, {9}), Optional(Refusal::kUnknownKey));
  EXPECT_THAT(Why(log, a, {OperatorKey(0)}), Optional(Refusal::kWrongRole));
  CheckpointAnnouncement bad = a;
  bad.chain = Filled(3);
  EXPECT_THAT(Why(log, bad, {kTrainerKey}), Optional(Refusal::kChainBreak));
  bad = a;
  bad.next_step = 4;
  EXPECT_THAT(Why(log, bad, {kTrainerKey}), Optional(Refusal::kUnknownStep));
  EXPECT_THAT(log.Append(a, {kTrainerKey}), IsOk());
  EXPECT_THAT(Why(log, a, {kTrainerKey}), Optional(Refusal::kDuplicate));
  EXPECT_THAT(log.Append(a, {WorkerKey(2)}), IsOk());  // another source of the same state
  a.next_step = 3;
  a.chain = log.run().chain();
  EXPECT_THAT(log.Append(a, {kTrainerKey}), IsOk());
  ASSERT_EQ(log.run().checkpoints().size(), 3u);
  EXPECT_EQ(log.run().checkpoints()[2].announcement, a);
}

TEST(Ledger, EvaluationsAreTheTrainersOfStatesOnTheChain) {
  SmallLog log = LogOfThree();
  Evaluation a = {.run_id = log.run_id(),
                  .next_step = 2,
                  .chain = *log.run().ChainBefore(2),
                  .files = {{.name = "texts.jsonl",
                             .sha256 = Filled(1),
                             .documents = 1,
                             .bytes = 100,
                             .tokens = 30,
                             .nats_per_token = 3.25}}};
  EXPECT_THAT(Why(log, a, {9}), Optional(Refusal::kUnknownKey));
  EXPECT_THAT(Why(log, a, {OperatorKey(0)}), Optional(Refusal::kWrongRole));
  EXPECT_THAT(Why(log, a, {WorkerKey(0)}), Optional(Refusal::kWrongRole));
  Evaluation bad = a;
  bad.run_id = Filled(7);
  EXPECT_THAT(Why(log, bad, {kTrainerKey}), Optional(Refusal::kUnknownRun));
  bad = a;
  bad.chain = Filled(3);
  EXPECT_THAT(Why(log, bad, {kTrainerKey}), Optional(Refusal::kChainBreak));
  bad = a;
  bad.next_step = 4;
  EXPECT_THAT(Why(log, bad, {kTrainerKey}), Optional(Refusal::kUnknownStep));
  EXPECT_THAT(log.Append(a, {kTrainerKey}), IsOk());
  EXPECT_THAT(Why(log, a, {kTrainerKey}), Optional(Refusal::kDuplicate));
  bad = a;
  bad.files[0].nats_per_token = 1;  // a nicer number for the same texts
  EXPECT_THAT(Why(log, bad, {kTrainerKey}), Optional(Refusal::kDuplicate));
  a.limit = 1;  // other texts
  EXPECT_THAT(log.Append(a, {kTrainerKey}), IsOk());
  a.next_step = 3;
  a.chain = log.run().chain();
  EXPECT_THAT(log.Append(a, {kTrainerKey}), IsOk());
  ASSERT_EQ(log.run().evaluations().size(), 3u);
  EXPECT_EQ(log.run().evaluations()[2].evaluation, a);
  EXPECT_EQ(log.run().states()[1], StepState::kUnaudited);
}

TEST(Ledger, AVerifierMayTrustFewerAndAskForMore) {
  SmallLog log = LogOfThree({.operators = 2, .backends = 1, .openings = 1});
  log.Attest(0, WorkerKey(0));
  log.Attest(0, WorkerKey(1));
  ASSERT_THAT(log.Append(log.MismatchOf(1, WorkerKey(2)), {WorkerKey(2)}), IsOk());
  log.Attest(1, WorkerKey(0));
  const auto state = [&](const VerifierPolicy& policy, uint64_t step) {
    const StepTally tally = log.ledger().TalliesUnder(log.run(), policy)[step];
    EXPECT_EQ(tally, log.ledger().TallyOf(log.run(), step, policy));
    return StateOf(tally, policy.quorum);
  };
  VerifierPolicy policy = {.quorum = kTwo, .trusted_operators = std::nullopt};
  EXPECT_EQ(state(policy, 0), StepState::kConfirmed);
  EXPECT_EQ(state(policy, 1), StepState::kDisputed);
  policy.trusted_operators.emplace();
  EXPECT_EQ(state(policy, 0), StepState::kUnaudited);
  policy.trusted_operators->insert(TestPublicKey(OperatorKey(0)));
  EXPECT_EQ(state(policy, 0), StepState::kProvisional);
  EXPECT_EQ(state(policy, 1), StepState::kProvisional);  // a stranger's mismatch is not heard
  policy.trusted_operators->insert(TestPublicKey(OperatorKey(1)));
  EXPECT_EQ(state(policy, 0), StepState::kConfirmed);
  policy.quorum.openings = 2;  // more than the run asked for
  EXPECT_EQ(state(policy, 0), StepState::kUnaudited);
  policy.quorum = {.operators = 2, .backends = 2, .openings = 1};
  EXPECT_EQ(state(policy, 0), StepState::kProvisional);
  EXPECT_EQ(log.ledger().TallyOf(log.run(), 77, policy), StepTally());
}

TEST(Ledger, FoldsTheSameWhateverWasRefusedBetween) {
  SmallLog log = LogOfThree();
  log.Attest(0, WorkerKey(0));
  EXPECT_THAT(Why(log, "garbage"), Optional(Refusal::kMalformed));
  log.Attest(0, WorkerKey(1));
  ASSERT_THAT(log.Append(log.MismatchOf(1, WorkerKey(2)), {WorkerKey(2)}), IsOk());
  // From the log again, signatures trusted and not.
  for (const Signatures how : {Signatures::kVerify, Signatures::kTrust}) {
    Ledger again(TestPublicKey(kLogKey));
    for (size_t i = 0; i < log.entries().size(); ++i) {
      again.Apply(i, log.entries()[i], how).IgnoreError();
    }
    EXPECT_EQ(Everything(again), Everything(log.ledger()));
  }
}

TEST(Ledger, IndicesAscend) {
  Ledger ledger(TestPublicKey(kLogKey));
  const std::string entry = TestEntry(TestRegistration(), {kTrainerKey});
  const uint64_t last = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(RefusalOf(ledger.Apply(last, entry, Signatures::kVerify).status()),
            Refusal::kOutOfOrder);
  EXPECT_THAT(ledger.Apply(5, entry, Signatures::kVerify), IsOk());
  EXPECT_EQ(ledger.next_index(), 6u);
  EXPECT_EQ(RefusalOf(ledger.Apply(5, entry, Signatures::kVerify).status()), Refusal::kOutOfOrder);
  EXPECT_EQ(ledger.runs()[0].entry().log_index, 5u);
}

TEST(Refusal, EachHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(Refusal::kEvidenceMissing); ++i) {
    const auto refusal = static_cast<Refusal>(i);
    EXPECT_TRUE(names.insert(std::string(RefusalName(refusal))).second);
    const absl::Status status = Refuse(refusal, "why");
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(RefusalOf(status), Optional(refusal));
  }
  EXPECT_EQ(RefusalOf(absl::InternalError("x")), std::nullopt);
}

}  // namespace
}  // namespace lockstep::audit
