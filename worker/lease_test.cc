// SPDX-License-Identifier: Apache-2.0
#include "worker/lease.h"

#include <functional>

#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/small_work.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(Lease, AGoodOneIsRead) {
  SmallWork work;
  const absl::StatusOr<WorkLease> lease = ReadLease(work.Lease(3, 4, /*from_state=*/true));
  ASSERT_THAT(lease, IsOk());
  EXPECT_EQ(lease->run_id, work.run().run_id());
  EXPECT_EQ(lease->begin, 3u);
  EXPECT_EQ(lease->end, 4u);
  EXPECT_EQ(lease->start_step, 2u);
  EXPECT_THAT(lease->start_files, SizeIs(4));
  EXPECT_THAT(lease->records, ElementsAre(work.run().records[2], work.run().records[3]));
  EXPECT_EQ(lease->heartbeat, absl::Milliseconds(200));
  EXPECT_EQ(lease->id_hex().size(), 32u);
}

TEST(Lease, ARecordThatTheTrainerDidNotPublishIsReadLikeAnyOther) {
  SmallWork work;
  EXPECT_THAT(ReadLease(work.WithFalseRecord(work.Lease(0, 2))), IsOk());
}

// Records by the key that came after the registration's are the trainer's as well.
TEST(Lease, TheTrainersKeyMayHaveBeenReplaced) {
  SmallWork work;
  const int kNewKey = 901;
  v1::Lease lease = work.Lease(0, 2);
  lease.set_records(1, audit::TestEntry(audit::PublishedRecord{.run_id = work.run().run_id(),
                                                               .record = work.run().records[1]},
                                        {kNewKey}));
  EXPECT_THAT(ReadLease(lease), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("records")));
  const audit::RotateEvent rotation = {.old_key = audit::TestPublicKey(audit::kTrainerKey),
                                       .new_key = audit::TestPublicKey(kNewKey)};
  for (const std::vector<int>& signers :
       {std::vector<int>{kNewKey, 902}, std::vector<int>{audit::kTrainerKey, 902}}) {
    v1::Lease forged = lease;
    forged.add_trainer_rotations(audit::TestEntry(rotation, signers));
    EXPECT_THAT(ReadLease(forged), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("rotation")));
  }
  lease.add_trainer_rotations(audit::TestEntry(rotation, {audit::kTrainerKey, kNewKey}));
  const absl::StatusOr<WorkLease> read = ReadLease(lease);
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT(read->trainer_signed, ElementsAre(true, true));
  lease.add_trainer_rotations(lease.trainer_rotations(0));
  EXPECT_THAT(ReadLease(lease), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("rotation")));
}

TEST(Lease, WhatIsWrongIsRefused) {
  SmallWork work;
  using Change = std::function<void(v1::Lease*)>;
  const std::vector<std::pair<const char*, Change>> changes = {
      {"id", [](v1::Lease* l) { l->set_lease_id("short"); }},
      {"nonce", [](v1::Lease* l) { l->set_nonce(std::string(31, 'x')); }},
      {"run", [](v1::Lease* l) { l->set_run_id(std::string(32, 'x')); }},
      {"run", [](v1::Lease* l) { l->set_run_envelope("{}"); }},
      {"run", [&](v1::Lease* l) { l->set_run_envelope(l->records(0)); }},
      {"trainer",
       [&](v1::Lease* l) {
         l->set_run_envelope(audit::TestEntry(work.run().registration, {audit::kLogKey}));
       }},
      {"steps", [](v1::Lease* l) { l->set_end_step(l->begin_step()); }},
      {"steps", [](v1::Lease* l) { l->set_end_step(UINT64_MAX); }},
      {"steps", [](v1::Lease* l) { l->mutable_start()->set_step(4); }},
      {"records", [](v1::Lease* l) { l->mutable_records()->RemoveLast(); }},
      {"records", [](v1::Lease* l) { l->mutable_records()->SwapElements(0, 1); }},
      {"records", [](v1::Lease* l) { *l->mutable_records(1) = l->run_envelope(); }},
      {"record 0", [](v1::Lease* l) { *l->mutable_records(0) = "\xff"; }},
      {"heartbeat", [](v1::Lease* l) { l->set_heartbeat_ms(0); }},
      {"heartbeat", [](v1::Lease* l) { l->set_heartbeat_ms(INT64_MAX); }},
      {"heartbeat", [](v1::Lease* l) { l->set_lifetime_ms(-1); }},
      {"start", [](v1::Lease* l) { l->mutable_start()->clear_files(); }},
      {"start", [](v1::Lease* l) { l->mutable_start()->mutable_files()->RemoveLast(); }},
      {"start", [](v1::Lease* l) { l->mutable_start()->mutable_files(0)->set_name("../../key"); }},
      {"start", [](v1::Lease* l) { *l->mutable_start()->mutable_files(0) = l->start().files(1); }},
      {"size", [](v1::Lease* l) { l->mutable_start()->mutable_files(0)->set_size(0); }},
      {"", [](v1::Lease* l) { l->mutable_start()->mutable_files(0)->set_sha256("x"); }},
      {"mirror",
       [](v1::Lease* l) { l->mutable_start()->mutable_files(0)->add_mirrors("file:///etc"); }},
  };
  for (const auto& [expected, change] : changes) {
    v1::Lease lease = work.Lease(2, 4, /*from_state=*/true);
    change(&lease);
    EXPECT_THAT(ReadLease(lease),
                ::testing::AnyOf(StatusIs(absl::StatusCode::kDataLoss, HasSubstr(expected)),
                                 StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(expected))))
        << expected;
  }
}

TEST(Lease, OfManyMirrorsTheFirstAreTaken) {
  SmallWork work;
  v1::Lease message = work.Lease(2, 4, /*from_state=*/true);
  v1::Artifact* const artifact = message.mutable_start()->mutable_files(0);
  artifact->clear_mirrors();
  for (int i = 0; i < 17; ++i) artifact->add_mirrors(absl::StrCat("https://m", i));
  const absl::StatusOr<WorkLease> lease = ReadLease(message);
  ASSERT_THAT(lease, IsOk());
  ASSERT_THAT(lease->start_files[0].mirrors, SizeIs(16));
  EXPECT_EQ(lease->start_files[0].mirrors[15], "https://m15/artifact");
}

TEST(Lease, ArtifactsHaveAPlace) {
  EXPECT_EQ(ArtifactPlace("https://a"), "https://a/artifact");
  EXPECT_EQ(ArtifactPlace("https://a/b/"), "https://a/b/artifact");
  EXPECT_EQ(ArtifactPlace("https://a/artifact"), "https://a/artifact/artifact");
}

}  // namespace
}  // namespace lockstep::worker
