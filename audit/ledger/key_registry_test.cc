// SPDX-License-Identifier: Apache-2.0
//
// Key events: who must sign, what a key is good for before and after, and what a thief can do.
#include <string>

#include "audit/ledger/ledger.h"
#include "audit/ledger/refusal.h"
#include "audit/testing/small_log.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::Optional;

template <typename T>
std::optional<Refusal> Why(const absl::StatusOr<T>& result) {
  return RefusalOf(result.status());
}

OperatorEvent Operator(int n) {
  return {.operator_key = TestPublicKey(OperatorKey(n)),
          .revocation_key = TestPublicKey(RevocationKey(n)),
          .name = "Ada",
          .contact = ""};
}
WorkerEvent Worker(int n, int w = 0) {
  return {.worker_key = TestPublicKey(WorkerKey(n, w)),
          .operator_key = TestPublicKey(OperatorKey(n)),
          .hardware = "a laptop"};
}
RevokeEvent Revoke(int key) { return {.key = TestPublicKey(key), .reason = "lost"}; }
RotateEvent Rotate(int from, int to) {
  return {.old_key = TestPublicKey(from), .new_key = TestPublicKey(to)};
}

TEST(KeyRegistry, KnowsOperatorsAndTheirWorkers) {
  SmallLog log;
  log.AddOperator(0, 2);
  const KeyRegistry& keys = log.ledger().keys();
  ASSERT_EQ(keys.operators().size(), 1u);
  ASSERT_EQ(keys.keys().size(), 3u);
  EXPECT_EQ(keys.operators()[0].name, "operator 0");
  EXPECT_EQ(keys.keys()[2].role, KeyRole::kWorker);
  EXPECT_EQ(keys.keys()[2].operator_id, 0u);
  EXPECT_EQ(keys.keys()[2].since, 2u);
  EXPECT_EQ(keys.keys()[2].hardware, "a machine");
  EXPECT_EQ(keys.Find(TestPublicKey(WorkerKey(0, 1))), 2u);
  EXPECT_EQ(keys.Find(TestPublicKey(9)), kNoId);
}

TEST(KeyRegistry, EventsAreSignedByThoseTheyConcern) {
  SmallLog log;
  EXPECT_THAT(Why(log.Append(Operator(0), {RevocationKey(0)})), Optional(Refusal::kWrongSignature));
  EXPECT_THAT(Why(log.Append(Worker(0), {OperatorKey(0), WorkerKey(0)})),
              Optional(Refusal::kUnknownKey));
  log.AddOperator(0, 0);
  EXPECT_THAT(Why(log.Append(Worker(0), {OperatorKey(0)})), Optional(Refusal::kMalformed));
  EXPECT_THAT(Why(log.Append(Worker(0), {WorkerKey(0)})), Optional(Refusal::kMalformed));
  EXPECT_THAT(Why(log.Append(Worker(0), {WorkerKey(0), 9})), Optional(Refusal::kWrongSignature));
  EXPECT_THAT(Why(log.Append(Worker(0), {OperatorKey(0), 9})), Optional(Refusal::kWrongSignature));
  EXPECT_THAT(log.Append(Worker(0), {WorkerKey(0), OperatorKey(0)}), IsOk());
  // A worker vouches for nobody.
  const WorkerEvent by_worker = {.worker_key = TestPublicKey(WorkerKey(0, 1)),
                                 .operator_key = TestPublicKey(WorkerKey(0)),
                                 .hardware = "x"};
  EXPECT_THAT(Why(log.Append(by_worker, {WorkerKey(0, 1), WorkerKey(0)})),
              Optional(Refusal::kWrongRole));
}

TEST(KeyRegistry, AKeyIsRegisteredOnce) {
  SmallLog log;
  log.AddOperator(0);
  log.AddOperator(1, 0);
  EXPECT_THAT(Why(log.Append(Operator(0), {OperatorKey(0)})), Optional(Refusal::kDuplicate));
  EXPECT_THAT(Why(log.Append(Worker(0), {WorkerKey(0), OperatorKey(0)})),
              Optional(Refusal::kDuplicate));
  // Not by another operator either, nor as an operator.
  const WorkerEvent taken = {.worker_key = TestPublicKey(WorkerKey(0)),
                             .operator_key = TestPublicKey(OperatorKey(1)),
                             .hardware = "x"};
  EXPECT_THAT(Why(log.Append(taken, {WorkerKey(0), OperatorKey(1)})),
              Optional(Refusal::kDuplicate));
  OperatorEvent promoted = Operator(2);
  promoted.operator_key = TestPublicKey(WorkerKey(0));
  EXPECT_THAT(Why(log.Append(promoted, {WorkerKey(0)})), Optional(Refusal::kDuplicate));
}

TEST(KeyRegistry, ARotatedKeyGivesWay) {
  SmallLog log;
  log.AddOperator(0);
  EXPECT_THAT(Why(log.Append(Rotate(WorkerKey(0), 50), {WorkerKey(0)})),
              Optional(Refusal::kMalformed));
  EXPECT_THAT(Why(log.Append(Rotate(WorkerKey(0), 50), {OperatorKey(0), 50})),
              Optional(Refusal::kWrongSignature));
  EXPECT_THAT(log.Append(Rotate(WorkerKey(0), 50), {WorkerKey(0), 50}), IsOk());
  const KeyRegistry& keys = log.ledger().keys();
  const uint32_t old_id = keys.Find(TestPublicKey(WorkerKey(0)));
  const uint32_t new_id = keys.Find(TestPublicKey(50));
  EXPECT_FALSE(keys.IsGood(old_id));
  EXPECT_EQ(keys.keys()[old_id].until, keys.keys()[new_id].since);
  EXPECT_TRUE(keys.IsGood(new_id));
  EXPECT_EQ(keys.keys()[new_id].role, KeyRole::kWorker);
  EXPECT_EQ(keys.keys()[new_id].operator_id, 0u);
  EXPECT_EQ(keys.keys()[old_id].first_id, old_id);
  EXPECT_EQ(keys.keys()[new_id].first_id, old_id);
  EXPECT_THAT(Why(log.Append(Rotate(WorkerKey(0), 51), {WorkerKey(0), 51})),
              Optional(Refusal::kRevokedKey));
  EXPECT_THAT(Why(log.Append(Rotate(50, WorkerKey(0)), {50, WorkerKey(0)})),
              Optional(Refusal::kDuplicate));
  EXPECT_THAT(log.Append(Rotate(50, 52), {50, 52}), IsOk());
  EXPECT_EQ(keys.keys()[keys.Find(TestPublicKey(52))].first_id, old_id) << "the first of them all";
}

TEST(KeyRegistry, RotationsLeadToThePresentKey) {
  SmallLog log;
  log.AddOperator(0);
  const auto rotations = [&](int key) {
    return log.ledger().keys().RotationsFrom(TestPublicKey(key));
  };
  EXPECT_THAT(rotations(WorkerKey(0)), ::testing::IsEmpty());
  EXPECT_THAT(rotations(99), ::testing::IsEmpty());
  const uint64_t first = log.entries().size();
  ASSERT_THAT(log.Append(Rotate(WorkerKey(0), 50), {WorkerKey(0), 50}), IsOk());
  log.AddOperator(1);
  const uint64_t second = log.entries().size();
  ASSERT_THAT(log.Append(Rotate(50, 51), {50, 51}), IsOk());
  EXPECT_THAT(rotations(WorkerKey(0)), ::testing::ElementsAre(first, second));
  EXPECT_THAT(rotations(50), ::testing::ElementsAre(second));
  EXPECT_THAT(rotations(51), ::testing::IsEmpty());
  ASSERT_THAT(log.Append(RevokeEvent{.key = TestPublicKey(51), .reason = "lost"}, {51}), IsOk());
  EXPECT_THAT(rotations(WorkerKey(0)), ::testing::ElementsAre(first, second));
}

TEST(KeyRegistry, AnOperatorsNewKeyActsForIt) {
  SmallLog log;
  log.AddOperator(0, 0);
  EXPECT_THAT(log.Append(Rotate(OperatorKey(0), 50), {OperatorKey(0), 50}), IsOk());
  EXPECT_THAT(Why(log.Append(Worker(0), {WorkerKey(0), OperatorKey(0)})),
              Optional(Refusal::kRevokedKey));
  WorkerEvent worker = Worker(0);
  worker.operator_key = TestPublicKey(50);
  EXPECT_THAT(log.Append(worker, {WorkerKey(0), 50}), IsOk());
  EXPECT_EQ(log.ledger().keys().operators().size(), 1u);
  EXPECT_THAT(Why(log.Append(Revoke(WorkerKey(0)), {OperatorKey(0)})),
              Optional(Refusal::kWrongRole));
  EXPECT_THAT(log.Append(Revoke(WorkerKey(0)), {50}), IsOk());
}

TEST(KeyRegistry, WhoMayRevoke) {
  SmallLog log;
  log.AddOperator(0, 3);
  log.AddOperator(1, 1);
  EXPECT_THAT(Why(log.Append(Revoke(WorkerKey(0)), {OperatorKey(1)})),
              Optional(Refusal::kWrongRole));
  EXPECT_THAT(Why(log.Append(Revoke(WorkerKey(0)), {RevocationKey(1)})),
              Optional(Refusal::kWrongRole));
  EXPECT_THAT(Why(log.Append(Revoke(WorkerKey(0)), {WorkerKey(0, 1)})),
              Optional(Refusal::kWrongRole));
  EXPECT_THAT(Why(log.Append(Revoke(9), {9})), Optional(Refusal::kUnknownKey));
  EXPECT_THAT(log.Append(Revoke(WorkerKey(0)), {WorkerKey(0)}), IsOk());
  EXPECT_THAT(log.Append(Revoke(WorkerKey(0, 1)), {OperatorKey(0)}), IsOk());
  EXPECT_THAT(log.Append(Revoke(WorkerKey(0, 2)), {RevocationKey(0)}), IsOk());
  for (int w = 0; w < 3; ++w) {
    EXPECT_THAT(Why(log.Append(Revoke(WorkerKey(0, w)), {OperatorKey(0)})),
                Optional(Refusal::kRevokedKey));
  }
  EXPECT_TRUE(log.ledger().keys().IsGood(log.ledger().keys().Find(TestPublicKey(WorkerKey(1)))));
}

TEST(KeyRegistry, TheRevocationKeyHasTheLastWord) {
  SmallLog log;
  log.AddOperator(0);
  // A thief of the operator's key puts another in its place; the revocation key ends them all.
  EXPECT_THAT(log.Append(Rotate(OperatorKey(0), 50), {OperatorKey(0), 50}), IsOk());
  EXPECT_THAT(log.Append(Revoke(50), {RevocationKey(0)}), IsOk());
  EXPECT_NE(log.ledger().keys().operators()[0].until, kNeverEnded);
  EXPECT_FALSE(log.ledger().keys().IsGood(log.ledger().keys().Find(TestPublicKey(WorkerKey(0)))));
  WorkerEvent worker = Worker(0, 1);
  worker.operator_key = TestPublicKey(50);
  EXPECT_THAT(Why(log.Append(worker, {WorkerKey(0, 1), 50})), Optional(Refusal::kRevokedKey));
  EXPECT_THAT(Why(log.Append(Rotate(WorkerKey(0), 51), {WorkerKey(0), 51})),
              Optional(Refusal::kRevokedKey));
}

}  // namespace
}  // namespace lockstep::audit
