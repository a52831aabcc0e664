// SPDX-License-Identifier: Apache-2.0
#include "worker/keys.h"

#include <sys/stat.h>

#include "audit/evidence/log_entry.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

audit::LogEntry Parse(const std::string& bytes) { return audit::LogEntry::Parse(bytes).value(); }

class KeysTest : public ::testing::Test {
 protected:
  TemporaryFolder temporary_;
  KeyFolder keys_ = KeyFolder::Open(temporary_ / "keys").value();
};

TEST_F(KeysTest, TheWorkersKeyIsMadeOnceAndItsOwnersOnly) {
  EXPECT_THAT(keys_.Worker(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("keys init")));
  ASSERT_THAT(keys_.InitWorker(), IsOk());
  const Ed25519PublicKey key = keys_.Worker()->public_key();
  ASSERT_THAT(keys_.InitWorker(), IsOk());
  EXPECT_EQ(keys_.Worker()->public_key(), key);
  struct stat file;
  ASSERT_EQ(stat(keys_.WorkerPath().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  ASSERT_EQ(chmod(keys_.WorkerPath().c_str(), 0640), 0);
  EXPECT_THAT(keys_.Worker(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(KeysTest, OperatorThenWorkerAreSignedByWhoMust) {
  ASSERT_THAT(keys_.InitWorker(), IsOk());
  ASSERT_THAT(keys_.InitOperator("somebody", "", temporary_ / "revocation.key"), IsOk());
  const Ed25519PrivateKey operator_key = keys_.Operator().value();
  ASSERT_THAT(keys_.Certify(operator_key, "a machine"), IsOk());
  const std::vector<std::string> entries = keys_.Entries().value();
  ASSERT_THAT(entries, SizeIs(2));
  const audit::LogEntry first = Parse(entries[0]);
  EXPECT_TRUE(first.IsSignedBy(operator_key.public_key()));
  EXPECT_THAT(first.signer_ids(), SizeIs(1));
  const audit::LogEntry second = Parse(entries[1]);
  EXPECT_TRUE(second.IsSignedBy(operator_key.public_key()));
  EXPECT_TRUE(second.IsSignedBy(keys_.Worker()->public_key()));
  const auto& event = std::get<audit::WorkerEvent>(std::get<audit::KeyEvent>(second.payload()));
  EXPECT_EQ(event.hardware, "a machine");
  // A second operator is refused before anything is made.
  EXPECT_THAT(keys_.InitOperator("other", "", temporary_ / "other.key"),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_NE(access((temporary_ / "other.key").c_str(), F_OK), 0);
}

TEST_F(KeysTest, TextsAreHeldToTheirLimits) {
  ASSERT_THAT(keys_.InitWorker(), IsOk());
  const Ed25519PrivateKey key = Ed25519PrivateKey::Generate().value();
  EXPECT_FALSE(keys_.Certify(key, "").ok());
  EXPECT_FALSE(keys_.Certify(key, std::string(129, 'x')).ok());
  EXPECT_FALSE(keys_.Certify(key, "a\nb").ok());
  EXPECT_THAT(keys_.Entries(), IsOkAndHolds(SizeIs(0)));
}

TEST_F(KeysTest, ARotationIsSignedByBothAndFinishesWhatWasCutOff) {
  ASSERT_THAT(keys_.InitWorker(), IsOk());
  const Ed25519PublicKey old_key = keys_.Worker()->public_key();
  // As a kill leaves it once the new key is on the disk.
  const Ed25519PrivateKey next = Ed25519PrivateKey::Create(keys_.WorkerPath() + ".next").value();
  ASSERT_THAT(keys_.RotateWorker(), IsOk());
  EXPECT_EQ(keys_.Worker()->public_key(), next.public_key());
  const std::vector<std::string> entries = keys_.Entries().value();
  ASSERT_THAT(entries, SizeIs(1));
  const audit::LogEntry entry = Parse(entries[0]);
  EXPECT_TRUE(entry.IsSignedBy(old_key));
  EXPECT_TRUE(entry.IsSignedBy(next.public_key()));
  const std::string kept = keys_.WorkerPath() + "." + old_key.Id().ToHex().substr(0, 16);
  EXPECT_EQ(Ed25519PrivateKey::Load(kept)->public_key(), old_key);
}

TEST_F(KeysTest, ARotationCutOffBehindItsEntryDoesNotMakeASecond) {
  ASSERT_THAT(keys_.InitWorker(), IsOk());
  const std::string worker = ReadBytes(keys_.WorkerPath());
  ASSERT_THAT(keys_.RotateWorker(), IsOk());
  const std::string next = ReadBytes(keys_.WorkerPath());
  // Back to before the rename.
  WriteBytes(keys_.WorkerPath() + ".next", next);
  ASSERT_EQ(chmod((keys_.WorkerPath() + ".next").c_str(), 0600), 0);
  WriteBytes(keys_.WorkerPath(), worker);
  ASSERT_THAT(keys_.RotateWorker(), IsOk());
  EXPECT_EQ(ReadBytes(keys_.WorkerPath()), next);
  EXPECT_THAT(keys_.Entries(), IsOkAndHolds(SizeIs(1)));
}

TEST_F(KeysTest, ARevocation) {
  const Ed25519PrivateKey signer = Ed25519PrivateKey::Generate().value();
  ASSERT_THAT(keys_.Revoke(signer, signer.public_key(), "stolen"), IsOk());
  EXPECT_TRUE(Parse(keys_.Entries().value()[0]).IsSignedBy(signer.public_key()));
}

}  // namespace
}  // namespace lockstep::worker
