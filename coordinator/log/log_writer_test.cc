// SPDX-License-Identifier: Apache-2.0
//
// The log against an independent checker: as it grows, after every call of the system failed or was
// the last, after power cuts, and with parts of it restored from old backups.

#include "coordinator/log/log_writer.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "audit/log/log_proof.h"
#include "base/ed25519.h"
#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "coordinator/testing/faulty_calls.h"
#include "coordinator/testing/log_checker.h"
#include "coordinator/testing/scratch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kOutOfRange = absl::StatusCode::kOutOfRange;
constexpr auto kPermissionDenied = absl::StatusCode::kPermissionDenied;

constexpr char kOrigin[] = "log.example/test";

std::vector<std::string> MakeEntries(size_t first, size_t count) {
  std::vector<std::string> entries;
  for (size_t i = first; i < first + count; ++i) {
    entries.push_back(absl::StrCat("entry ", i, std::string(i % 40, '.')));
  }
  return entries;
}

class LogWriterTest : public ::testing::Test {
 protected:
  LogWriterTest() : key_(*Ed25519PrivateKey::FromSeed(AsBytes(std::string(32, 'k')))) {}

  absl::StatusOr<std::unique_ptr<LogWriter>> Open(const std::string& name = "log") {
    return LogWriter::Open({.directory = scratch_.Path(name), .origin = kOrigin}, key_);
  }
  absl::StatusOr<std::vector<std::string>> Check(const std::string& name = "log") {
    return CheckLog(LogWriter::PublicDirectory(scratch_.Path(name)), kOrigin, key_.public_key());
  }
  // Appends to the log until it has `size` entries, in batches.
  absl::Status Grow(size_t size, size_t batch) {
    absl::StatusOr<std::unique_ptr<LogWriter>> log = Open();
    if (!log.ok()) return log.status();
    for (size_t at = (*log)->size(); at < size; at = (*log)->size()) {
      absl::Status status = (*log)->Append(MakeEntries(at, std::min(batch, size - at)));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  Scratch scratch_;
  const Ed25519PrivateKey key_;
};

TEST_F(LogWriterTest, BeginsEmpty) {
  absl::StatusOr<std::unique_ptr<LogWriter>> log = Open();
  ASSERT_THAT(log, IsOk());
  EXPECT_EQ((*log)->size(), 0);
  EXPECT_THAT(Check(), IsOkAndHolds(SizeIs(0)));
  EXPECT_THAT((*log)->Receipt(0), StatusIs(kOutOfRange));
}

TEST_F(LogWriterTest, GrowsOverTheEdgesOfTiles) {
  size_t size = 0;
  for (const size_t next : {1, 2, 3, 254, 255, 256, 257, 258, 511, 512, 1000, 1300}) {
    ASSERT_THAT(Grow(next, next - size), IsOk());
    ASSERT_THAT(Check(), IsOkAndHolds(MakeEntries(0, next))) << next;
    size = next;
  }
}

TEST_F(LogWriterTest, OneBatchMayCrossManyTiles) {
  ASSERT_THAT(Grow(300, 300), IsOk());
  ASSERT_THAT(Grow(66'000, 20'000), IsOk());
  EXPECT_THAT(Check(), IsOkAndHolds(MakeEntries(0, 66'000)));
}

TEST_F(LogWriterTest, KeepsNoPartialTilesOfFullOnes) {
  ASSERT_THAT(Grow(600, 7), IsOk());
  const std::string tiles = LogWriter::PublicDirectory(scratch_.Path("log")) + "/tile/";
  EXPECT_FALSE(fs::exists(tiles + "entries/001.p"));
  EXPECT_FALSE(fs::exists(tiles + "0/000.p"));
  EXPECT_TRUE(fs::exists(tiles + "0/002.p"));
  EXPECT_TRUE(fs::is_empty(scratch_.Path("log/stage")));
}

TEST_F(LogWriterTest, ProvesWhatItHas) {
  absl::StatusOr<std::unique_ptr<LogWriter>> log = Open();
  ASSERT_THAT(log, IsOk());
  const std::vector<std::string> entries = MakeEntries(0, 300);
  for (size_t at = 0; at < 300; at += 60) {
    ASSERT_THAT((*log)->Append(std::span(entries).subspan(at, 60)), IsOk());
  }
  for (const uint64_t index : {0, 1, 59, 60, 255, 256, 299}) {
    const absl::StatusOr<audit::LogProof> receipt = (*log)->Receipt(index);
    ASSERT_THAT(receipt, IsOk());
    EXPECT_THAT(
        audit::VerifyLogProof(*receipt, MerkleLeafHash(AsBytes(entries[index])), (*log)->key()),
        IsOk());
    EXPECT_THAT(audit::VerifyLogProof(*receipt, MerkleLeafHash(AsBytes("another")), (*log)->key()),
                StatusIs(kInvalid));
  }
  EXPECT_THAT((*log)->Receipt(300), StatusIs(kOutOfRange));
  EXPECT_THAT((*log)->ConsistencyProof(60, 301), StatusIs(kOutOfRange));
  EXPECT_THAT((*log)->InclusionProof(0, 301), StatusIs(kOutOfRange));
  MerkleFrontier before;
  for (size_t i = 0; i < 60; ++i) before.Append(MerkleLeafHash(AsBytes(entries[i])));
  EXPECT_THAT(VerifyMerkleConsistency(60, 300, *(*log)->ConsistencyProof(60, 300), before.Root(),
                                      (*log)->Root()),
              IsOk());
}

TEST_F(LogWriterTest, RefusesEntriesThatNoLogTakes) {
  absl::StatusOr<std::unique_ptr<LogWriter>> log = Open();
  ASSERT_THAT(log, IsOk());
  EXPECT_THAT((*log)->Append({}), StatusIs(kInvalid));
  EXPECT_THAT((*log)->Append(std::vector<std::string>{"good", ""}), StatusIs(kInvalid));
  EXPECT_THAT((*log)->Append(std::vector<std::string>{std::string(65'536, 'x')}),
              StatusIs(kInvalid, HasSubstr("65536")));
  const std::vector<std::string> longest = {std::string(65'535, 'x')};
  EXPECT_THAT((*log)->Append(longest), IsOk());
  EXPECT_THAT(Check(), IsOkAndHolds(longest));
}

TEST_F(LogWriterTest, RefusesASecondProcess) {
  const absl::StatusOr<std::unique_ptr<LogWriter>> log = Open();
  ASSERT_THAT(log, IsOk());
  EXPECT_THAT(Open(), StatusIs(kFailedPrecondition, HasSubstr("another process")));
}

TEST_F(LogWriterTest, RefusesAnotherKeyOrOrigin) {
  ASSERT_THAT(Grow(3, 3), IsOk());
  const auto other = *Ed25519PrivateKey::FromSeed(AsBytes(std::string(32, 'o')));
  EXPECT_THAT(LogWriter::Open({.directory = scratch_.Path("log"), .origin = kOrigin}, other),
              StatusIs(kPermissionDenied));
  EXPECT_THAT(LogWriter::Open({.directory = scratch_.Path("log"), .origin = "other"}, key_),
              StatusIs(kPermissionDenied));
  EXPECT_THAT(LogWriter::Open({.directory = scratch_.Path("log"), .origin = "two words"}, key_),
              StatusIs(kInvalid));
  EXPECT_THAT(Grow(4, 1), IsOk());
}

TEST_F(LogWriterTest, RefusesAnOldDatabase) {
  ASSERT_THAT(Grow(5, 5), IsOk());
  scratch_.Copy("log", "old");
  ASSERT_THAT(Grow(6, 1), IsOk());
  scratch_.Copy("old/checkpoint.sqlite", "log/checkpoint.sqlite");
  EXPECT_THAT(Open(), StatusIs(kFailedPrecondition, HasSubstr("old backup")));
  fs::remove(scratch_.Path("log/checkpoint.sqlite"));
  EXPECT_THAT(Open(), StatusIs(kFailedPrecondition, HasSubstr("old backup")));
  EXPECT_THAT(Check(), IsOkAndHolds(MakeEntries(0, 6)));  // and has touched nothing
}

TEST_F(LogWriterTest, RefusesOldOrMissingFiles) {
  ASSERT_THAT(Grow(5, 5), IsOk());
  scratch_.Copy("log", "old");
  ASSERT_THAT(Grow(6, 1), IsOk());
  scratch_.Copy("log", "new");
  scratch_.Copy("old/public", "log/public");
  EXPECT_THAT(Open(), StatusIs(kFailedPrecondition, HasSubstr("old backup")));
  fs::remove_all(scratch_.Path("log/public"));
  EXPECT_THAT(Open(), StatusIs(kFailedPrecondition, HasSubstr("removed")));
  scratch_.Copy("new/public", "log/public");
  EXPECT_THAT(Open(), IsOk());
  fs::remove_all(scratch_.Path("log/public/tile/0"));
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(LogWriterTest, RefusesDamage) {
  ASSERT_THAT(Grow(5, 5), IsOk());
  scratch_.Copy("log", "good");
  for (const char* path : {"/tile/0/000.p/5", "/tile/entries/000.p/5", "/checkpoint"}) {
    scratch_.Copy("good", "log");
    const std::string whole = LogWriter::PublicDirectory(scratch_.Path("log")) + path;
    std::string bytes = *ReadFile(whole, 1 << 20);
    bytes[bytes.size() / 2] ^= 1;
    ASSERT_THAT(WriteFileDurably(whole, AsBytes(bytes)), IsOk());
    EXPECT_FALSE(Open().ok()) << path;
  }
}

TEST_F(LogWriterTest, RefusesTwoRootsOfOneSize) {
  ASSERT_THAT(Grow(5, 5), IsOk());
  scratch_.Copy("log", "fork");
  ASSERT_THAT(Grow(6, 1), IsOk());
  {
    absl::StatusOr<std::unique_ptr<LogWriter>> fork = Open("fork");
    ASSERT_THAT(fork, IsOk());
    ASSERT_THAT((*fork)->Append(std::vector<std::string>{"another sixth"}), IsOk());
  }
  scratch_.Copy("fork/checkpoint.sqlite", "log/checkpoint.sqlite");
  EXPECT_THAT(Open(), StatusIs(kDataLoss, HasSubstr("two roots are signed for 6 entries")));
}

// What the tests of faults do: a log of 250 entries, then batches that fill a tile and begin one.
constexpr size_t kBefore = 250;
constexpr size_t kBatches[] = {3, 5, 1};

class LogFaultTest : public LogWriterTest {
 protected:
  LogFaultTest() {
    EXPECT_THAT(Grow(kBefore, 125), IsOk());
    scratch_.Copy("log", "start");
  }

  // Entries of which Append said OK, with `fault`.
  size_t AppendUnder(const Fault& fault, int64_t* calls) {
    scratch_.Copy("start", "log");
    ArmFault(scratch_.Path("log"), fault);
    size_t acknowledged = kBefore;
    {
      absl::StatusOr<std::unique_ptr<LogWriter>> log = Open();
      for (const size_t batch : kBatches) {
        if (!log.ok()) break;
        const absl::Status status = (*log)->Append(MakeEntries(acknowledged, batch));
        if (!status.ok()) {
          EXPECT_THAT((*log)->Append(MakeEntries(0, 1)), StatusIs(kFailedPrecondition));
          EXPECT_EQ((*log)->size(), acknowledged);
          break;
        }
        acknowledged += batch;
      }
    }
    *calls = CallsMade();
    DisarmFault();
    return acknowledged;
  }

  // Opens the log again: it has all acknowledged entries, perhaps one batch more, and goes on.
  void ExpectRecovers(size_t acknowledged) {
    {
      const absl::StatusOr<std::unique_ptr<LogWriter>> log = Open();
      ASSERT_THAT(log, IsOk());
      EXPECT_TRUE(fs::is_empty(scratch_.Path("log/stage")));
    }
    const absl::StatusOr<std::vector<std::string>> entries = Check();
    ASSERT_THAT(entries, IsOk());
    EXPECT_GE(entries->size(), acknowledged);
    EXPECT_LE(entries->size(), acknowledged + 5);
    EXPECT_EQ(*entries, MakeEntries(0, entries->size()));
    ASSERT_THAT(Grow(entries->size() + 10, 10), IsOk());
    EXPECT_THAT(Check(), IsOkAndHolds(MakeEntries(0, entries->size() + 10)));
  }

  int64_t CallsWithoutFault() {
    int64_t calls = 0;
    EXPECT_EQ(AppendUnder({}, &calls), kBefore + 9);
    return calls;
  }
};

TEST_F(LogFaultTest, EveryCallMayFail) {
  const int64_t all = CallsWithoutFault();
  ASSERT_GT(all, 60);
  for (const FaultEffect effect : {FaultEffect::kFail, FaultEffect::kFailApplied}) {
    for (int64_t at = 1; at <= all; ++at) {
      SCOPED_TRACE(absl::StrCat("call ", at, ", effect ", static_cast<int>(effect)));
      int64_t calls = 0;
      const size_t acknowledged = AppendUnder({.at = at, .effect = effect}, &calls);
      ASSERT_NO_FATAL_FAILURE(ExpectRecovers(acknowledged));
    }
  }
}

TEST_F(LogFaultTest, TheDiskMayBeFullFromAnyCallOn) {
  const int64_t all = CallsWithoutFault();
  for (int64_t at = 1; at <= all; ++at) {
    SCOPED_TRACE(absl::StrCat("call ", at));
    int64_t calls = 0;
    const size_t acknowledged = AppendUnder({.at = at, .error = ENOSPC, .forever = true}, &calls);
    ASSERT_NO_FATAL_FAILURE(ExpectRecovers(acknowledged));
  }
}

// The child writes each acknowledgement to `acks` as one byte.
TEST_F(LogFaultTest, AnyCallMayBeTheLast) {
  const int64_t all = CallsWithoutFault();
  const auto run = [&](const Fault& fault) {
    scratch_.Copy("start", "log");
    int acks[2];
    ASSERT_EQ(pipe(acks), 0);
    const int status = RunInChild([&] {
      ArmFault(scratch_.Path("log"), fault);
      absl::StatusOr<std::unique_ptr<LogWriter>> log = Open();
      if (!log.ok()) return 1;
      size_t size = kBefore;
      for (const size_t batch : kBatches) {
        if (!(*log)->Append(MakeEntries(size, batch)).ok()) return 2;
        size += batch;
        if (write(acks[1], "a", 1) != 1) return 3;
      }
      return 0;
    });
    close(acks[1]);
    char bytes[8];
    const ssize_t acknowledged = read(acks[0], bytes, sizeof bytes);
    close(acks[0]);
    ASSERT_EQ(status, kFaultExitStatus);
    size_t size = kBefore;
    for (ssize_t i = 0; i < acknowledged; ++i) size += kBatches[i];
    ExpectRecovers(size);
  };
  for (int64_t at = 1; at <= all; ++at) {
    for (const FaultEffect effect : {FaultEffect::kExit, FaultEffect::kExitApplied}) {
      SCOPED_TRACE(absl::StrCat("call ", at, ", effect ", static_cast<int>(effect)));
      ASSERT_NO_FATAL_FAILURE(run({.at = at, .effect = effect}));
    }
    for (uint64_t seed = 0; seed < 2; ++seed) {
      SCOPED_TRACE(absl::StrCat("power cut at call ", at, ", seed ", seed));
      ASSERT_NO_FATAL_FAILURE(
          run({.at = at, .effect = FaultEffect::kPowerCut, .seed = 1000 * at + seed}));
    }
  }
}

}  // namespace
}  // namespace lockstep::coordinator
