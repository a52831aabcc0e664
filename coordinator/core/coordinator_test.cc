// SPDX-License-Identifier: Apache-2.0
//
// The coordinator against a trainer and auditors, honest and not, in simulated time.

#include "coordinator/core/coordinator.h"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "audit/evidence/dsse.h"
#include "base/merkle.h"
#include "base/testing/status_matchers.h"
#include "coordinator/core/mirror.h"
#include "coordinator/testing/reason_matcher.h"
#include "coordinator/testing/small_network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc_error.h"

namespace lockstep::coordinator {
namespace {

using audit::OperatorKey;
using audit::StepState;
using audit::TestDigest;
using audit::TestEntry;
using audit::TestPublicKey;
using audit::WorkerKey;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CoordinatorTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(network_.Open().ok()); }
  // Two operators, and a run of some steps.
  void Begin(int steps = 4) {
    network_.AddOperator(0, 2);
    network_.AddOperator(1, 2);
    network_.AddRun(steps);
  }

  SmallNetwork network_;
};

TEST_F(CoordinatorTest, TwoOperatorsConfirmAStep) {
  Begin();
  const int first = WorkerKey(0);
  const int second = WorkerKey(1);
  EXPECT_EQ(network_.StateOf(0), StepState::kUnaudited);
  const LeaseGrant a = network_.Lease(first);
  EXPECT_EQ(a.lease.first_step, 0u);
  EXPECT_EQ(network_.StateOf(0), StepState::kClaimed);
  for (uint64_t step = 0; step < a.lease.end_step; ++step) network_.Match(a.lease, step, first);
  EXPECT_EQ(network_.StateOf(0), StepState::kProvisional);
  EXPECT_EQ(network_->LiveLeases(), 0u) << "all its steps are attested";
  EXPECT_EQ(network_.Trust(first).valid, 0) << "nobody has said the same yet";
  const LeaseGrant b = network_.Lease(second);
  network_.Match(b.lease, 0, second);
  EXPECT_EQ(network_.StateOf(0), StepState::kConfirmed);
  EXPECT_EQ(network_.Trust(first).valid, 1);
  EXPECT_EQ(network_.Trust(second).valid, 1);
}

TEST_F(CoordinatorTest, AMatchThatOpensNothingCountsForNothing) {
  Begin();
  const int copycat = WorkerKey(0);
  const LeaseGrant lease = network_.Lease(copycat);
  // Everything that is published, copied; the commitment is to what it does not have.
  audit::Attestation said = network_.Found(lease.lease, 0, copycat);
  said.openings_digest = TestDigest("made up", 0);
  const AttestationAnswer answer = network_.Attest(said, copycat).value();
  ASSERT_TRUE(answer.challenge.has_value());
  EXPECT_EQ(network_.StateOf(0), StepState::kClaimed) << "and no more than that";
  network_.clock.Advance(absl::Hours(2));
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_EQ(network_.StateOf(0), StepState::kUnaudited);
  EXPECT_GE(network_.Trust(copycat).expired, 1);
  EXPECT_EQ(network_.Trust(copycat).valid, 0);
}

TEST_F(CoordinatorTest, AWrongOpeningVoidsTheAttestation) {
  Begin();
  const int copycat = WorkerKey(0);
  const LeaseGrant lease = network_.Lease(copycat);
  audit::Attestation said = network_.Found(lease.lease, 0, copycat);
  const AttestationAnswer answer = network_.Attest(said, copycat).value();
  std::vector<audit::Opening> openings = network_.Openings(said, answer, copycat);
  openings[0].proof[0] = TestDigest("made up", 1);
  EXPECT_THAT(network_.Open(openings, copycat).status(), HasReason("OPENING_WRONG"));
  EXPECT_EQ(network_.CountEntries("opening"), 0);
  EXPECT_EQ(network_.CountEntries("dispute"), 1) << "the envelope is evidence";
  EXPECT_EQ(network_.Trust(copycat).invalid, 1);
  EXPECT_NE(network_.StateOf(0), StepState::kDisputed) << "of the attestation, not of the step";
  // The right one comes too late.
  EXPECT_THAT(network_.Open(network_.Openings(said, answer, copycat), copycat).status(),
              HasReason("OPENING_NOT_ASKED"));
}

TEST_F(CoordinatorTest, AMismatchDisputesTheStepAndKeepsBothRecords) {
  Begin();
  const int worker = WorkerKey(0);
  const LeaseGrant lease = network_.Lease(worker);
  audit::StepRecord found = network_.Record(0);
  found.parameters = TestDigest("what it really is", 0);
  const audit::Attestation said = network_.Found(lease.lease, 0, worker, &found);
  const AttestationAnswer answer = network_.Attest(said, worker).value();
  EXPECT_FALSE(answer.challenge.has_value());
  EXPECT_EQ(network_.StateOf(0), StepState::kDisputed);
  EXPECT_EQ(network_.CountEntries("dispute"), 1);
  network_->Read([&](const audit::Ledger& ledger) {
    const audit::RunLedger& run = *ledger.FindRun(network_.run_id());
    ASSERT_NE(run.FindMismatch(0), nullptr);
    EXPECT_EQ(run.FindMismatch(0)->computed, found);
    EXPECT_EQ(run.records()[0], network_.Record(0));
  });
}

// A worker's state may be garbage: whoever is sent there must not pay for it, nor be sent again.
TEST_F(CoordinatorTest, AStateThatNobodyCanStartFromIsGivenUp) {
  Begin(8);
  const int liar = WorkerKey(0);
  const int honest = WorkerKey(1);
  const auto offer = [&] {
    audit::CheckpointAnnouncement state = network_.StateBefore(4);
    std::vector<ArtifactSource> sources = {
        {.digest = state.manifest, .bytes = 100, .mirrors = {"https://mirror.example"}}};
    for (const audit::CheckpointFile& file : state.files) {
      sources.push_back(
          {.digest = file.sha256, .bytes = 100, .mirrors = {"https://mirror.example"}});
    }
    return network_->OfferState(network_.CallerOf(liar), TestEntry(state, {liar}), sources)
        .status();
  };
  EXPECT_THAT(offer(), HasReason("STATE_NOT_ATTESTED"));
  const LeaseGrant first = network_.Lease(liar);
  for (uint64_t step = 0; step < first.lease.end_step; ++step) {
    network_.Match(first.lease, step, liar);
  }
  ASSERT_EQ(first.lease.end_step, 4u);
  ASSERT_TRUE(offer().ok());
  // The honest one takes the steps behind it, and gets nowhere.
  LeaseGrant second = network_.Lease(honest);
  for (int tries = 0; second.lease.first_step != 4 && tries < 8; ++tries) {
    for (uint64_t step = second.begin_step; step < second.lease.end_step; ++step) {
      network_.Match(second.lease, step, honest);
    }
    second = network_.Lease(honest);
  }
  ASSERT_EQ(second.lease.first_step, 4u);
  const KeyTrust before = network_.Trust(honest);
  ASSERT_TRUE(network_
                  ->ReleaseLease(network_.CallerOf(honest), second.lease.lease_id,
                                 ReleaseReason::kInconclusive)
                  .ok());
  EXPECT_EQ(network_.Trust(honest).expired, before.expired);
  const LeaseGrant third = network_.Lease(honest);
  EXPECT_EQ(third.lease.first_step, 0u) << "from where the run itself begins";
}

// Of a run that a worker has attested up to step 4.
class OfferTest : public CoordinatorTest {
 protected:
  void SetUp() override {
    CoordinatorTest::SetUp();
    Begin(8);
    const LeaseGrant first = network_.Lease(worker_);
    for (uint64_t step = 0; step < 4; ++step) network_.Match(first.lease, step, worker_);
    state_ = network_.StateBefore(4);
  }
  // All files, as the state has them, with a mirror.
  std::vector<ArtifactSource> Files(const std::string& mirror = "https://mirror.example") const {
    std::vector<ArtifactSource> files = {
        {.digest = state_.manifest, .bytes = 100, .mirrors = {mirror}}};
    for (const audit::CheckpointFile& file : state_.files) {
      files.push_back({.digest = file.sha256, .bytes = file.bytes, .mirrors = {mirror}});
    }
    return files;
  }
  absl::StatusOr<OfferAnswer> Offer(const std::vector<ArtifactSource>& files) {
    return network_->OfferState(network_.CallerOf(worker_), TestEntry(state_, {worker_}), files);
  }
  absl::StatusOr<ArtifactRow> WordOf(const Digest& digest) {
    return network_->ReadStore().value()->Artifact(digest, Digest{TestPublicKey(worker_).bytes});
  }

  const int worker_ = WorkerKey(0);
  audit::CheckpointAnnouncement state_;
};

TEST_F(OfferTest, OnlyItsOwnFilesAreTaken) {
  const Digest corpus = network_.registration().manifest.corpus;
  std::vector<ArtifactSource> files = Files();
  files.push_back({.digest = corpus, .bytes = 5, .mirrors = {"https://mirror.example"}});
  EXPECT_THAT(Offer(files).status(), HasReason("ARTIFACT_DIFFERS"));
  for (size_t i = 0; i < files.size() - 1; ++i) {
    files = Files();
    files[i].bytes = i == 0 ? 0 : 101;
    EXPECT_THAT(Offer(files).status(), HasReason("ARTIFACT_DIFFERS")) << i;
  }
  EXPECT_THAT(Offer(Files("http://192.168.1.1")).status(), HasReason("MIRROR_REFUSED"));
  EXPECT_THAT(WordOf(state_.manifest).status(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(network_.CountEntries("checkpoint"), 0);
  ASSERT_TRUE(Offer(Files()).ok());
  EXPECT_EQ(WordOf(state_.manifest).value().mirrors,
            std::vector<std::string>{"https://mirror.example"});
}

TEST_F(OfferTest, TheSameOfferAgainChangesNothing) {
  const OfferAnswer first = Offer(Files()).value();
  EXPECT_TRUE(first.upload.empty());
  const OfferAnswer again = Offer(Files("https://another.example")).value();
  EXPECT_EQ(first.entry.log_index, again.entry.log_index);
  EXPECT_EQ(WordOf(state_.manifest).value().mirrors,
            std::vector<std::string>{"https://mirror.example"});
}

TEST_F(OfferTest, TheStateBeforeTheFirstStepIsNotForWorkersToOffer) {
  state_ = network_.StateBefore(0);
  EXPECT_THAT(Offer(Files()).status(), HasReason("STATE_NOT_ATTESTED"));
  EXPECT_EQ(network_.CountEntries("checkpoint"), 0);
}

// What a stranger says of a digest is neither its size nor where it is, for the trainer.
TEST_F(OfferTest, TheTrainersWordStandsOverOthers) {
  ASSERT_TRUE(Offer(Files()).ok());
  std::vector<Digest> digests = {state_.manifest};
  for (const audit::CheckpointFile& file : state_.files) digests.push_back(file.sha256);
  EXPECT_EQ(network_->MissingArtifacts(digests).value(), digests);
  std::vector<ArtifactSource> trainers = Files("https://trainer.example");
  trainers[0].bytes = 200;
  const std::string announcement = TestEntry(state_, {audit::kTrainerKey});
  ASSERT_TRUE(network_->AnnounceCheckpoint(announcement, trainers).ok());
  EXPECT_TRUE(network_->MissingArtifacts(digests).value().empty());
  const std::vector<ArtifactRow> words =
      network_->ReadStore().value()->ArtifactByTrainers(state_.manifest).value();
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].bytes, 200);
  EXPECT_EQ(words[0].mirrors, std::vector<std::string>{"https://trainer.example"});
  // It cannot have two sizes by one trainer's word.
  trainers[0].bytes = 201;
  EXPECT_THAT(network_->AnnounceCheckpoint(announcement, trainers).status(),
              HasReason("ARTIFACT_DIFFERS"));
}

// The coordinator keeps no files for strangers but those of states that they offered.
TEST_F(OfferTest, AWorkerBringsFilesOfItsStatesOnly) {
  const Ed25519PublicKey key = TestPublicKey(worker_);
  const audit::CheckpointFile& file = state_.files[0];
  const auto refused = StatusIs(absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(network_->CheckUpload(key, file.sha256, 100), refused);
  ASSERT_TRUE(Offer({}).ok());
  for (int start = 0; start < 2; ++start) {
    EXPECT_TRUE(network_->CheckUpload(key, file.sha256, 100).ok());
    EXPECT_TRUE(network_->CheckUpload(key, state_.manifest, 1'000).ok());
    EXPECT_THAT(network_->CheckUpload(key, file.sha256, 101), refused);
    EXPECT_THAT(network_->CheckUpload(key, state_.manifest, 2 << 20), refused);
    EXPECT_THAT(network_->CheckUpload(key, TestDigest("another file", 0), 100), refused);
    EXPECT_TRUE(network_->CheckUpload(TestPublicKey(WorkerKey(0, 1)), file.sha256, 100).ok());
    EXPECT_THAT(network_->CheckUpload(TestPublicKey(WorkerKey(1)), file.sha256, 100), refused);
    EXPECT_THAT(network_->CheckUpload(TestPublicKey(OperatorKey(0)), file.sha256, 100), refused);
    EXPECT_TRUE(network_
                    ->CheckUpload(TestPublicKey(audit::kTrainerKey), TestDigest("another file", 0),
                                  uint64_t{1} << 50)
                    .ok());
    ASSERT_TRUE(network_.Open().ok());
  }
}

TEST_F(OfferTest, FilesGoWithTheirState) {
  network_.has_artifacts = true;
  ASSERT_TRUE(Offer({}).ok());
  std::vector<std::pair<Digest, bool>> files = {{state_.manifest, false},
                                                {state_.files[0].sha256, false}};
  EXPECT_THAT(network_->GiveUpArtifacts(files).value(), IsEmpty()) << "the state is wanted";
  LeaseGrant lease = network_.Lease(WorkerKey(1), 2);
  if (lease.lease.first_step != 4) lease = network_.Lease(WorkerKey(1, 1));
  ASSERT_EQ(lease.lease.first_step, 4u);
  for (auto& [digest, old] : files) old = true;
  EXPECT_THAT(network_->GiveUpArtifacts(files).value(), IsEmpty()) << "somebody starts from it";
  network_.clock.Advance(absl::Hours(24));
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_THAT(network_->GiveUpArtifacts(files).value(),
              ElementsAre(state_.manifest, state_.files[0].sha256));
  // Nobody is sent there.
  EXPECT_EQ(network_.Lease(WorkerKey(1, 1)).lease.first_step, 0u);
  // They come again; and what a trainer relies on stays.
  EXPECT_THAT(network_->GiveUpArtifacts({}).value(), IsEmpty());
  ASSERT_THAT(network_->MissingArtifacts({state_.manifest}).value(), IsEmpty());
  EXPECT_THAT(network_->GiveUpArtifacts(files).value(), ElementsAre(state_.files[0].sha256));
  ASSERT_TRUE(network_->AnnounceCheckpoint(TestEntry(state_, {audit::kTrainerKey}), Files()).ok());
  EXPECT_THAT(network_->GiveUpArtifacts(files).value(), IsEmpty());
}

TEST_F(OfferTest, ASourceHasAsManyMirrorsAsAreServed) {
  const std::string announcement = TestEntry(state_, {audit::kTrainerKey});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(
        network_->AnnounceCheckpoint(announcement, Files(absl::StrCat("https://m", i, ".example")))
            .ok());
  }
  const std::vector<ArtifactRow> words =
      network_->ReadStore().value()->ArtifactByTrainers(state_.manifest).value();
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].mirrors.size(), kMirrorsMax);
  EXPECT_EQ(words[0].mirrors[0], "https://m19.example") << "the newest first";
}

TEST_F(CoordinatorTest, RecordsMayComeAgainAndNotBeSkipped) {
  Begin(0);
  const Digest run = network_.run_id();
  const PublishAnswer first = network_->PublishRecords(run, network_.RecordEntries(0, 3)).value();
  EXPECT_EQ(first.next_step, 3u);
  const PublishAnswer again = network_->PublishRecords(run, network_.RecordEntries(1, 4)).value();
  EXPECT_EQ(again.next_step, 5u);
  EXPECT_EQ(network_.CountEntries("record"), 5);
  const absl::Status gap = network_->PublishRecords(run, network_.RecordEntries(6, 1)).status();
  EXPECT_THAT(gap, HasReason("STEP_GAP"));
  EXPECT_EQ(rpc::MetadataOf(gap)["next_step"], "5");

  std::vector<std::string> entries = network_.RecordEntries(5, 1);
  audit::StepRecord after = network_.Record(6);
  after.previous_chain = TestDigest("another chain", 0);
  entries.push_back(
      TestEntry(audit::PublishedRecord{.run_id = run, .record = after}, {audit::kTrainerKey}));
  const absl::Status chain = network_->PublishRecords(run, entries).status();
  EXPECT_THAT(chain, HasReason("CHAIN_BROKEN"));
  EXPECT_EQ(rpc::MetadataOf(chain)["next_step"], "6") << "what came before it is kept";

  const std::string stranger = TestEntry(
      audit::PublishedRecord{.run_id = run, .record = network_.Record(6)}, {OperatorKey(0)});
  EXPECT_THAT(network_->PublishRecords(run, {stranger}).status(), HasReason("ENVELOPE_INVALID"));
  EXPECT_THAT(network_->PublishRecords(TestDigest("no run", 0), {}).status(),
              HasReason("RUN_UNKNOWN"));
}

TEST_F(CoordinatorTest, ASecondHistoryIsEvidenceAndChangesNothingElse) {
  Begin(3);
  const Digest run = network_.run_id();
  const audit::StepRecord rewritten =
      audit::TestRecord(network_.registration(), &network_.Record(0), " rewritten");
  const std::string entry =
      TestEntry(audit::PublishedRecord{.run_id = run, .record = rewritten}, {audit::kTrainerKey});
  EXPECT_THAT(network_->PublishRecords(run, {entry}).status(), HasReason("SECOND_HISTORY"));
  EXPECT_THAT(network_->PublishRecords(run, {entry}).status(), HasReason("SECOND_HISTORY"));
  EXPECT_EQ(network_.CountEntries("record"), 4);
  EXPECT_EQ(network_.CountEntries("dispute"), 1);
  EXPECT_EQ(network_.StateOf(1), StepState::kDisputed);
  EXPECT_EQ(network_->GetProgress(run).value().next_step, 3u);
  EXPECT_EQ(network_->PublishRecords(run, network_.RecordEntries(3, 1)).value().next_step, 4u);
}

TEST_F(CoordinatorTest, EveryLieAboutALeaseHasItsReasonAndIsKept) {
  Begin();
  const int worker = WorkerKey(0);
  const int other = WorkerKey(1);
  const LeaseRow lease = network_.Lease(worker, 2).lease;
  ASSERT_EQ(lease.end_step, 2u);
  const audit::Attestation honest = network_.Found(lease, 0, worker);
  const auto attest = [&](const audit::Attestation& said, int key) {
    return network_.Attest(said, key).status();
  };
  audit::Attestation said = honest;
  said.lease_id = "0123456789abcdef0123456789abcdef";
  EXPECT_THAT(attest(said, worker), HasReason("LEASE_UNKNOWN"));
  // Another key's lease; another attempt's.
  EXPECT_THAT(attest(network_.Found(lease, 0, other), other), HasReason("LEASE_FOREIGN"));
  EXPECT_THAT(network_.Attest(honest, worker, "attempt 2").status(), HasReason("LEASE_FOREIGN"));
  EXPECT_THAT(attest(network_.Found(lease, 2, worker), worker), HasReason("STEP_OUTSIDE_LEASE"));
  said = honest;
  said.run_id = TestDigest("another run", 0);
  EXPECT_THAT(attest(said, worker), HasReason("STEP_OUTSIDE_LEASE"));
  said = honest;
  said.nonce = TestDigest("another nonce", 0);
  EXPECT_THAT(attest(said, worker), HasReason("NONCE_WRONG"));
  said = honest;
  said.roots.gradient = TestDigest("another gradient", 0);
  EXPECT_THAT(attest(said, worker), HasReason("FALSE_VERDICT"));
  EXPECT_EQ(network_.Trust(worker).invalid, 1);
  // Another's attestation under one's own name; and garbage.
  const auto submit = [&](const std::string& envelope, int key) {
    return network_
        ->SubmitAttestation(audit::TestPublicKey(key), SmallNetwork::AttemptOf(key, "attempt 1"),
                            envelope)
        .status();
  };
  EXPECT_THAT(submit(TestEntry(honest, {worker}), other), HasReason("ENVELOPE_INVALID"));
  EXPECT_THAT(submit("{}", worker), HasReason("ENVELOPE_INVALID"));
  network_.clock.Advance(absl::Hours(1));
  EXPECT_THAT(attest(honest, worker), HasReason("LEASE_EXPIRED"));

  EXPECT_EQ(network_.CountEntries("attestation"), 0);
  const std::vector<EvidenceRow> evidence = network_.Evidence();
  for (const char* reason :
       {"LEASE_FOREIGN", "LEASE_EXPIRED", "STEP_OUTSIDE_LEASE", "NONCE_WRONG", "FALSE_VERDICT"}) {
    EXPECT_THAT(evidence, Contains(Field(&EvidenceRow::reason, reason)));
  }
  EXPECT_THAT(evidence, Not(Contains(Field(&EvidenceRow::reason, "LEASE_UNKNOWN"))))
      << "which anybody can make up";
}

TEST_F(CoordinatorTest, OfOnesLiesTheFirstAreKept) {
  network_.options.evidence_per_key_max = 3;
  ASSERT_TRUE(network_.Open().ok());
  Begin();
  const int worker = WorkerKey(0);
  const LeaseRow lease = network_.Lease(worker, 2).lease;
  const auto lie = [&](uint64_t n) {
    audit::Attestation said = network_.Found(lease, 0, worker);
    said.nonce = TestDigest("another nonce", n);
    EXPECT_THAT(network_.Attest(said, worker).status(), HasReason("NONCE_WRONG"));
    return TestEntry(said, {worker});
  };
  const std::string first = lie(0);
  for (uint64_t n = 1; n < 10; ++n) lie(n);
  std::vector<EvidenceRow> evidence = network_.Evidence();
  ASSERT_EQ(evidence.size(), 3u);
  EXPECT_EQ(evidence[0].envelope, first);
  // Of another kind, or by another, there is room.
  EXPECT_THAT(network_.Attest(network_.Found(lease, 2, worker), worker).status(),
              HasReason("STEP_OUTSIDE_LEASE"));
  EXPECT_EQ(network_.Evidence().size(), 4u);
  network_.options.evidence_max = 2;
  ASSERT_TRUE(network_.Open().ok());
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_EQ(network_.Evidence().size(), 2u);
}

TEST_F(CoordinatorTest, EnvelopesHaveNoRoomForMore) {
  Begin(0);
  const std::string honest = network_.RecordEntries(0, 1)[0];
  const auto publish = [&](const std::string& envelope) {
    return network_->PublishRecords(network_.run_id(), {envelope}).status();
  };
  EXPECT_THAT(publish(honest + std::string(65, ' ')), HasReason("ENVELOPE_INVALID"));
  std::string stuffed = honest;
  stuffed.insert(1, absl::StrCat("\"x\":\"", std::string(60, 'x'), "\","));
  EXPECT_THAT(publish(stuffed), HasReason("ENVELOPE_INVALID"));
  EXPECT_TRUE(publish(honest + std::string(64, ' ')).ok()) << "as other writers' JSON may have";
}

TEST_F(CoordinatorTest, WhatHasEndedIsForgottenInTheEnd) {
  Begin();
  const int worker = WorkerKey(0);
  const LeaseRow lease = network_.Lease(worker, 1).lease;
  const audit::Attestation said = network_.Found(lease, 0, worker);
  const AttestationAnswer answer = network_.Attest(said, worker).value();
  network_.Open(network_.Openings(said, answer, worker), worker).value();
  const auto known = [&] {
    const auto view = network_->ReadStore().value();
    return std::pair(view->Lease(lease.lease_id).ok(),
                     !view->Challenges(answer.entry->leaf_hash).value().empty());
  };
  network_.clock.Advance(absl::Hours(29 * 24));
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_EQ(known(), std::pair(true, true));
  network_.clock.Advance(absl::Hours(2 * 24));
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_EQ(known(), std::pair(false, false));
  EXPECT_THAT(network_->Heartbeat(network_.CallerOf(worker), lease.lease_id).status(),
              HasReason("LEASE_UNKNOWN"));
  EXPECT_EQ(network_.CountEntries("attestation"), 1);
}

TEST_F(CoordinatorTest, TheSameRequestHasTheSameAnswer) {
  Begin();
  const int worker = WorkerKey(0);
  const Caller caller = network_.CallerOf(worker);
  const AcquireAnswer first = network_->AcquireLease(caller, SmallNetwork::Machine(), 2).value();
  const AcquireAnswer again = network_->AcquireLease(caller, SmallNetwork::Machine(), 2).value();
  EXPECT_EQ(first.lease->lease, again.lease->lease);
  EXPECT_EQ(network_->LiveLeases(), 1u);
  Caller changed = caller;
  changed.fingerprint = TestDigest("another payload", 0);
  EXPECT_THAT(network_->AcquireLease(changed, SmallNetwork::Machine(), 2).status(),
              HasReason("REQUEST_ID_REUSED"));

  const LeaseRow& lease = first.lease->lease;
  const audit::Attestation said = network_.Found(lease, 0, worker);
  const AttestationAnswer once = network_.Attest(said, worker).value();
  const AttestationAnswer twice = network_.Attest(said, worker).value();
  EXPECT_EQ(once.entry->log_index, twice.entry->log_index);
  EXPECT_EQ(once.challenge, twice.challenge);
  EXPECT_EQ(network_.CountEntries("attestation"), 1);
  // The step once more, said otherwise.
  audit::Attestation other = network_.Found(lease, 0, worker);
  other.engine.version = "2.0";
  EXPECT_THAT(network_.Attest(other, worker).status(), HasReason("ATTESTATION_EXISTS"));

  const Caller release = network_.CallerOf(worker);
  EXPECT_TRUE(network_->ReleaseLease(release, lease.lease_id, ReleaseReason::kCanceled).ok());
  EXPECT_TRUE(network_->ReleaseLease(release, lease.lease_id, ReleaseReason::kCanceled).ok());
  EXPECT_THAT(
      network_->ReleaseLease(network_.CallerOf(worker), lease.lease_id, ReleaseReason::kCanceled),
      HasReason("LEASE_EXPIRED"));
}

// Else whoever reads it in the log could keep its signer waiting with it.
TEST_F(CoordinatorTest, WhatIsInTheLogIsAnsweredWithoutTheWriter) {
  Begin();
  const int worker = WorkerKey(0);
  const LeaseRow lease = network_.Lease(worker, 2).lease;
  const audit::Attestation said = network_.Found(lease, 0, worker);
  const AttestationAnswer once = network_.Attest(said, worker).value();
  network_->Stop();
  const AttestationAnswer again = network_.Attest(said, worker, "attempt 2").value();
  EXPECT_EQ(again.entry->log_index, once.entry->log_index);
  EXPECT_EQ(again.challenge, once.challenge);
  EXPECT_THAT(network_.Attest(network_.Found(lease, 1, worker), worker).status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(CoordinatorTest, TimesTooFarOffAreRefusedAndLeasesDoNotCare) {
  Begin();
  const int worker = WorkerKey(0);
  for (const int64_t off_ms : {-301'000, 301'000}) {
    Caller caller = network_.CallerOf(worker);
    caller.time_unix_ms += off_ms;
    const absl::Status status = network_->AcquireLease(caller, SmallNetwork::Machine(), 0).status();
    EXPECT_THAT(status, HasReason("CLOCK_SKEW"));
    EXPECT_EQ(rpc::MetadataOf(status)["server_time_ms"], absl::StrCat(network_->UnixMs()));
  }
  for (const int64_t time : {INT64_MIN, INT64_MAX}) {
    Caller caller = network_.CallerOf(worker);
    caller.time_unix_ms = time;
    EXPECT_THAT(network_->Heartbeat(caller, "x").status(), HasReason("CLOCK_SKEW"));
  }
  const LeaseRow lease = network_.Lease(worker).lease;
  for (const absl::Duration step : {absl::Hours(24), absl::Hours(-48)}) {
    network_.clock.SetNow(network_.clock.Now() + step);
    ASSERT_TRUE(network_->Tick().ok());
    EXPECT_EQ(network_->LiveLeases(), 1u);
    EXPECT_TRUE(network_->Heartbeat(network_.CallerOf(worker), lease.lease_id).value());
  }
}

TEST_F(CoordinatorTest, LeasesEndInServiceTime) {
  Begin();
  const int worker = WorkerKey(0);
  const LeaseGrant grant = network_.Lease(worker);
  const absl::Duration lease = absl::Milliseconds(grant.lease.expires_ms - grant.lease.granted_ms);
  network_.clock.Advance(lease - absl::Milliseconds(1));
  EXPECT_TRUE(network_->Heartbeat(network_.CallerOf(worker), grant.lease.lease_id).value());
  network_.clock.Advance(lease - absl::Milliseconds(1));
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_EQ(network_->LiveLeases(), 1u) << "the heartbeat kept it";
  // Nobody serves for a day: it does not run out meanwhile.
  network_.Close();
  network_.clock.Advance(absl::Hours(24));
  ASSERT_TRUE(network_.Open().ok());
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_EQ(network_->LiveLeases(), 1u);
  EXPECT_TRUE(network_->Heartbeat(network_.CallerOf(worker), grant.lease.lease_id).value());
  network_.clock.Advance(lease);
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_EQ(network_->LiveLeases(), 0u);
  EXPECT_EQ(network_.Trust(worker).expired, 1);
  EXPECT_THAT(network_->Heartbeat(network_.CallerOf(worker), grant.lease.lease_id).status(),
              HasReason("LEASE_EXPIRED"));
}

TEST_F(CoordinatorTest, ACopiedFolderIsNoticedAndACrashedWorkerComesBack) {
  Begin();
  const int worker = WorkerKey(0);
  const LeaseGrant grant = network_.Lease(worker, 1);
  const auto acquire_again = [&] {
    return network_->AcquireLease(network_.CallerOf(worker, "attempt 2"), SmallNetwork::Machine(),
                                  1);
  };
  EXPECT_THAT(acquire_again().status(), HasReason("KEY_IN_USE"));
  EXPECT_THAT(
      network_->Heartbeat(network_.CallerOf(worker, "attempt 2"), grant.lease.lease_id).status(),
      HasReason("LEASE_FOREIGN"));
  network_.clock.Advance(absl::Milliseconds(network_.options.attempt_alive_ms));
  EXPECT_TRUE(acquire_again().value().lease.has_value());
}

TEST_F(CoordinatorTest, WhoHoardsGetsNoMore) {
  Begin(64);
  const int worker = WorkerKey(0);
  int64_t steps = 0;
  std::string reason;
  while (true) {
    const AcquireAnswer answer =
        network_->AcquireLease(network_.CallerOf(worker), SmallNetwork::Machine(), 0).value();
    reason = answer.no_work_reason;
    if (!answer.lease) break;
    steps += static_cast<int64_t>(answer.lease->lease.end_step - answer.lease->lease.first_step);
  }
  EXPECT_LE(steps, network_.options.policy.trust.quota_steps_new);
  EXPECT_NE(reason, "");
  // None of it comes back.
  network_.clock.Advance(absl::Hours(1));
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_GE(network_.Trust(worker).expired, 1);
  EXPECT_LT(network_.Trust(worker).quota_steps, network_.options.policy.trust.quota_steps_new);
}

TEST_F(CoordinatorTest, ManyKeysOfOneOperatorAreOneOperator) {
  network_.AddOperator(0, 100);
  network_.AddOperator(1);
  network_.AddRun(2);
  for (int w = 0; w < 100; ++w) {
    const AcquireAnswer answer =
        network_->AcquireLease(network_.CallerOf(WorkerKey(0, w)), SmallNetwork::Machine(), 0)
            .value();
    if (!answer.lease) continue;
    for (uint64_t step = answer.lease->lease.first_step; step < answer.lease->lease.end_step;
         ++step) {
      network_.Match(answer.lease->lease, step, WorkerKey(0, w));
    }
  }
  EXPECT_EQ(network_.StateOf(0), StepState::kProvisional);
  EXPECT_EQ(network_.StateOf(1), StepState::kProvisional);
  network_.Match(network_.Lease(WorkerKey(1)).lease, 0, WorkerKey(1));
  EXPECT_EQ(network_.StateOf(0), StepState::kConfirmed);
}

TEST_F(CoordinatorTest, KeysComeAndGo) {
  Begin();
  const int worker = WorkerKey(0);
  EXPECT_THAT(network_
                  .AddKey(audit::WorkerEvent{.worker_key = TestPublicKey(WorkerKey(0)),
                                             .operator_key = TestPublicKey(OperatorKey(1)),
                                             .hardware = "another machine"},
                          {OperatorKey(1), WorkerKey(0)})
                  .status(),
              HasReason("KEY_EXISTS"));
  EXPECT_THAT(network_
                  .AddKey(audit::WorkerEvent{.worker_key = TestPublicKey(WorkerKey(5)),
                                             .operator_key = TestPublicKey(OperatorKey(5)),
                                             .hardware = "a machine"},
                          {OperatorKey(5), WorkerKey(5)})
                  .status(),
              HasReason("OPERATOR_UNKNOWN"));
  EXPECT_THAT(
      network_->AcquireLease(network_.CallerOf(WorkerKey(5)), SmallNetwork::Machine(), 0).status(),
      HasReason("KEY_UNKNOWN"));
  EXPECT_THAT(network_->AcquireLease(network_.CallerOf(OperatorKey(0)), SmallNetwork::Machine(), 0)
                  .status(),
              HasReason("WRONG_ROLE"));
  const LeaseRow lease = network_.Lease(worker).lease;
  ASSERT_TRUE(network_
                  .AddKey(audit::RevokeEvent{.key = TestPublicKey(worker), .reason = "stolen"},
                          {OperatorKey(0)})
                  .ok());
  EXPECT_FALSE(network_->Heartbeat(network_.CallerOf(worker), lease.lease_id).value());
  EXPECT_THAT(network_.Attest(network_.Found(lease, 0, worker), worker).status(),
              HasReason("KEY_REVOKED"));
  EXPECT_THAT(
      network_->AcquireLease(network_.CallerOf(worker), SmallNetwork::Machine(), 0).status(),
      HasReason("KEY_REVOKED"));
}

TEST_F(CoordinatorTest, TheTrainersOwnOperatorGetsNoWorkOfItsRun) {
  Begin();
  ASSERT_TRUE(network_
                  .AddKey(audit::WorkerEvent{.worker_key = TestPublicKey(audit::kTrainerKey),
                                             .operator_key = TestPublicKey(OperatorKey(0)),
                                             .hardware = "the trainer"},
                          {OperatorKey(0), audit::kTrainerKey})
                  .ok());
  const AcquireAnswer own =
      network_->AcquireLease(network_.CallerOf(WorkerKey(0)), SmallNetwork::Machine(), 0).value();
  EXPECT_FALSE(own.lease.has_value());
  EXPECT_EQ(own.no_work_reason, "NO_WORK");
  EXPECT_EQ(network_.Lease(WorkerKey(1)).lease.first_step, 0u);
}

// The keys that OpenSSL takes and nobody should (RFC 8032 points of small order).
TEST_F(CoordinatorTest, LowOrderKeysAreRefused) {
  const audit::OperatorEvent event{.operator_key = TestPublicKey(OperatorKey(0)),
                                   .revocation_key = TestPublicKey(audit::RevocationKey(0)),
                                   .name = "operator",
                                   .contact = ""};
  const audit::DsseEnvelope honest =
      audit::ParseDsse(TestEntry(audit::KeyEvent(event), {OperatorKey(0)})).value();
  for (const std::string& low : {std::string("01") + std::string(62, '0'), std::string(64, '0'),
                                 std::string("ec") + std::string(60, 'f') + "7f"}) {
    std::string payload = honest.payload;
    const std::string key = TestPublicKey(OperatorKey(0)).ToHex();
    payload.replace(payload.find(key), key.size(), low);
    audit::DsseEnvelope forged = honest;
    forged.payload = payload;
    EXPECT_THAT(network_->SubmitKeyEvent(audit::EncodeDsse(forged)).status(),
                HasReason("KEY_REFUSED"))
        << low;
  }
}

TEST_F(CoordinatorTest, StatesBecomeWorkWhenTheirFilesAreThere) {
  Begin(8);
  audit::CheckpointAnnouncement state = network_.StateBefore(4);
  const std::string envelope = TestEntry(state, {audit::kTrainerKey});
  const audit::EntryRef first = network_->AnnounceCheckpoint(envelope, {}).value();
  EXPECT_EQ(network_->AnnounceCheckpoint(envelope, {}).value().log_index, first.log_index);
  EXPECT_EQ(network_->GetProgress(network_.run_id()).value().checkpoints, std::vector<uint64_t>{4});
  const LeaseRow a = network_.Lease(WorkerKey(0), 4).lease;
  EXPECT_EQ(a.first_step, 0u);
  network_.has_artifacts = true;
  ASSERT_TRUE(network_->Tick().ok());
  const LeaseGrant b = network_.Lease(WorkerKey(1), 4);
  const LeaseGrant c = network_.Lease(WorkerKey(1, 1), 4);
  EXPECT_TRUE(b.lease.first_step == 4 || c.lease.first_step == 4);
  const LeaseGrant& from_state = b.lease.first_step == 4 ? b : c;
  ASSERT_TRUE(from_state.start.has_value());
  EXPECT_EQ(from_state.start->manifest, state.manifest);

  state.next_step = 20;
  EXPECT_THAT(network_->AnnounceCheckpoint(TestEntry(state, {audit::kTrainerKey}), {}).status(),
              HasReason("CHECKPOINT_UNKNOWN_STEP"));
  state.next_step = 6;
  EXPECT_THAT(network_->AnnounceCheckpoint(TestEntry(state, {audit::kTrainerKey}), {}).status(),
              HasReason("CHAIN_BROKEN"));
}

TEST_F(CoordinatorTest, EvaluationsAreTakenOnceAndFromTheTrainer) {
  Begin(4);
  audit::Evaluation said{.run_id = network_.run_id(),
                         .next_step = 2,
                         .chain = network_.Record(2).previous_chain,
                         .files = {{.name = "texts.jsonl",
                                    .sha256 = TestDigest("texts", 0),
                                    .documents = 1,
                                    .bytes = 100,
                                    .tokens = 30,
                                    .nats_per_token = 3.25}}};
  EXPECT_THAT(network_->PublishEvaluation(TestEntry(said, {WorkerKey(0)})).status(),
              HasReason("ENVELOPE_INVALID"));
  const std::string envelope = TestEntry(said, {audit::kTrainerKey});
  const audit::EntryRef first = network_->PublishEvaluation(envelope).value();
  EXPECT_EQ(network_->PublishEvaluation(envelope).value().log_index, first.log_index);
  EXPECT_EQ(network_.CountEntries("evaluation"), 1);
  audit::Evaluation nicer = said;
  nicer.files[0].nats_per_token = 1;
  EXPECT_THAT(network_->PublishEvaluation(TestEntry(nicer, {audit::kTrainerKey})).status(),
              HasReason("DUPLICATE"));
  said.next_step = 20;
  EXPECT_THAT(network_->PublishEvaluation(TestEntry(said, {audit::kTrainerKey})).status(),
              HasReason("CHECKPOINT_UNKNOWN_STEP"));
  said.next_step = 3;
  EXPECT_THAT(network_->PublishEvaluation(TestEntry(said, {audit::kTrainerKey})).status(),
              HasReason("CHAIN_BROKEN"));
  said.run_id = TestDigest("another run", 0);
  EXPECT_THAT(network_->PublishEvaluation(TestEntry(said, {audit::kTrainerKey})).status(),
              HasReason("RUN_UNKNOWN"));
}

TEST_F(CoordinatorTest, WhoSaysMatchToACanaryIsCaught) {
  network_.options.policy.trust.canary_share_new = 1;
  ASSERT_TRUE(network_.Open().ok());
  Begin(4);
  const int liar = WorkerKey(0);
  const LeaseGrant grant = network_.Lease(liar);
  ASSERT_TRUE(grant.canary.has_value());
  EXPECT_EQ(grant.canary->step, grant.lease.end_step - 1);
  const auto served = audit::DecodeStepRecord(AsBytes(grant.canary->false_record)).value();
  for (uint64_t step = grant.lease.first_step; step < grant.canary->step; ++step) {
    network_.Match(grant.lease, step, liar);
  }
  audit::Attestation said = audit::TestAttestation(network_.run_id(), served, TestPublicKey(liar));
  said.lease_id = grant.lease.lease_id;
  said.nonce = grant.lease.nonce;
  EXPECT_THAT(network_.Attest(said, liar).status(), HasReason("NOT_THE_PUBLISHED_RECORD"));
  EXPECT_EQ(network_.Trust(liar).invalid, 1);
  EXPECT_EQ(network_.Trust(liar).canaries, 0);

  // Who replays it finds what is published.
  const int honest = WorkerKey(1);
  const LeaseGrant other = network_.Lease(honest);
  ASSERT_TRUE(other.canary.has_value());
  const auto shown = audit::DecodeStepRecord(AsBytes(other.canary->false_record)).value();
  for (uint64_t step = other.lease.first_step; step < other.canary->step; ++step) {
    network_.Match(other.lease, step, honest);
  }
  said = audit::TestAttestation(network_.run_id(), shown, TestPublicKey(honest),
                                &network_.Record(other.canary->step));
  said.lease_id = other.lease.lease_id;
  said.nonce = other.lease.nonce;
  const AttestationAnswer answer = network_.Attest(said, honest).value();
  EXPECT_FALSE(answer.entry.has_value());
  // An answer that was lost is given again, and nothing is counted twice.
  EXPECT_FALSE(network_.Attest(said, honest).value().entry.has_value());
  EXPECT_EQ(network_.Trust(honest).canaries, 1);
  EXPECT_EQ(network_.Trust(honest).invalid, 0);
  EXPECT_EQ(network_.CountEntries("dispute"), 0) << "no log tells of canaries";
  EXPECT_NE(network_.StateOf(other.canary->step), StepState::kDisputed);
}

TEST_F(CoordinatorTest, AStartFindsEverythingAsItWas) {
  Begin(4);
  const int worker = WorkerKey(0);
  const LeaseRow lease = network_.Lease(worker).lease;
  network_.Match(lease, 0, worker);
  const audit::Attestation said = network_.Found(lease, 1, worker);
  const AttestationAnswer answer = network_.Attest(said, worker).value();
  const std::vector<StepState> before = network_->CoverageOf(network_.run_id()).value().states;
  const std::string receipt = network_->Receipt(answer.entry->log_index).value();
  ASSERT_TRUE(network_.Open().ok());
  EXPECT_EQ(network_->CoverageOf(network_.run_id()).value().states, before);
  EXPECT_EQ(network_->Receipt(answer.entry->log_index).value(), receipt);
  // The lease goes on, and the challenge is as it was.
  EXPECT_TRUE(network_.Open(network_.Openings(said, answer, worker), worker).ok());
  for (uint64_t step = 2; step < lease.end_step; ++step) network_.Match(lease, step, worker);
  EXPECT_EQ(network_->LiveLeases(), 0u);
}

TEST_F(CoordinatorTest, ALogWithoutItsKeyIsNotGivenAnother) {
  Begin(1);
  network_.Close();
  const std::string key = network_.options.directory + "/log.key";
  ASSERT_EQ(std::rename(key.c_str(), (key + ".away").c_str()), 0);
  const absl::Status status = network_.Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("put the key back"));
  // Nothing lies in its place.
  EXPECT_NE(access(key.c_str(), F_OK), 0);
  ASSERT_EQ(std::rename((key + ".away").c_str(), key.c_str()), 0);
  EXPECT_TRUE(network_.Open().ok());
}

TEST_F(CoordinatorTest, AReceiptShowsTheEntryToWhoHasTheLogsKey) {
  Begin(1);
  const LeaseRow lease = network_.Lease(WorkerKey(0)).lease;
  const AttestationAnswer answer =
      network_.Attest(network_.Found(lease, 0, WorkerKey(0)), WorkerKey(0)).value();
  const audit::LogProof proof =
      audit::ParseLogProof(network_->Receipt(answer.entry->log_index).value()).value();
  EXPECT_TRUE(audit::VerifyLogProof(proof, answer.entry->leaf_hash, network_->log_key()).ok());
  EXPECT_FALSE(
      audit::VerifyLogProof(proof, TestDigest("another entry", 0), network_->log_key()).ok());
}

}  // namespace
}  // namespace lockstep::coordinator
