// SPDX-License-Identifier: Apache-2.0
//
// What a publisher reads and keeps on this machine: records of a run at work, its folder, its key.
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "audit/testing/small_log.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trainer/local_records.h"
#include "trainer/publish_folder.h"
#include "trainer/trainer_key.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;

class LocalRecordsTest : public ::testing::Test {
 protected:
  LocalRecordsTest() {
    for (int i = 0; i < 5; ++i) {
      records_.push_back(
          audit::TestRecord(registration_, records_.empty() ? nullptr : &records_.back()));
      bytes_ += audit::EncodeStepRecord(records_.back());
    }
  }
  LocalRecords Local() const {
    return LocalRecords(folder_ / "steps.log", 0, registration_.first_chain());
  }

  TemporaryFolder folder_;
  const audit::RunRegistration registration_ = audit::TestRegistration();
  std::vector<audit::StepRecord> records_;
  std::string bytes_;
};

TEST_F(LocalRecordsTest, AreReadByPlace) {
  EXPECT_THAT(Local().EndStep(), IsOkAndHolds(0u));
  EXPECT_THAT(Local().ChainBefore(0), IsOkAndHolds(registration_.first_chain()));
  WriteBytes(folder_ / "steps.log", bytes_ + "a part");
  EXPECT_THAT(Local().EndStep(), IsOkAndHolds(5u));
  EXPECT_THAT(Local().ChainBefore(5), IsOkAndHolds(audit::ChainAfter(records_[4])));
  for (uint64_t begin = 0; begin < 5; ++begin) {
    for (uint64_t end = begin + 1; end <= 5; ++end) {
      EXPECT_THAT(Local().Read(begin, end), IsOkAndHolds(std::vector<audit::StepRecord>(
                                                records_.begin() + begin, records_.begin() + end)));
    }
  }
}

TEST_F(LocalRecordsTest, AreHeldAgainstTheChain) {
  const size_t size = audit::kStepRecordBytes;
  std::string swapped = bytes_;
  swapped.replace(2 * size, size, bytes_.substr(3 * size, size));
  WriteBytes(folder_ / "steps.log", swapped);
  EXPECT_THAT(Local().Read(0, 5), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("step 2")));
  // A record that begins what is asked for is held against the one before it.
  EXPECT_THAT(Local().Read(2, 3), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Local().Read(0, 2), IsOk());
  for (size_t at = size; at < 2 * size; ++at) {
    std::string changed = bytes_;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    WriteBytes(folder_ / "steps.log", changed);
    EXPECT_THAT(Local().Read(0, 3), StatusIs(absl::StatusCode::kDataLoss)) << at;
  }
}

class PublishFolderTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  const engine::RunFolder run_ =
      engine::RunFolder::Create(folder_ / "run", audit::Preset("golden").value(), {}).value();
};

TEST_F(PublishFolderTest, RemembersAndHasOneOwner) {
  const PublishProgress progress{.next_step = 7, .chain = Sha256(AsBytes("chain"))};
  {
    const auto kept = PublishFolder::Open(run_);
    ASSERT_THAT(kept, IsOk());
    EXPECT_THAT(PublishFolder::Open(run_), StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(kept->ReadProgress(), IsOkAndHolds(std::nullopt));
    EXPECT_THAT(kept->ReadRegistration(), IsOkAndHolds(std::nullopt));
    EXPECT_THAT(kept->ReadLogKey(), IsOkAndHolds(std::nullopt));
    EXPECT_THAT(kept->SaveProgress(progress), IsOk());
    EXPECT_THAT(kept->SaveRegistration("an entry"), IsOk());
    EXPECT_THAT(kept->SaveLogKey("a+key"), IsOk());
  }
  const auto kept = PublishFolder::Open(run_);
  ASSERT_THAT(kept, IsOk());
  EXPECT_THAT(kept->ReadProgress(), IsOkAndHolds(progress));
  EXPECT_THAT(kept->ReadRegistration(), IsOkAndHolds("an entry"));
  EXPECT_THAT(kept->ReadLogKey(), IsOkAndHolds("a+key"));
  WriteBytes(kept->path() + "/progress.json", "{\"next_step\":7}");
  EXPECT_THAT(kept->ReadProgress(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(TrainerKey, IsMadeOnceAndForItsOwnerAlone) {
  const TemporaryFolder folder;
  const std::string path = folder / "a/b/trainer.key";
  const auto made = LoadOrCreateTrainerKey(path);
  ASSERT_THAT(made, IsOk());
  struct stat status = {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto again = LoadOrCreateTrainerKey(path);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->public_key(), made->public_key());
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_THAT(LoadOrCreateTrainerKey(path), StatusIs(absl::StatusCode::kFailedPrecondition));
  WriteBytes(folder / "none", "no key");
  ASSERT_EQ(chmod((folder / "none").c_str(), 0600), 0);
  EXPECT_THAT(LoadOrCreateTrainerKey(folder / "none"), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(TrainerKey, LiesWhereConfigurationLies) {
  ASSERT_EQ(setenv("HOME", "/home/somebody", 1), 0);
  ASSERT_EQ(setenv("XDG_CONFIG_HOME", "/elsewhere", 1), 0);
  EXPECT_THAT(DefaultTrainerKeyPath(), IsOkAndHolds("/elsewhere/lockstep/trainer.key"));
  ASSERT_EQ(setenv("XDG_CONFIG_HOME", "relative", 1), 0);
  EXPECT_THAT(DefaultTrainerKeyPath(), IsOkAndHolds("/home/somebody/.config/lockstep/trainer.key"));
  ASSERT_EQ(unsetenv("XDG_CONFIG_HOME"), 0);
  ASSERT_EQ(unsetenv("HOME"), 0);
  EXPECT_THAT(DefaultTrainerKeyPath(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace lockstep::trainer
