// SPDX-License-Identifier: Apache-2.0
//
// The store: every table there and back, transactions, readers beside the writer, settings of the
// connections, migrations, backups, and databases that are not ours or somebody holds.

#include "coordinator/store/sqlite_store.h"

#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/merkle.h"
#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "coordinator/store/migrations.h"
#include "coordinator/store/service_time.h"
#include "coordinator/testing/faulty_calls.h"
#include "coordinator/testing/scratch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr auto kAlreadyExists = absl::StatusCode::kAlreadyExists;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

Digest Name(absl::string_view text) { return Sha256(AsBytes(text)); }

class SqliteStoreTest : public ::testing::Test {
 protected:
  SqliteStoreTest() : path_(scratch_.Path("store.sqlite")) { Reopen(); }

  void Reopen(int busy_ms = SqliteDatabase::kBusyMsDefault) {
    store_.reset();
    absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open(path_, busy_ms);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
  }

  // Writes by `work` and commits.
  template <typename Work>
  void Write(Work work) {
    absl::StatusOr<std::unique_ptr<StoreTransaction>> transaction = store_->Write();
    ASSERT_THAT(transaction, IsOk());
    work(**transaction);
    ASSERT_THAT((*transaction)->Commit(), IsOk());
  }
  std::unique_ptr<StoreView> Read() { return *store_->Read(); }

  // Runs SQL on a connection of another program.
  int Sql(const std::string& path, const std::string& sql) {
    sqlite3* handle = nullptr;
    sqlite3_open(path.c_str(), &handle);
    const int code = sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr);
    sqlite3_close(handle);
    return code;
  }

  Scratch scratch_;
  const std::string path_;
  std::unique_ptr<SqliteStore> store_;
};

EntryRow MakeEntry(const std::string& envelope) {
  return {.log_index = 0,
          .kind = "record",
          .run = Name("run"),
          .step = 7,
          .leaf_hash = {},
          .envelope = envelope};
}

TEST_F(SqliteStoreTest, NewStoreIsEmpty) {
  const auto view = Read();
  EXPECT_THAT(view->EntryCount(), IsOkAndHolds(0));
  EXPECT_THAT(view->Entry(0), StatusIs(kNotFound, HasSubstr("entry 0")));
  EXPECT_THAT(view->EntryByLeafHash(Name("x")), StatusIs(kNotFound));
  EXPECT_THAT(view->LiveLeases(), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(view->Lease("x"), StatusIs(kNotFound));
  EXPECT_THAT(view->Request(Name("k"), "x"), StatusIs(kNotFound));
  EXPECT_THAT(view->Evidence(0, 10), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(view->OpenChallenges(100), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(view->Canary("x"), StatusIs(kNotFound));
  EXPECT_THAT(view->Trust(Name("k")), IsOkAndHolds(KeyTrust{}));
  EXPECT_THAT(view->Artifact(Name("a"), Name("run")), StatusIs(kNotFound));
  EXPECT_THAT(view->Events(0, 10), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(view->FirstEventId(), IsOkAndHolds(0));
  EXPECT_THAT(view->ServiceMs(), IsOkAndHolds(0));
  EXPECT_THAT(view->LogSize(), IsOkAndHolds(0));
}

TEST_F(SqliteStoreTest, KeepsEntriesInOrder) {
  Write([](StoreTransaction& t) {
    EXPECT_THAT(t.AppendEntry(MakeEntry("first")), IsOkAndHolds(0));
    EXPECT_THAT(t.AppendEntry({.log_index = 0,
                               .kind = "key",
                               .run = {},
                               .step = {},
                               .leaf_hash = {},
                               .envelope = std::string("a\0b", 3),
                               .received_unix_ms = 1234}),
                IsOkAndHolds(1));
    EXPECT_THAT(t.AppendEntry(MakeEntry("first")), StatusIs(kAlreadyExists));
    EXPECT_THAT(t.AppendEntry(MakeEntry("")), StatusIs(kInvalid));
    EXPECT_THAT(t.AppendEntry(MakeEntry(std::string(65'536, 'x'))), StatusIs(kInvalid));
    EXPECT_THAT(t.AppendEntry(MakeEntry(std::string(65'535, 'x'))), IsOkAndHolds(2));
    EXPECT_THAT(t.view().EntryCount(), IsOkAndHolds(3));
  });
  Reopen();
  const auto view = Read();
  EXPECT_THAT(view->EntryCount(), IsOkAndHolds(3));
  const EntryRow second = {.log_index = 1,
                           .kind = "key",
                           .run = {},
                           .step = {},
                           .leaf_hash = MerkleLeafHash(AsBytes(absl::string_view("a\0b", 3))),
                           .envelope = std::string("a\0b", 3),
                           .received_unix_ms = 1234};
  EXPECT_THAT(view->Entry(1), IsOkAndHolds(second));
  EXPECT_THAT(view->EntryByLeafHash(second.leaf_hash), IsOkAndHolds(second));
  std::vector<uint64_t> seen;
  EXPECT_THAT(view->ForEachEntry(1,
                                 [&](const EntryRow& entry) {
                                   seen.push_back(entry.log_index);
                                   return absl::OkStatus();
                                 }),
              IsOk());
  EXPECT_THAT(seen, ElementsAre(1, 2));
  EXPECT_THAT(view->ForEachEntry(0, [](const EntryRow&) { return absl::AbortedError("enough"); }),
              StatusIs(absl::StatusCode::kAborted));
  std::vector<Digest> hashes;
  EXPECT_THAT(view->ForEachLeafHash([&](uint64_t, const Digest& hash) {
    hashes.push_back(hash);
    return absl::OkStatus();
  }),
              IsOk());
  EXPECT_THAT(hashes, SizeIs(3));
}

TEST_F(SqliteStoreTest, FindsEntriesByRunKindAndStep) {
  Write([](StoreTransaction& t) {
    int n = 0;
    for (const char* run : {"a", "b"}) {
      for (const char* kind : {"record", "attestation"}) {
        for (const uint64_t step : {1, 2}) {
          for (int copy = 0; copy < 2; ++copy) {
            EntryRow entry = MakeEntry(absl::StrCat("entry ", n++));
            entry.run = Name(run);
            entry.kind = kind;
            entry.step = step;
            ASSERT_THAT(t.AppendEntry(entry), IsOk());
          }
        }
      }
    }
  });
  const auto view = Read();
  const auto find = [&](const EntryQuery& query, uint64_t first, int64_t limit) {
    std::vector<uint64_t> indices;
    const auto rows = view->Entries(query, first, limit);
    EXPECT_THAT(rows, IsOk());
    for (const EntryRow& row : *rows) indices.push_back(row.log_index);
    return indices;
  };
  EXPECT_THAT(find({}, 14, 10), ElementsAre(14, 15));
  EXPECT_THAT(find({.run = Name("b"), .kind = "", .step = {}}, 0, 3), ElementsAre(8, 9, 10));
  EXPECT_THAT(find({.run = Name("b"), .kind = "attestation", .step = {}}, 13, 10),
              ElementsAre(13, 14, 15));
  EXPECT_THAT(find({.run = Name("a"), .kind = "attestation", .step = 2}, 0, 10), ElementsAre(6, 7));
  EXPECT_THAT(view->Entries({.run = {}, .kind = "record", .step = {}}, 0, 1), StatusIs(kInvalid));
  EXPECT_THAT(view->Entries({.run = Name("a"), .kind = "", .step = 1}, 0, 1), StatusIs(kInvalid));
}

TEST_F(SqliteStoreTest, KeepsEveryOtherTable) {
  LeaseRow lease = {.lease_id = "lease",
                    .key = Name("key"),
                    .operator_key = Name("operator"),
                    .address = "192.0.2.1",
                    .attempt_id = "attempt",
                    .nonce = Name("nonce"),
                    .run = Name("run"),
                    .first_step = 3,
                    .end_step = 9,
                    .state = LeaseState::kLive,
                    .granted_ms = 1,
                    .heartbeat_ms = 2,
                    .expires_ms = 3,
                    .bound_ms = 4,
                    .granted_unix_ms = 5,
                    .ended_unix_ms = 0,
                    .detail = ""};
  const RequestRow request = {.key = Name("key"),
                              .request_id = "request",
                              .fingerprint = Name("f"),
                              .response = "response",
                              .answered_ms = 6};
  EvidenceRow evidence = {.evidence_id = 0,
                          .reason = "late",
                          .run = Name("run"),
                          .step = {},
                          .key = Name("key"),
                          .envelope = "envelope",
                          .received_unix_ms = 7};
  ChallengeRow challenge = {.attestation = Name("attestation"),
                            .leaf_index = 8,
                            .run = Name("run"),
                            .step = 9,
                            .key = Name("key"),
                            .state = ChallengeState::kOpen,
                            .asked_ms = 10,
                            .due_ms = 11};
  CanaryRow canary = {.lease_id = "lease",
                      .key = Name("key"),
                      .run = Name("run"),
                      .step = 4,
                      .false_record = "record",
                      .state = CanaryState::kOpen};
  const KeyTrust trust = {.valid_in_a_row = 1,
                          .valid = 2,
                          .invalid = 3,
                          .expired = 4,
                          .canaries = 5,
                          .failures_in_a_row = 6,
                          .quota_steps = 7,
                          .not_before_ms = 8,
                          .undone_in_a_row = 9};
  Write([&](StoreTransaction& t) {
    EXPECT_THAT(t.PutLease(lease), IsOk());
    EXPECT_THAT(t.PutRequest(request), IsOk());
    EXPECT_THAT(t.AddEvidence(evidence), IsOkAndHolds(1));
    EXPECT_THAT(t.AddEvidence(evidence), IsOkAndHolds(1));
    EXPECT_THAT(t.PutChallenge(challenge), IsOk());
    EXPECT_THAT(t.PutCanary(canary), IsOk());
    EXPECT_THAT(t.PutTrust(Name("key"), trust), IsOk());
    EXPECT_THAT(t.PutDoubt(21), IsOk());
    EXPECT_THAT(t.PutDoubt(20), IsOk());
    EXPECT_THAT(t.PutDoubt(21), IsOk());
    EXPECT_THAT(t.SetServiceMs(12), IsOk());
    EXPECT_THAT(t.SetServiceMs(11), IsOk());  // never back
    EXPECT_THAT(t.SetLogSize(13), IsOk());
  });
  Reopen();
  evidence.evidence_id = 1;
  {
    const auto view = Read();
    EXPECT_THAT(view->Lease("lease"), IsOkAndHolds(lease));
    EXPECT_THAT(view->LiveLeases(), IsOkAndHolds(ElementsAre(lease)));
    EXPECT_THAT(view->Request(Name("key"), "request"), IsOkAndHolds(request));
    EXPECT_THAT(view->Evidence(0, 10), IsOkAndHolds(ElementsAre(evidence)));
    EXPECT_THAT(view->Evidence(1, 10), IsOkAndHolds(IsEmpty()));
    EXPECT_THAT(view->CountEvidence(),
                IsOkAndHolds(ElementsAre(EvidenceCount{
                    .key = *evidence.key, .reason = evidence.reason, .count = 1, .last_id = 1})));
    EXPECT_THAT(view->Challenges(Name("attestation")), IsOkAndHolds(ElementsAre(challenge)));
    EXPECT_THAT(view->OpenChallenges(11), IsOkAndHolds(ElementsAre(challenge)));
    EXPECT_THAT(view->OpenChallenges(10), IsOkAndHolds(IsEmpty())) << "not due yet";
    EXPECT_THAT(view->EndedLeases(Name("run"), 100, "", 10), IsOkAndHolds(IsEmpty()));
    EXPECT_THAT(view->Doubts(), IsOkAndHolds(ElementsAre(20, 21)));
    EXPECT_THAT(view->Canary("lease"), IsOkAndHolds(canary));
    EXPECT_THAT(view->Trust(Name("key")), IsOkAndHolds(trust));
    EXPECT_THAT(view->AllTrust(),
                IsOkAndHolds(ElementsAre(TrustRow{.key = Name("key"), .trust = trust})));
    EXPECT_THAT(view->ServiceMs(), IsOkAndHolds(12));
    EXPECT_THAT(view->LogSize(), IsOkAndHolds(13));
  }
  lease.state = LeaseState::kInconclusive;
  lease.ended_unix_ms = 30;
  lease.detail = "a shard does not have its digest";
  challenge.state = ChallengeState::kFailed;
  canary.state = CanaryState::kMissed;
  Write([&](StoreTransaction& t) {
    EXPECT_THAT(t.PutLease(lease), IsOk());
    EXPECT_THAT(t.PutChallenge(challenge), IsOk());
    EXPECT_THAT(t.PutCanary(canary), IsOk());
    EXPECT_THAT(t.DropRequests(6), IsOk());  // answered at 6, not before
    EXPECT_THAT(t.view().Request(Name("key"), "request"), IsOk());
    EXPECT_THAT(t.DropRequests(7), IsOk());
  });
  const auto view = Read();
  EXPECT_THAT(view->Lease("lease"), IsOkAndHolds(lease));
  EXPECT_THAT(view->LiveLeases(), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(view->Challenges(Name("attestation")), IsOkAndHolds(ElementsAre(challenge)));
  EXPECT_THAT(view->EndedLeases(Name("run"), 31, "z", 10), IsOkAndHolds(ElementsAre(lease)));
  EXPECT_THAT(view->EndedLeases(Name("run"), 30, "leasd", 10), IsOkAndHolds(ElementsAre(lease)));
  EXPECT_THAT(view->EndedLeases(Name("run"), 30, "lease", 10), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(view->EndedLeases(Name("run"), 29, "", 10), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(view->EndedLeases(Name("another run"), 31, "", 10), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(view->OpenChallenges(100), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(view->Canary("lease"), IsOkAndHolds(canary));
  EXPECT_THAT(view->Request(Name("key"), "request"), StatusIs(kNotFound));
}

// What a lease of the first schema became of: nobody had asked why it was handed back.
TEST_F(SqliteStoreTest, LeasesFromBeforeTheirEndsWereKept) {
  const std::string path = scratch_.Path("old.sqlite");
  {
    auto database = SqliteDatabase::Open(path, SqliteAccess::kWrite).value();
    ASSERT_THAT(database->Migrate(kStoreApplicationId, StoreMigrations().first(1)), IsOk());
    for (const char* const state : {"live", "done", "released", "expired"}) {
      ASSERT_THAT(database->Run("INSERT INTO leases VALUES (?, ?, ?, 'a', 't', ?, ?, 0, 1, ?,"
                                " 1, 4, 5, 6, 1000)",
                                {SqliteValue::Text(state), Name("key"), Name("operator"),
                                 Name(state), Name("run"), SqliteValue::Text(state)}),
                  IsOk());
    }
  }
  const auto store = SqliteStore::Open(path).value();
  const auto view = store->Read().value();
  EXPECT_EQ(view->Lease("live")->state, LeaseState::kLive);
  EXPECT_EQ(view->Lease("live")->ended_unix_ms, 0);
  EXPECT_EQ(view->Lease("done")->state, LeaseState::kDone);
  EXPECT_EQ(view->Lease("released")->state, LeaseState::kCanceled);
  EXPECT_EQ(view->Lease("released")->ended_unix_ms, 1003) << "when it was heard last";
  EXPECT_EQ(view->Lease("expired")->state, LeaseState::kExpired);
}

TEST_F(SqliteStoreTest, NoncesAreOnlyUsedOnce) {
  LeaseRow lease;
  lease.lease_id = "one";
  lease.nonce = Name("nonce");
  lease.end_step = 1;
  Write([&](StoreTransaction& t) {
    EXPECT_THAT(t.PutLease(lease), IsOk());
    lease.lease_id = "two";
    EXPECT_THAT(t.PutLease(lease), StatusIs(kAlreadyExists));
    lease.nonce = Name("another");
    lease.end_step = 0;
    EXPECT_THAT(t.PutLease(lease), StatusIs(kFailedPrecondition));  // no steps
  });
}

TEST_F(SqliteStoreTest, WordsOfArtifactsStandApart) {
  const ArtifactRow trainers = {.digest = Name("a"),
                                .source = Name("run"),
                                .by_trainer = true,
                                .bytes = 5,
                                .mirrors = {"https://b", "https://a"}};
  const ArtifactRow workers = {
      .digest = Name("a"), .source = Name("key"), .bytes = 6, .mirrors = {"https://c"}};
  Write([&](StoreTransaction& t) {
    ArtifactRow before = trainers;
    before.bytes = 4;
    EXPECT_THAT(t.PutArtifact(before), IsOk());
    EXPECT_THAT(t.PutArtifact(workers), IsOk());
    EXPECT_THAT(t.PutArtifact(trainers), IsOk());
    EXPECT_THAT(t.PutArtifact({.digest = Name("b"), .source = Name("key")}), IsOk());
  });
  const auto view = Read();
  EXPECT_THAT(view->Artifact(Name("a"), Name("run")), IsOkAndHolds(trainers));
  EXPECT_THAT(view->Artifact(Name("a"), Name("key")), IsOkAndHolds(workers));
  EXPECT_THAT(view->Artifact(Name("a"), Name("another")), StatusIs(kNotFound));
  EXPECT_THAT(view->ArtifactByTrainers(Name("a")), IsOkAndHolds(ElementsAre(trainers)));
  EXPECT_THAT(view->ArtifactByTrainers(Name("b")), IsOkAndHolds(IsEmpty()));
}

TEST_F(SqliteStoreTest, EventsKeepTheirNumbers) {
  Write([](StoreTransaction& t) {
    for (int i = 1; i <= 5; ++i) {
      EXPECT_THAT(t.AddEvent({.event_id = 0,
                              .kind = "step",
                              .run = {},
                              .data = absl::StrCat("{\"n\":", i, "}"),
                              .at_unix_ms = i}),
                  IsOkAndHolds(i));
    }
    EXPECT_THAT(t.DropEvents(2), IsOk());
  });
  EXPECT_THAT(Read()->FirstEventId(), IsOkAndHolds(4));
  EXPECT_THAT(Read()->Events(4, 10),
              IsOkAndHolds(ElementsAre(Field(&EventRow::data, "{\"n\":5}"))));
  Write([](StoreTransaction& t) {
    EXPECT_THAT(t.DropEvents(0), IsOk());
    EXPECT_THAT(
        t.AddEvent({.event_id = 0, .kind = "step", .run = {}, .data = "{}", .at_unix_ms = 6}),
        IsOkAndHolds(6));
  });
}

TEST_F(SqliteStoreTest, TransactionsAreAllOrNothing) {
  {
    auto transaction = *store_->Write();
    EXPECT_THAT(transaction->AppendEntry(MakeEntry("lost")), IsOkAndHolds(0));
  }
  Write([](StoreTransaction& t) {
    EXPECT_THAT(t.AppendEntry(MakeEntry("kept")), IsOkAndHolds(0));
    EXPECT_THAT(t.Nested([&] {
      EXPECT_THAT(t.AppendEntry(MakeEntry("undone")), IsOkAndHolds(1));
      return absl::AbortedError("no");
    }),
                StatusIs(absl::StatusCode::kAborted));
    EXPECT_THAT(t.Nested([&] { return t.AppendEntry(MakeEntry("also")).status(); }), IsOk());
    EXPECT_THAT(t.health(), IsOk());
  });
  EXPECT_THAT(Read()->EntryCount(), IsOkAndHolds(2));
  EXPECT_THAT(Read()->Entry(1), IsOkAndHolds(Field(&EntryRow::envelope, "also")));
}

TEST_F(SqliteStoreTest, ReadersHaveTheSnapshotTheyBeganWith) {
  Write([](StoreTransaction& t) { ASSERT_THAT(t.AppendEntry(MakeEntry("one")), IsOk()); });
  const auto before = Read();
  auto transaction = *store_->Write();
  ASSERT_THAT(transaction->AppendEntry(MakeEntry("two")), IsOk());
  EXPECT_THAT(Read()->EntryCount(), IsOkAndHolds(1));
  ASSERT_THAT(transaction->Commit(), IsOk());
  EXPECT_THAT(before->EntryCount(), IsOkAndHolds(1));
  EXPECT_THAT(Read()->EntryCount(), IsOkAndHolds(2));
}

TEST_F(SqliteStoreTest, ManyReadBesideTheWriter) {
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      uint64_t last = 0;
      while (!done) {
        const auto view = Read();
        const uint64_t count = *view->EntryCount();
        EXPECT_GE(count, last);
        EXPECT_EQ(count % 3, 0);  // whole transactions
        EXPECT_THAT(view->EntryCount(), IsOkAndHolds(count));
        last = count;
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    Write([&](StoreTransaction& t) {
      for (int j = 0; j < 3; ++j) {
        ASSERT_THAT(t.AppendEntry(MakeEntry(absl::StrCat(i, " ", j))), IsOk());
      }
    });
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
}

TEST_F(SqliteStoreTest, ConnectionsAreSetAsTheyShouldBe) {
  auto writer = *SqliteDatabase::Open(path_, SqliteAccess::kWrite);
  EXPECT_THAT(writer->Integer("PRAGMA synchronous"), IsOkAndHolds(2));  // FULL
  EXPECT_THAT(writer->Integer("PRAGMA foreign_keys"), IsOkAndHolds(1));
  EXPECT_THAT(writer->Integer("PRAGMA trusted_schema"), IsOkAndHolds(0));
  EXPECT_THAT(writer->Integer("PRAGMA cell_size_check"), IsOkAndHolds(1));
  EXPECT_THAT(writer->Integer("PRAGMA busy_timeout"), IsOkAndHolds(5000));
  EXPECT_THAT(writer->Integer("PRAGMA application_id"), IsOkAndHolds(kStoreApplicationId));
  EXPECT_THAT(writer->Integer("SELECT count(*) FROM pragma_table_list WHERE schema = 'main'"
                              " AND strict = 0 AND name NOT LIKE 'sqlite_%'"),
              IsOkAndHolds(0));
  EXPECT_FALSE(writer->Execute("PRAGMA writable_schema=ON; DELETE FROM sqlite_schema").ok());
  auto reader = *SqliteDatabase::Open(path_, SqliteAccess::kRead);
  EXPECT_THAT(reader->Execute("DELETE FROM entries"), StatusIs(kFailedPrecondition));
  ASSERT_THAT(writer->Execute("CREATE TABLE parent (a INTEGER PRIMARY KEY) STRICT;"
                              "CREATE TABLE child (a INTEGER REFERENCES parent (a)) STRICT"),
              IsOk());
  EXPECT_THAT(writer->Run("INSERT INTO child VALUES (1)", {}),
              StatusIs(kFailedPrecondition, HasSubstr("FOREIGN KEY")));
  EXPECT_THAT(writer->Execute("INSERT INTO events VALUES (1, 2, 3, 4, 'text')"),
              StatusIs(kFailedPrecondition));  // STRICT
}

TEST_F(SqliteStoreTest, RefusesWhatIsNotOurs) {
  const std::string other = scratch_.Path("other.sqlite");
  Sql(other, "PRAGMA application_id=7; CREATE TABLE t (x)");
  EXPECT_THAT(SqliteStore::Open(other),
              StatusIs(kFailedPrecondition, HasSubstr("another program")));
  const std::string unnamed = scratch_.Path("unnamed.sqlite");
  Sql(unnamed, "CREATE TABLE t (x)");
  EXPECT_THAT(SqliteStore::Open(unnamed),
              StatusIs(kFailedPrecondition, HasSubstr("another program")));
  const std::string text = scratch_.Path("text.sqlite");
  ASSERT_THAT(WriteFileDurably(text, AsBytes(std::string(5000, 'x'))), IsOk());
  EXPECT_THAT(SqliteStore::Open(text), StatusIs(kDataLoss));
  EXPECT_THAT(SqliteStore::Open(scratch_.Path("no/such/directory")), StatusIs(kFailedPrecondition));
  store_.reset();
  Sql(path_, "PRAGMA user_version=99");
  EXPECT_THAT(SqliteStore::Open(path_), StatusIs(kFailedPrecondition, HasSubstr("newer")));
}

TEST_F(SqliteStoreTest, MigratesFromEveryEarlierVersion) {
  const absl::Span<const char* const> migrations = StoreMigrations();
  for (size_t version = 0; version < migrations.size(); ++version) {
    const std::string path = scratch_.Path(absl::StrCat("version", version, ".sqlite"));
    {
      auto database = *SqliteDatabase::Open(path, SqliteAccess::kWrite);
      ASSERT_THAT(database->Migrate(kStoreApplicationId, migrations.first(version)), IsOk());
    }
    auto store = SqliteStore::Open(path);
    ASSERT_THAT(store, IsOk()) << version;
    EXPECT_THAT((*(*store)->Read())->EntryCount(), IsOkAndHolds(0));
  }
}

TEST_F(SqliteStoreTest, WhatWasSaidOfArtifactsBeforeIsTheTrainers) {
  const std::string path = scratch_.Path("artifacts.sqlite");
  {
    auto database = *SqliteDatabase::Open(path, SqliteAccess::kWrite);
    ASSERT_THAT(database->Migrate(kStoreApplicationId, StoreMigrations().first(1)), IsOk());
  }
  const std::string digest = Name("a").ToHex();
  ASSERT_EQ(Sql(path, absl::StrCat("INSERT INTO artifacts VALUES (x'", digest,
                                   "', 5, 0); INSERT INTO artifact_mirrors VALUES (x'", digest,
                                   "', 'https://a'), (x'", digest, "', 'https://b')")),
            SQLITE_OK);
  auto store = SqliteStore::Open(path);
  ASSERT_THAT(store, IsOk());
  EXPECT_THAT((*(*store)->Read())->ArtifactByTrainers(Name("a")),
              IsOkAndHolds(ElementsAre(ArtifactRow{.digest = Name("a"),
                                                   .source = Digest(),
                                                   .by_trainer = true,
                                                   .bytes = 5,
                                                   .mirrors = {"https://a", "https://b"}})));
}

// The steps of a schema that grows: data of each version, and an end that says all were taken.
constexpr const char* kGrowing[] = {
    "CREATE TABLE t (a INTEGER) STRICT; INSERT INTO t VALUES (1);",
    "ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 10; UPDATE t SET b = a + 20;",
    "CREATE TABLE u (c INTEGER) STRICT; INSERT INTO u SELECT a + b FROM t;",
};

TEST_F(SqliteStoreTest, MigrationsKeepWhatIsThere) {
  for (size_t version = 1; version <= 3; ++version) {
    const std::string path = scratch_.Path(absl::StrCat("growing", version));
    ASSERT_THAT((*SqliteDatabase::Open(path, SqliteAccess::kWrite))
                    ->Migrate(7, absl::MakeConstSpan(kGrowing).first(version)),
                IsOk());
    auto database = *SqliteDatabase::Open(path, SqliteAccess::kWrite);
    ASSERT_THAT(database->Migrate(7, kGrowing), IsOk());
    EXPECT_THAT(database->Integer("SELECT c FROM u"), IsOkAndHolds(22));
    EXPECT_THAT(database->Integer("PRAGMA user_version"), IsOkAndHolds(3));
    EXPECT_THAT(database->Migrate(7, absl::MakeConstSpan(kGrowing).first(2)),
                StatusIs(kFailedPrecondition, HasSubstr("newer")));
    auto reader = *SqliteDatabase::Open(path, SqliteAccess::kRead);
    EXPECT_THAT(reader->Migrate(7, kGrowing), IsOk());
  }
}

TEST_F(SqliteStoreTest, AMigrationThatFailsChangesNothing) {
  const char* const wrong[] = {kGrowing[0], "UPDATE t SET a = 5; CREATE TABLE t (x);"};
  const std::string path = scratch_.Path("wrong");
  auto database = *SqliteDatabase::Open(path, SqliteAccess::kWrite);
  EXPECT_THAT(database->Migrate(7, wrong),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("from schema version 1 to 2")));
  EXPECT_THAT(database->Integer("SELECT a FROM t"), IsOkAndHolds(1));
  EXPECT_THAT(database->Integer("PRAGMA user_version"), IsOkAndHolds(1));
  EXPECT_THAT(database->Migrate(7, kGrowing), IsOk());
}

TEST_F(SqliteStoreTest, AMigrationMayBeCutOffAnywhere) {
  int64_t calls = 0;
  const std::string directory = scratch_.Path("cut");
  const auto migrate = [&] {
    auto database = SqliteDatabase::Open(directory + "/file", SqliteAccess::kWrite);
    return database.ok() && (*database)->Migrate(7, kGrowing).ok() ? 0 : 1;
  };
  fs::create_directory(directory);
  ArmFault(directory, {});
  ASSERT_EQ(migrate(), 0);
  calls = CallsMade();
  DisarmFault();
  ASSERT_GT(calls, 10);
  for (int64_t at = 1; at <= calls; ++at) {
    for (const FaultEffect effect : {FaultEffect::kExit, FaultEffect::kPowerCut}) {
      fs::remove_all(directory);
      fs::create_directory(directory);
      ASSERT_EQ(RunInChild([&] {
                  ArmFault(directory,
                           {.at = at, .effect = effect, .seed = static_cast<uint64_t>(at)});
                  return migrate();
                }),
                kFaultExitStatus);
      ASSERT_EQ(migrate(), 0) << at;
      auto database = *SqliteDatabase::Open(directory + "/file", SqliteAccess::kWrite);
      EXPECT_THAT(database->Integer("SELECT c FROM u"), IsOkAndHolds(22)) << at;
    }
  }
}

TEST_F(SqliteStoreTest, ABusyStoreIsUnavailableAndNothingHappens) {
  Reopen(/*busy_ms=*/0);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_THAT(store_->Write(), StatusIs(kUnavailable, HasSubstr("locked")));
  EXPECT_THAT(Read()->EntryCount(), IsOkAndHolds(0));
  ASSERT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  Write([](StoreTransaction& t) { EXPECT_THAT(t.AppendEntry(MakeEntry("now")), IsOk()); });
}

TEST_F(SqliteStoreTest, BackupIsOneSnapshotAndAStore) {
  Write([](StoreTransaction& t) { ASSERT_THAT(t.AppendEntry(MakeEntry("one")), IsOk()); });
  auto transaction = *store_->Write();
  ASSERT_THAT(transaction->AppendEntry(MakeEntry("two")), IsOk());
  const std::string backup = scratch_.Path("backup.sqlite");
  ASSERT_THAT(store_->Backup(backup), IsOk());
  ASSERT_THAT(transaction->Commit(), IsOk());
  EXPECT_THAT(store_->Backup(backup), StatusIs(kAlreadyExists));
  EXPECT_FALSE(fs::exists(backup + ".partial"));
  auto store = SqliteStore::Open(backup);
  ASSERT_THAT(store, IsOk());
  EXPECT_THAT((*(*store)->Read())->EntryCount(), IsOkAndHolds(1));
  EXPECT_THAT(store_->Backup(scratch_.Path("no/such/place")), Not(IsOk()));
}

TEST_F(SqliteStoreTest, AfterAFailedSyncNothingIsWritten) {
  Write([](StoreTransaction& t) { ASSERT_THAT(t.AppendEntry(MakeEntry("one")), IsOk()); });
  bool failed = false;
  for (int64_t at = 1; at < 10 && !failed; ++at) {
    auto transaction = *store_->Write();
    ASSERT_THAT(transaction->AppendEntry(MakeEntry(absl::StrCat("more ", at))), IsOk());
    ArmFault(path_.substr(0, path_.rfind('/')), {.at = at});
    failed = !transaction->Commit().ok();
    DisarmFault();
    if (failed) {
      EXPECT_FALSE(transaction->health().ok());
    }
  }
  ASSERT_TRUE(failed);
  EXPECT_FALSE(store_->Write().ok());
  Reopen();
  EXPECT_THAT(Read()->Entry(0), IsOkAndHolds(Field(&EntryRow::envelope, "one")));
  EXPECT_THAT(store_->Write(), IsOk());
}

TEST(ServiceTimeTest, GoesOnWhereItStoppedWhateverTheTimeOfDay) {
  FakeClock clock;
  clock.Advance(absl::Hours(5));
  const ServiceTime time(1000, clock);
  EXPECT_EQ(time.NowMs(), 1000);
  clock.Advance(absl::Milliseconds(7));
  clock.SetNow(clock.Now() - absl::Hours(24));
  EXPECT_EQ(time.NowMs(), 1007);
  EXPECT_EQ(time.UnixMs(), absl::ToUnixMillis(clock.Now()));
}

}  // namespace
}  // namespace lockstep::coordinator
