// SPDX-License-Identifier: Apache-2.0
//
// Logs of records: chains that hold and break, files that end within a record.
#include "audit/step_log.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

// Of the steps first ... first + count - 1.
std::vector<StepRecord> Chain(uint64_t first, int count) {
  std::vector<StepRecord> records;
  Digest chain;
  chain.bytes.fill(7);
  for (int i = 0; i < count; ++i) {
    StepRecord record;
    record.step = first + i;
    record.loss = 1.0f / static_cast<float>(i + 1);
    record.previous_chain = chain;
    chain = ChainAfter(record);
    records.push_back(record);
  }
  return records;
}

std::string Encode(const std::vector<StepRecord>& records) {
  std::string bytes;
  for (const StepRecord& record : records) bytes += EncodeStepRecord(record);
  return bytes;
}

TEST(ParseStepLog, TakesAChain) {
  for (const int count : {0, 1, 5}) {
    const auto records = Chain(30, count);
    EXPECT_THAT(ParseStepLog(AsBytes(Encode(records))), IsOkAndHolds(records));
  }
}

TEST(ParseStepLog, NamesTheFirstStepThatBreaksTheChain) {
  const auto error = [](auto change) {
    auto records = Chain(30, 5);
    change(records);
    return ParseStepLog(AsBytes(Encode(records))).status();
  };
  // The change of a record shows in the one after it.
  EXPECT_THAT(error([](auto& r) { r[2].loss += 1; }),
              StatusIs(kDataLoss, AllOf(HasSubstr("step 33"), HasSubstr("offset 1008"))));
  EXPECT_THAT(error([](auto& r) { r[0].spike.events ^= 1; }),
              StatusIs(kDataLoss, HasSubstr("step 31")));
  EXPECT_THAT(error([](auto& r) { r[3].previous_chain.bytes[0] ^= 1; }),
              StatusIs(kDataLoss, HasSubstr("step 33")));
  EXPECT_THAT(error([](auto& r) { r.erase(r.begin() + 2); }),
              StatusIs(kDataLoss, HasSubstr("expected the record of step 32; found step 33")));
  EXPECT_THAT(error([](auto& r) { std::swap(r[1], r[2]); }), StatusIs(kDataLoss));
}

TEST(ParseStepLog, RefusesAPartialRecord) {
  const std::string bytes = Encode(Chain(0, 2));
  EXPECT_THAT(ParseStepLog(AsBytes(bytes.substr(0, bytes.size() - 1))),
              StatusIs(kDataLoss, AllOf(HasSubstr("offset 336"), HasSubstr("found 335"))));
}

class StepLogTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = absl::StrCat(testing::TempDir(), "/step_log_test.", getpid());
    unlink(path_.c_str());
  }
  void TearDown() override { unlink(path_.c_str()); }

  std::string Read() { return ReadFile(path_, 1 << 20).value(); }

  std::string path_;
};

TEST_F(StepLogTest, GoesOnWhereItStopped) {
  const auto records = Chain(30, 4);
  {
    auto log = StepLog::Open(path_);
    ASSERT_THAT(log, IsOk());
    EXPECT_TRUE(log->records().empty());
    EXPECT_EQ(log->Find(30), nullptr);
    ASSERT_THAT(log->Append(records[0]), IsOk());
    ASSERT_THAT(log->Append(records[1]), IsOk());
    EXPECT_THAT(log->Sync(), IsOk());
  }
  auto log = StepLog::Open(path_);
  ASSERT_THAT(log, IsOk());
  ASSERT_THAT(log->Append(records[2]), IsOk());
  ASSERT_THAT(log->Append(records[3]), IsOk());
  EXPECT_EQ(log->records(), records);
  ASSERT_NE(log->Find(32), nullptr);
  EXPECT_EQ(*log->Find(32), records[2]);
  EXPECT_EQ(log->Find(29), nullptr);
  EXPECT_EQ(log->Find(34), nullptr);
  EXPECT_EQ(Read(), Encode(records));
}

TEST_F(StepLogTest, TakesOnlyTheNextRecord) {
  const auto records = Chain(30, 3);
  auto log = StepLog::Open(path_);
  ASSERT_THAT(log, IsOk());
  ASSERT_THAT(log->Append(records[0]), IsOk());
  EXPECT_THAT(log->Append(records[0]), StatusIs(kDataLoss));
  EXPECT_THAT(log->Append(records[2]), StatusIs(kDataLoss, HasSubstr("step 31")));
  StepRecord other = records[1];
  other.previous_chain.bytes[5] ^= 1;
  EXPECT_THAT(log->Append(other), StatusIs(kDataLoss, HasSubstr("chain")));
  EXPECT_THAT(log->Append(records[1]), IsOk());
  EXPECT_EQ(Read(), Encode({records[0], records[1]}));
}

// A kill within a write leaves any prefix.
TEST_F(StepLogTest, CutsOffAPartialRecord) {
  const auto records = Chain(30, 3);
  const std::string two = Encode({records[0], records[1]});
  for (size_t more = 0; more < kStepRecordBytes; more += 5) {
    ASSERT_THAT(WriteFileDurably(path_, AsBytes(Encode(records).substr(0, two.size() + more))),
                IsOk());
    auto log = StepLog::Open(path_);
    ASSERT_THAT(log, IsOk());
    EXPECT_EQ(log->records().size(), 2u);
    EXPECT_EQ(Read(), two);
    ASSERT_THAT(log->Append(records[2]), IsOk());
    EXPECT_EQ(Read(), Encode(records));
  }
}

TEST_F(StepLogTest, RefusesABrokenChain) {
  auto records = Chain(30, 3);
  records[1].loss = 9;
  const std::string bytes = Encode(records);
  ASSERT_THAT(WriteFileDurably(path_, AsBytes(bytes)), IsOk());
  EXPECT_THAT(StepLog::Open(path_), StatusIs(kDataLoss, HasSubstr("step 32")));
  EXPECT_EQ(Read(), bytes) << "and leaves it alone";
}

}  // namespace
}  // namespace lockstep::audit
