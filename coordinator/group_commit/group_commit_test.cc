// SPDX-License-Identifier: Apache-2.0
//
// The writer: each gets an answer of its own, turns are taken, batches fill, failures stop it, and
// whatever call of the system is the last, nothing that was answered is lost, in store or log.

#include "coordinator/group_commit/group_commit.h"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/ed25519.h"
#include "base/status.h"
#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "coordinator/group_commit/recovery.h"
#include "coordinator/store/sqlite_store.h"
#include "coordinator/testing/faulty_calls.h"
#include "coordinator/testing/log_checker.h"
#include "coordinator/testing/scratch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kResourceExhausted = absl::StatusCode::kResourceExhausted;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr char kOrigin[] = "log.example/test";

EntryRow MakeEntry(const std::string& envelope) {
  return {.log_index = 0,
          .kind = "record",
          .run = {},
          .step = {},
          .leaf_hash = {},
          .envelope = envelope};
}

std::function<absl::Status(WriteContext&)> Appends(const std::string& envelope) {
  return [envelope](WriteContext& context) {
    return context.AppendEntry(MakeEntry(envelope)).status();
  };
}

// Store, log and writer of one data directory.
struct Coordinator {
  static absl::StatusOr<std::unique_ptr<Coordinator>> Open(const std::string& directory,
                                                           const Ed25519PrivateKey& key,
                                                           GroupCommitOptions options) {
    auto c = std::make_unique<Coordinator>();
    LOCKSTEP_ASSIGN_OR_RETURN(c->store, SqliteStore::Open(directory + "/store.sqlite", 0));
    LOCKSTEP_ASSIGN_OR_RETURN(
        c->log, LogWriter::Open({.directory = directory + "/log", .origin = kOrigin}, key));
    // It stands still: what is written, and so how many calls of the system that takes, follows
    // from the requests alone.
    static const FakeClock clock;
    c->time = std::make_unique<ServiceTime>(0, clock);
    LOCKSTEP_ASSIGN_OR_RETURN(c->writer,
                              GroupCommit::Start(*c->store, *c->log, *c->time, std::move(options)));
    return c;
  }

  std::unique_ptr<SqliteStore> store;
  std::unique_ptr<LogWriter> log;
  std::unique_ptr<ServiceTime> time;
  std::unique_ptr<GroupCommit> writer;
};

class GroupCommitTest : public ::testing::Test {
 protected:
  GroupCommitTest() : key_(*Ed25519PrivateKey::FromSeed(AsBytes(std::string(32, 'k')))) {
    fs::create_directory(Directory());
  }

  std::string Directory() const { return scratch_.Path("data"); }
  absl::StatusOr<std::unique_ptr<Coordinator>> Open(GroupCommitOptions options = {}) {
    return Coordinator::Open(Directory(), key_, std::move(options));
  }
  // Envelopes of the store, which are those of the log, as a stranger finds it.
  std::vector<std::string> Entries() {
    const auto logged =
        CheckLog(LogWriter::PublicDirectory(Directory() + "/log"), kOrigin, key_.public_key());
    EXPECT_THAT(logged, IsOk());
    auto store = SqliteStore::Open(Directory() + "/store.sqlite");
    EXPECT_THAT(store, IsOk());
    std::vector<std::string> stored;
    EXPECT_THAT((*(*store)->Read())
                    ->ForEachEntry(0,
                                   [&](const EntryRow& entry) {
                                     stored.push_back(entry.envelope);
                                     return absl::OkStatus();
                                   }),
                IsOk());
    EXPECT_EQ(*logged, stored);
    return stored;
  }

  Scratch scratch_;
  const Ed25519PrivateKey key_;
};

TEST_F(GroupCommitTest, EachGetsAnAnswerOfItsOwn) {
  {
    auto c = *Open();
    EXPECT_THAT(c->writer->Write(1, 1, Appends("one")), IsOk());
    EXPECT_THAT(c->log->size(), 1);
    EXPECT_THAT(c->writer->Write(1, 1,
                                 [](WriteContext& context) {
                                   EXPECT_THAT(context.AppendEntry(MakeEntry("undone")),
                                               IsOkAndHolds(1));
                                   return absl::AbortedError("no");
                                 }),
                StatusIs(kAborted, "no"));
    EXPECT_THAT(c->writer->Write(1, 1, Appends("one")), StatusIs(absl::StatusCode::kAlreadyExists));
    EXPECT_THAT(c->writer->Write(1, 1, Appends("two")), IsOk());
    EXPECT_THAT(c->writer->status(), IsOk());
  }
  EXPECT_THAT(Entries(), ElementsAre("one", "two"));
}

// A batch is in one transaction, in which a request sees what those before it wrote, and a failed
// one leaves the others alone.
TEST_F(GroupCommitTest, ABatchIsWrittenTogether) {
  std::vector<absl::Status> answers(3);
  std::vector<std::string> order;
  {
    // Nothing is written before three rows are there.
    auto c = *Open({.rows_max = 3, .delay_max = hours(1)});
    std::promise<void> all;
    for (int i = 0; i < 3; ++i) {
      c->writer->Submit(
          {.source = static_cast<uint64_t>(i),
           .rows = 1,
           .work = [&, i](WriteContext& context) -> absl::Status {
             EXPECT_EQ(c->log->size(), 0);
             context.OnCommitted([&, i] {
               EXPECT_EQ(c->log->size(), 2);
               order.push_back(absl::StrCat("committed ", i));
             });
             LOCKSTEP_RETURN_IF_ERROR(context.AppendEntry(MakeEntry(absl::StrCat(i))).status());
             EXPECT_THAT(context.view().EntryCount(), IsOkAndHolds(i == 2 ? 2 : i + 1));
             return i == 1 ? absl::AbortedError("no") : absl::OkStatus();
           },
           .done =
               [&, i](absl::Status answer) {
                 answers[i] = std::move(answer);
                 order.push_back(absl::StrCat("answered ", i));
                 if (i == 2) all.set_value();
               }});
    }
    all.get_future().wait();
  }
  EXPECT_THAT(answers, ElementsAre(IsOk(), StatusIs(kAborted), IsOk()));
  EXPECT_THAT(order,
              ElementsAre("committed 0", "committed 2", "answered 0", "answered 1", "answered 2"));
  EXPECT_THAT(Entries(), ElementsAre("0", "2"));
}

TEST_F(GroupCommitTest, DoesNotWaitLongForABatchToFill) {
  auto c = *Open({.rows_max = 1'000'000, .delay_max = milliseconds(5)});
  EXPECT_THAT(c->writer->Write(1, 1, Appends("alone")), IsOk());
}

TEST_F(GroupCommitTest, StopWritesWhatWasSubmittedAndRefusesTheRest) {
  auto c = *Open({.rows_max = 1'000'000, .delay_max = hours(1)});
  std::atomic<int> answered{0};
  for (int i = 0; i < 10; ++i) {
    c->writer->Submit({.source = 1,
                       .rows = 1,
                       .work = Appends(absl::StrCat(i)),
                       .done = [&](const absl::Status& answer) { answered += answer.ok(); }});
  }
  EXPECT_EQ(c->writer->RowsQueued(), 10);
  c->writer->Stop();
  EXPECT_EQ(answered, 10);
  EXPECT_THAT(c->writer->Write(1, 1, Appends("late")),
              StatusIs(kUnavailable, HasSubstr("shutting down")));
  c.reset();
  EXPECT_THAT(Entries(), SizeIs(10));
}

// A flood of one source, in a queue while the writer is held, against one request of another.
TEST_F(GroupCommitTest, SourcesTakeTurns) {
  auto c = *Open({.rows_max = 4, .delay_max = milliseconds(0)});
  std::promise<void> held;
  std::promise<void> let_go;
  c->writer->Submit({.source = 0,
                     .rows = 1,
                     .work =
                         [&](WriteContext&) {
                           held.set_value();
                           let_go.get_future().wait();
                           return absl::OkStatus();
                         },
                     .done = [](const absl::Status&) {}});
  held.get_future().wait();
  std::vector<std::string> order;
  const auto submit = [&](uint64_t source, int64_t rows, const std::string& name) {
    c->writer->Submit({.source = source,
                       .rows = rows,
                       .work =
                           [&order, name](WriteContext&) {
                             order.push_back(name);
                             return absl::OkStatus();
                           },
                       .done = [](const absl::Status& answer) { EXPECT_THAT(answer, IsOk()); }});
  };
  for (int i = 0; i < 100; ++i) submit(1, 1, absl::StrCat("flood ", i));
  submit(2, 50, "large");  // more than a batch: one of its own
  submit(3, 1, "small");
  let_go.set_value();
  c->writer->Stop();
  ASSERT_THAT(order, SizeIs(102));
  EXPECT_EQ(std::vector<std::string>(order.begin(), order.begin() + 4),
            (std::vector<std::string>{"flood 0", "large", "small", "flood 1"}));
  EXPECT_EQ(order.back(), "flood 99");
}

TEST_F(GroupCommitTest, AQueueThatIsTooLongIsRefused) {
  auto c = *Open({.rows_max = 1'000'000, .delay_max = hours(1), .rows_queued_max = 3});
  const auto ignore = [](const absl::Status&) {};
  c->writer->Submit({.source = 1, .rows = 3, .work = Appends("a"), .done = ignore});
  EXPECT_THAT(c->writer->Write(2, 1, Appends("b")), StatusIs(kResourceExhausted));
}

TEST_F(GroupCommitTest, ManyWriteAtOnce) {
  {
    auto c = *Open();
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        for (int j = 0; j < 40; ++j) {
          const std::string name = absl::StrCat(i, "/", j);
          EXPECT_THAT(c->writer->Write(i, 1, Appends(name)), IsOk());
          const auto entry = (*c->store->Read())->EntryByLeafHash(MerkleLeafHash(AsBytes(name)));
          ASSERT_THAT(entry, IsOk());
          EXPECT_LT(entry->log_index, c->log->size());
          EXPECT_THAT(c->log->Receipt(entry->log_index), IsOk());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const std::vector<std::string> entries = Entries();
  ASSERT_THAT(entries, SizeIs(320));
  for (int i = 0; i < 8; ++i) {  // each source in its order
    int next = 0;
    for (const std::string& entry : entries) next += entry == absl::StrCat(i, "/", next);
    EXPECT_EQ(next, 40);
  }
}

TEST_F(GroupCommitTest, ABusyStoreIsUnavailableAndTheWriterGoesOn) {
  auto c = *Open();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((Directory() + "/store.sqlite").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_THAT(c->writer->Write(1, 1, Appends("a")), StatusIs(kUnavailable, HasSubstr("locked")));
  ASSERT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  EXPECT_THAT(c->writer->Write(1, 1, Appends("a")), IsOk());
}

TEST_F(GroupCommitTest, AFailureStopsTheWriterAndSaysSoOnce) {
  std::vector<absl::Status> failures;
  std::vector<std::string> acknowledged;
  {
    auto c = *Open({.on_failure = [&](const absl::Status& error) { failures.push_back(error); }});
    ASSERT_THAT(c->writer->Write(1, 1, Appends("before")), IsOk());
    ArmFault(Directory(), {.at = 1, .forever = true});
    EXPECT_THAT(c->writer->Write(1, 1, Appends("during")),
                StatusIs(kUnavailable, HasSubstr("can no longer write")));
    DisarmFault();
    EXPECT_THAT(c->writer->Write(1, 1, Appends("after")), StatusIs(kUnavailable));
    EXPECT_THAT(c->writer->status(), StatusIs(kUnavailable));
  }
  EXPECT_THAT(failures, SizeIs(1));
  { ASSERT_THAT(Open(), IsOk()); }
  EXPECT_EQ(Entries()[0], "before");
}

TEST_F(GroupCommitTest, RefusesAnOldStore) {
  { ASSERT_THAT((*Open())->writer->Write(1, 1, Appends("one")), IsOk()); }
  scratch_.Copy("data", "old");
  { ASSERT_THAT((*Open())->writer->Write(1, 1, Appends("two")), IsOk()); }
  scratch_.Copy("data", "new");
  scratch_.Copy("old/store.sqlite", "data/store.sqlite");
  EXPECT_THAT(Open(), StatusIs(kFailedPrecondition, HasSubstr("store is an old backup")));
  fs::remove(Directory() + "/store.sqlite");
  EXPECT_THAT(Open(), StatusIs(kFailedPrecondition, HasSubstr("store is an old backup")));
  // The log and its database together, taken back further than a crash can.
  fs::remove_all(Directory());
  scratch_.Copy("new", "data");
  { ASSERT_THAT((*Open())->writer->Write(1, 1, Appends("three")), IsOk()); }
  { ASSERT_THAT((*Open())->writer->Write(1, 1, Appends("four")), IsOk()); }
  scratch_.Copy("old/log", "data/log");
  EXPECT_THAT(Open(), StatusIs(kFailedPrecondition, HasSubstr("log is an old backup")));
}

TEST_F(GroupCommitTest, RefusesAnotherCoordinatorsStore) {
  { ASSERT_THAT((*Open())->writer->Write(1, 1, Appends("one")), IsOk()); }
  scratch_.Copy("data", "other");
  fs::remove_all(Directory());
  fs::create_directory(Directory());
  { ASSERT_THAT((*Open())->writer->Write(1, 1, Appends("another")), IsOk()); }
  scratch_.Copy("other/store.sqlite", "data/store.sqlite");
  EXPECT_THAT(Open(), StatusIs(kDataLoss, HasSubstr("not of the same coordinator")));
}

TEST_F(GroupCommitTest, AppendsWhatACrashKeptFromTheLog) {
  { ASSERT_THAT((*Open())->writer->Write(1, 1, Appends("one")), IsOk()); }
  {
    auto store = *SqliteStore::Open(Directory() + "/store.sqlite");
    auto transaction = *store->Write();
    for (int i = 0; i < 150; ++i) {
      ASSERT_THAT(transaction->AppendEntry(MakeEntry(absl::StrCat("more ", i))), IsOk());
    }
    ASSERT_THAT(transaction->Commit(), IsOk());
  }
  { EXPECT_EQ((*Open())->log->size(), 151); }
  EXPECT_THAT(Entries(), SizeIs(151));
}

// A coordinator that serves a few requests and says what it acknowledged.
class GroupCommitFaultTest : public GroupCommitTest {
 protected:
  static constexpr int kRequests = 3;

  // Requests "0", "1", ... one after another; the entry of the acknowledged ones to `acks`.
  int Serve(const Fault& fault, int acks) {
    ArmFault(Directory(), fault);
    auto c = Open({.delay_max = milliseconds(0)});
    if (!c.ok()) return 1;
    for (int i = 0; i < kRequests; ++i) {
      const char name = static_cast<char>('0' + i);
      if (!(*c)->writer->Write(1, 1, Appends(std::string(1, name))).ok()) return 2;
      if (write(acks, &name, 1) != 1) return 3;
    }
    return 0;
  }

  void ServeAndRecover(const Fault& fault, int expected_status) {
    fs::remove_all(Directory());
    fs::create_directory(Directory());
    int acks[2];
    ASSERT_EQ(pipe(acks), 0);
    const int status = RunInChild([&] { return Serve(fault, acks[1]); });
    close(acks[1]);
    char bytes[16];
    const ssize_t acknowledged = read(acks[0], bytes, sizeof bytes);
    close(acks[0]);
    if (expected_status >= 0) {
      ASSERT_EQ(status, expected_status);
    }
    { ASSERT_THAT(Open(), IsOk()); }
    const std::vector<std::string> entries = Entries();
    ASSERT_GE(static_cast<ssize_t>(entries.size()), acknowledged);
    ASSERT_LE(static_cast<ssize_t>(entries.size()), acknowledged + 1);
    for (size_t i = 0; i < entries.size(); ++i) ASSERT_EQ(entries[i], absl::StrCat(i));
    { ASSERT_THAT((*Open())->writer->Write(1, 1, Appends("on it goes")), IsOk()); }
    ASSERT_EQ(Entries().size(), entries.size() + 1);
  }

  int64_t CallsWithoutFault() {
    int64_t calls = 0;
    int acks[2];
    EXPECT_EQ(pipe(acks), 0);
    EXPECT_EQ(Serve({}, acks[1]), 0);
    calls = CallsMade();
    DisarmFault();
    close(acks[0]);
    close(acks[1]);
    return calls;
  }
};

TEST_F(GroupCommitFaultTest, AnyCallMayBeTheLast) {
  const int64_t all = CallsWithoutFault();
  ASSERT_GT(all, 100);
  for (int64_t at = 1; at <= all; ++at) {
    SCOPED_TRACE(absl::StrCat("call ", at));
    ASSERT_NO_FATAL_FAILURE(
        ServeAndRecover({.at = at, .effect = FaultEffect::kExit}, kFaultExitStatus));
    ASSERT_NO_FATAL_FAILURE(ServeAndRecover(
        {.at = at, .effect = FaultEffect::kPowerCut, .seed = static_cast<uint64_t>(at)},
        kFaultExitStatus));
  }
}

TEST_F(GroupCommitFaultTest, AnyCallMayFail) {
  const int64_t all = CallsWithoutFault();
  for (int64_t at = 1; at <= all; ++at) {
    SCOPED_TRACE(absl::StrCat("call ", at));
    ASSERT_NO_FATAL_FAILURE(ServeAndRecover({.at = at, .error = EIO}, -1));
    ASSERT_NO_FATAL_FAILURE(ServeAndRecover({.at = at, .error = ENOSPC, .forever = true}, -1));
  }
}

}  // namespace
}  // namespace lockstep::coordinator
