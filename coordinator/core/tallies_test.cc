// SPDX-License-Identifier: Apache-2.0
//
// Tallies against a count of everything in the ledger, after each thing that may change them, and
// after a start from what is on the disk.

#include "coordinator/core/tallies.h"

#include <map>

#include "coordinator/testing/small_network.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

using audit::OperatorKey;
using audit::TestPublicKey;
using audit::WorkerKey;

constexpr int64_t kMinute = 60'000;

TEST(HourRateTest, ForgetsAfterAnHour) {
  HourRate rate;
  EXPECT_EQ(rate.Sum(0), 0u);
  const int64_t start = 1'700'000'000'000 / kMinute * kMinute;
  rate.Add(start);
  rate.Add(start + 1);
  rate.Add(start + 30 * kMinute);
  EXPECT_EQ(rate.Sum(start + 30 * kMinute), 3u);
  EXPECT_EQ(rate.Sum(start + 59 * kMinute), 3u);
  EXPECT_EQ(rate.Sum(start + 60 * kMinute), 1u);
  EXPECT_EQ(rate.Sum(start + 89 * kMinute), 1u);
  EXPECT_EQ(rate.Sum(start + 90 * kMinute), 0u);
  EXPECT_EQ(rate.Sum(start + 30 * kMinute), 3u);
  rate.Add(start + 200 * kMinute);
  EXPECT_EQ(rate.Sum(start + 200 * kMinute), 1u);
  rate.Add(start + 100 * kMinute);  // a clock that was set back: too old to be kept
  rate.Add(start + 150 * kMinute);
  EXPECT_EQ(rate.Sum(start + 200 * kMinute), 2u);
}

// What the tallies should be, by going over all attestations.
void ExpectTallies(const Coordinator& coordinator) {
  coordinator.Read([](const audit::Ledger& ledger, const Tallies& tallies) {
    std::vector<Credit> by_key(ledger.keys().keys().size());
    for (size_t place = 0; place < ledger.runs().size(); ++place) {
      const audit::RunLedger& run = ledger.runs()[place];
      const RunTallies& mine = tallies.run(place);
      EXPECT_EQ(tallies.PlaceOf(run.run_id()), place);
      Credit all;
      std::map<uint32_t, uint64_t> by_operator;
      std::map<size_t, uint64_t> by_backend;
      ASSERT_EQ(mine.worths.size(), run.attestations().size());
      ASSERT_EQ(mine.attestations_ms.size(), run.attestations().size());
      for (size_t id = 0; id < run.attestations().size(); ++id) {
        const audit::AttestationFacts& facts = run.attestations()[id];
        const Worth worth = WorthOf(ledger, run, facts);
        EXPECT_EQ(mine.worths[id], worth) << id;
        ++all.by_worth[static_cast<size_t>(worth)];
        ++by_key[facts.key_id].by_worth[static_cast<size_t>(worth)];
        if (worth != Worth::kCounts) continue;
        ++by_operator[ledger.keys().keys()[facts.key_id].operator_id];
        ++by_backend[facts.backend_id];
      }
      EXPECT_EQ(mine.all.by_worth, all.by_worth);
      EXPECT_EQ(std::map(mine.matches_by_operator.begin(), mine.matches_by_operator.end()),
                by_operator);
      for (size_t i = 0; i < mine.matches_by_backend.size(); ++i) {
        EXPECT_EQ(mine.matches_by_backend[i], by_backend[i]) << i;
      }
      ASSERT_EQ(mine.points.size(), run.records().size());
      for (size_t i = 0; i < mine.points.size(); ++i) {
        EXPECT_EQ(mine.points[i].loss, run.records()[i].loss);
        EXPECT_EQ(mine.points[i].outcome, run.records()[i].outcome);
      }
    }
    for (uint32_t id = 0; id < by_key.size(); ++id) {
      EXPECT_EQ(tallies.key(id).credit.by_worth, by_key[id].by_worth) << id;
    }
  });
}

class TalliesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    network_.on_record = [](audit::StepRecord& record) {
      record.loss = 10.0f - 0.1f * static_cast<float>(record.step);
    };
    ASSERT_TRUE(network_.Open().ok());
    for (int n = 0; n < 3; ++n) network_.AddOperator(n);
    network_.AddRun(6);
  }
  void ExpectRight() {
    ExpectTallies(*network_);
    const std::vector<uint64_t> refused = Refused();
    ASSERT_TRUE(network_.Open().ok());
    ExpectTallies(*network_);
    EXPECT_EQ(Refused(), refused);
  }
  std::vector<uint64_t> Refused() {
    std::vector<uint64_t> counts;
    network_->Read([&](const audit::Ledger& ledger, const Tallies& tallies) {
      for (uint32_t id = 0; id < ledger.keys().keys().size(); ++id) {
        uint64_t sum = 0;
        for (const auto& [reason, count] : tallies.key(id).refused) sum += count;
        counts.push_back(sum);
      }
    });
    return counts;
  }
  uint64_t OwnRun() {
    uint64_t count = 0;
    network_->Read([&](const audit::Ledger&, const Tallies& tallies) {
      count = tallies.run(0).all.Of(Worth::kOwnRun);
    });
    return count;
  }

  SmallNetwork network_;
};

TEST_F(TalliesTest, MatchesMismatchesAndOpenings) {
  const int key = WorkerKey(0);
  const LeaseRow lease = network_.Lease(key).lease;
  const audit::Attestation said = network_.Found(lease, 0, key);
  const AttestationAnswer answer = network_.Attest(said, key).value();
  ExpectTallies(*network_);  // awaited
  network_.Open(network_.Openings(said, answer, key), key).value();
  ExpectTallies(*network_);
  network_.Match(lease, 1, key);
  const LeaseRow other = network_.Lease(WorkerKey(1), 0, "x86-avx512").lease;
  network_.Match(other, 0, WorkerKey(1), "x86-avx512");
  audit::StepRecord wrong = network_.Record(1);
  wrong.parameters = audit::TestDigest("wrong", 1);
  network_.Attest(network_.Found(other, 1, WorkerKey(1), &wrong), WorkerKey(1)).value();
  ExpectRight();
}

TEST_F(TalliesTest, OpeningsThatAreWrong) {
  const int key = WorkerKey(0);
  const LeaseRow lease = network_.Lease(key).lease;
  const audit::Attestation said = network_.Found(lease, 0, key);
  const AttestationAnswer answer = network_.Attest(said, key).value();
  std::vector<audit::Opening> openings = network_.Openings(said, answer, key);
  openings[0].proof[0] = audit::TestDigest("made up", 1);
  EXPECT_FALSE(network_.Open(openings, key).ok());
  network_->Read([&](const audit::Ledger&, const Tallies& tallies) {
    EXPECT_EQ(tallies.run(0).all.Of(Worth::kVoid), 1u);
    EXPECT_EQ(tallies.run(0).disputes, 1u);
  });
  ExpectRight();
}

// Who trains a run may say so late: what its operator's workers matched has never counted.
TEST_F(TalliesTest, TheTrainersOperator) {
  for (const int n : {0, 1}) {
    const LeaseRow lease = network_.Lease(WorkerKey(n)).lease;
    for (uint64_t step = lease.first_step; step < lease.end_step; ++step) {
      network_.Match(lease, step, WorkerKey(n));
    }
  }
  EXPECT_EQ(OwnRun(), 0u);
  network_
      .AddKey(audit::WorkerEvent{.worker_key = TestPublicKey(audit::kTrainerKey),
                                 .operator_key = TestPublicKey(OperatorKey(0)),
                                 .hardware = "the trainer"},
              {OperatorKey(0), audit::kTrainerKey})
      .value();
  EXPECT_GT(OwnRun(), 0u);
  ExpectRight();
}

TEST_F(TalliesTest, KeysThatGiveWayToOthers) {
  const int key = WorkerKey(0);
  const LeaseRow lease = network_.Lease(key).lease;
  network_.Match(lease, 0, key);
  for (const auto& [before, after] :
       {std::pair(OperatorKey(0), 900), std::pair(key, 901), std::pair(audit::kTrainerKey, 902)}) {
    network_
        .AddKey(
            audit::RotateEvent{.old_key = TestPublicKey(before), .new_key = TestPublicKey(after)},
            {before, after})
        .value();
  }
  ExpectRight();
}

TEST_F(TalliesTest, RefusedReportsAreCountedOnce) {
  const int key = WorkerKey(0);
  const LeaseRow lease = network_.Lease(key).lease;
  audit::Attestation said = network_.Found(lease, 0, key);
  said.nonce = audit::TestDigest("another nonce", 0);
  EXPECT_FALSE(network_.Attest(said, key).ok());
  EXPECT_FALSE(network_.Attest(said, key).ok());  // the same envelope
  const auto count = [&] {
    uint64_t sum = 0;
    for (const uint64_t refused : Refused()) sum += refused;
    return sum;
  };
  EXPECT_EQ(count(), 1u);
  ExpectRight();
  EXPECT_FALSE(network_.Attest(said, key).ok());
  EXPECT_EQ(count(), 1u);
  said.nonce = audit::TestDigest("a third", 0);
  EXPECT_FALSE(network_.Attest(said, key).ok());
  EXPECT_EQ(count(), 2u);
}

}  // namespace
}  // namespace lockstep::coordinator
