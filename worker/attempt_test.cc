// SPDX-License-Identifier: Apache-2.0
#include "worker/attempt.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

TEST(Attempt, OutlivesAKillAndDoesNotTravel) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "data");
  const std::string id = CurrentAttempt(folder / "data", "machine 1").value();
  EXPECT_EQ(id.size(), 16u);
  EXPECT_THAT(CurrentAttempt(folder / "data", "machine 1"), IsOkAndHolds(id));
  std::filesystem::copy(folder / "data", folder / "clone");
  EXPECT_NE(CurrentAttempt(folder / "clone", "machine 1").value(), id);
  std::filesystem::create_directory(folder / "other");
  WriteBytes(folder / "other/attempt", ReadBytes(folder / "data/attempt"));
  EXPECT_NE(CurrentAttempt(folder / "other", "machine 1").value(), id);
  // The machine was started again, or the folder is another machine's.
  const std::string second = CurrentAttempt(folder / "data", "machine 2").value();
  EXPECT_NE(second, id);
  EXPECT_THAT(CurrentAttempt(folder / "data", "machine 2"), IsOkAndHolds(second));
}

TEST(Attempt, DamageBeginsAnother) {
  const TemporaryFolder folder;
  const std::string id = CurrentAttempt(folder.path(), "m").value();
  const std::string kept = ReadBytes(folder / "attempt");
  for (const std::string& bytes : {std::string(), kept.substr(1), kept + "x"}) {
    WriteBytes(folder / "attempt", bytes);
    EXPECT_NE(CurrentAttempt(folder.path(), "m").value(), id);
  }
}

TEST(Attempt, MachinesHaveNames) { EXPECT_GT(ThisMachine().size(), 30u); }

}  // namespace
}  // namespace lockstep::worker
