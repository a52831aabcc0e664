// SPDX-License-Identifier: Apache-2.0
#include "worker/outbox.h"

#include <memory>
#include <string>
#include <vector>

#include "audit/ledger/receipt.h"
#include "audit/testing/small_log.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc_error.h"
#include "worker/grpc_coordinator.h"
#include "worker/outbox_sender.h"
#include "worker/testing/fake_coordinator.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kOpenings = 3;

// A log with a run of a few steps and a registered worker, whose attestations go through the box.
class OutboxTest : public ::testing::Test {
 protected:
  OutboxTest() {
    small_.AddOperator(0);
    small_.AddRun(4);
    for (const std::string& entry : small_.entries()) server_.Append(entry);
    Reopen();
    coordinator_ = ConnectGrpc(key_, {.address = server_.address(),
                                      .attempt_id = std::string(16, 'a'),
                                      .tries_max = 1})
                       .value();
    info_ = coordinator_->Connect().value();
  }

  void Reopen() {
    outbox_.reset();
    outbox_ = Outbox::Open(folder_ / "outbox").value();
  }
  OutboxItem Item(uint64_t step, bool match = true) {
    const int worker = audit::WorkerKey(0);
    const audit::Attestation a =
        match ? small_.MatchOf(step, worker) : small_.MismatchOf(step, worker);
    return {.origin = info_.origin,
            .run_id = small_.run_id(),
            .step = step,
            .lease_id = "lease",
            .envelope = audit::TestEntry(a, {worker}),
            .nonce = a.nonce,
            .openings = kOpenings,
            .leaves = audit::TestTranscript(step)};
  }
  absl::Status Send() {
    return SendOutbox(*outbox_, *coordinator_, info_, key_, nullptr, &report_);
  }
  audit::StepState State(uint64_t step) { return server_.StateOfStep(small_.run_id(), step); }

  TemporaryFolder folder_;
  audit::SmallLog small_{{.operators = 1, .backends = 1, .openings = kOpenings}};
  FakeCoordinator server_;
  const Ed25519PrivateKey& key_ = audit::TestKey(audit::WorkerKey(0));
  std::unique_ptr<Coordinator> coordinator_;
  ServerInfo info_;
  std::unique_ptr<Outbox> outbox_;
  SendReport report_;
};

TEST_F(OutboxTest, WhatGoesInComesOutAfterARestart) {
  const OutboxItem item = Item(1);
  ASSERT_THAT(outbox_->Add(item), IsOk());
  Reopen();
  ASSERT_THAT(outbox_->Pending(), ElementsAre(1));
  EXPECT_THAT(outbox_->Read(1), IsOkAndHolds(item));
  EXPECT_TRUE(outbox_->Knows(info_.origin, item.run_id, 1));
  EXPECT_FALSE(outbox_->Knows("another.example/log", item.run_id, 1));
  EXPECT_FALSE(outbox_->Knows(info_.origin, item.run_id, 2));
  EXPECT_THAT(outbox_->Add(item), StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(OutboxTest, DamageIsAnErrorAndNotALoss) {
  ASSERT_THAT(outbox_->Add(Item(1)), IsOk());
  const std::string path = folder_ / "outbox/pending/00000001.json";
  const std::string good = ReadBytes(path);
  for (const size_t length : {size_t{0}, size_t{1}, good.size() / 2, good.size() - 1}) {
    WriteBytes(path, absl::string_view(good).substr(0, length));
    EXPECT_THAT(Outbox::Open(folder_ / "outbox"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("00000001.json")));
  }
}

TEST_F(OutboxTest, AMatchIsAttestedOpenedAndCounts) {
  ASSERT_THAT(outbox_->Add(Item(0)), IsOk());
  ASSERT_THAT(outbox_->Add(Item(1)), IsOk());
  ASSERT_THAT(Send(), IsOk());
  EXPECT_EQ(report_.finished, 2);
  EXPECT_THAT(outbox_->Pending(), IsEmpty());
  EXPECT_EQ(State(0), audit::StepState::kConfirmed);
  EXPECT_EQ(State(1), audit::StepState::kConfirmed);
  EXPECT_EQ(State(2), audit::StepState::kUnaudited);
  // What is kept is what `lockstep verify --receipts` reads.
  const auto receipts = ReadAll(folder_ / "outbox/receipts");
  ASSERT_THAT(receipts, SizeIs(2));
  for (const auto& [name, text] : receipts) {
    EXPECT_THAT(name, EndsWith(".json"));
    const absl::StatusOr<audit::Receipt> receipt = audit::ParseReceipt(text);
    ASSERT_THAT(receipt, IsOk());
    EXPECT_THAT(audit::VerifyLogProof(receipt->proof, MerkleLeafHash(AsBytes(receipt->entry)),
                                      info_.log_key),
                IsOk());
  }
  Reopen();
  EXPECT_THAT(outbox_->Add(Item(1)), StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(OutboxTest, AMismatchNeedsNoOpening) {
  ASSERT_THAT(outbox_->Add(Item(2, /*match=*/false)), IsOk());
  ASSERT_THAT(Send(), IsOk());
  EXPECT_EQ(State(2), audit::StepState::kDisputed);
  EXPECT_EQ(server_.CountCalls("SubmitOpening"), 0);
}

TEST_F(OutboxTest, AMismatchAboutTheTrainersRecordCannotBePassedOver) {
  ASSERT_THAT(outbox_->Add(Item(2, /*match=*/false)), IsOk());
  server_.HideMismatches(true);
  EXPECT_THAT(Send(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("receipt")));
  EXPECT_THAT(outbox_->Pending(), SizeIs(1));
  // About a record that nobody signed, it is a test.
  ASSERT_THAT(outbox_->Finish(1), IsOk());
  OutboxItem item = Item(1, /*match=*/false);
  item.trainer_signed = false;
  ASSERT_THAT(outbox_->Add(item), IsOk());
  ASSERT_THAT(Send(), IsOk());
  EXPECT_EQ(report_.tests, 1);
  EXPECT_THAT(outbox_->Pending(), IsEmpty());
  // The step itself is not attested yet.
  EXPECT_THAT(outbox_->Add(Item(1)), IsOk());
}

TEST_F(OutboxTest, NothingIsLostWhileTheCoordinatorIsAway) {
  ASSERT_THAT(outbox_->Add(Item(0)), IsOk());
  ASSERT_THAT(outbox_->Add(Item(1)), IsOk());
  server_.Fail("SubmitAttestation", absl::UnavailableError("away"), 1);
  EXPECT_THAT(Send(), StatusIs(absl::StatusCode::kUnavailable));
  server_.Fail("SubmitOpening", absl::UnavailableError("away"), 1);
  EXPECT_THAT(Send(), StatusIs(absl::StatusCode::kUnavailable));
  Reopen();
  EXPECT_THAT(outbox_->Pending(), SizeIs(2));
  ASSERT_THAT(Send(), IsOk());
  EXPECT_EQ(server_.CountCalls("Attest 0"), 1);  // went on with the openings
  EXPECT_EQ(State(0), audit::StepState::kConfirmed);
  EXPECT_EQ(State(1), audit::StepState::kConfirmed);
}

TEST_F(OutboxTest, ALostAnswerIsGotAgain) {
  ASSERT_THAT(outbox_->Add(Item(0)), IsOk());
  server_.Fail("SubmitAttestation", absl::UnavailableError("cut off"), 1, /*done=*/true);
  EXPECT_THAT(Send(), StatusIs(absl::StatusCode::kUnavailable));
  Reopen();  // with another request id, then
  server_.Fail("SubmitOpening", absl::UnavailableError("cut off"), 1, /*done=*/true);
  EXPECT_THAT(Send(), StatusIs(absl::StatusCode::kUnavailable));
  Reopen();
  ASSERT_THAT(Send(), IsOk());
  EXPECT_THAT(outbox_->Pending(), IsEmpty());
  EXPECT_EQ(State(0), audit::StepState::kConfirmed);
}

TEST_F(OutboxTest, WhatIsRefusedForGoodIsPutAwayAndTheRestGoesOn) {
  ASSERT_THAT(outbox_->Add(Item(0)), IsOk());
  ASSERT_THAT(outbox_->Add(Item(1)), IsOk());
  server_.Fail("SubmitAttestation",
               rpc::WithReason(absl::FailedPreconditionError("too late"), "LEASE_EXPIRED"), 1);
  ASSERT_THAT(Send(), IsOk());
  EXPECT_EQ(report_.refused, 1);
  EXPECT_EQ(report_.finished, 1);
  const auto refused = ReadAll(folder_ / "outbox/refused");
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_THAT(refused.begin()->second, HasSubstr("LEASE_EXPIRED: "));
  EXPECT_THAT(refused.begin()->second, HasSubstr("too late"));
  Reopen();
  EXPECT_EQ(outbox_->refused(), 1u);
  EXPECT_THAT(outbox_->Add(Item(0)), IsOk());  // under another lease, it may be
}

TEST_F(OutboxTest, WhatTheOperatorCanMendWaits) {
  ASSERT_THAT(outbox_->Add(Item(0)), IsOk());
  for (const char* reason : {"KEY_UNKNOWN", "QUOTA_EXCEEDED", "KEY_IN_USE", "INTERNAL"}) {
    server_.Fail("SubmitAttestation", rpc::WithReason(absl::AbortedError("no"), reason), 1);
    EXPECT_FALSE(Send().ok());
    EXPECT_THAT(outbox_->Pending(), SizeIs(1)) << reason;
  }
}

TEST_F(OutboxTest, AMadeUpChallengeIsNotAnswered) {
  ASSERT_THAT(outbox_->Add(Item(0)), IsOk());
  server_.LieAboutChallenges(true);
  EXPECT_THAT(Send(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("challenge")));
  EXPECT_EQ(server_.CountCalls("SubmitOpening"), 0);
  EXPECT_THAT(outbox_->Pending(), SizeIs(1));
}

TEST_F(OutboxTest, AReceiptOfAnotherLogIsNotBelieved) {
  ASSERT_THAT(outbox_->Add(Item(0)), IsOk());
  info_.log_key.key = key_.public_key();
  EXPECT_THAT(Send(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("receipt")));
  EXPECT_THAT(outbox_->Pending(), SizeIs(1));
}

TEST_F(OutboxTest, ItemsOfOtherLogsAreLetBe) {
  OutboxItem item = Item(0);
  item.origin = "another.example/log";
  ASSERT_THAT(outbox_->Add(item), IsOk());
  ASSERT_THAT(outbox_->Add(Item(0)), IsOk());
  ASSERT_THAT(Send(), IsOk());
  EXPECT_THAT(outbox_->Pending(), ElementsAre(1));
}

}  // namespace
}  // namespace lockstep::worker
