// SPDX-License-Identifier: Apache-2.0
//
// The publisher against a coordinator that refuses, dies, stays silent, forgets and lies, and
// killed itself again and again. Run with arguments, this program is the one that is killed.
#include "trainer/publisher.h"

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "audit/ledger/receipt.h"
#include "base/testing/child_process.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/publish/fake_coordinator.h"
#include "tests/publish/run_fixture.h"
#include "trainer/run_artifacts.h"
#include "trainer/trainer_key.h"

namespace lockstep::testing {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using trainer::Publisher;

// No run here takes so long.
constexpr absl::Duration kLong = absl::Seconds(60);

trainer::PublisherOptions QuickOptions(const std::string& url) {
  trainer::PublisherOptions options;
  options.coordinator.url = url;
  options.deadline = absl::Seconds(20);
  options.backoff = absl::Milliseconds(1);
  options.backoff_max = absl::Milliseconds(20);
  options.poll = absl::Milliseconds(5);
  return options;
}

class PublisherTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Publisher>> StartWith(trainer::PublisherOptions options) {
    auto key = trainer::LoadOrCreateTrainerKey(run_ / "key");
    if (!key.ok()) return key.status();
    return Publisher::Start(run_.run(), *std::move(key), std::move(options));
  }
  std::unique_ptr<Publisher> Start() { return StartWith(QuickOptions(fake_.url())).value(); }

  // All that is in the folder is there, once, and in order (the ledger sees to that).
  void ExpectComplete(const std::vector<uint64_t>& checkpoints) {
    EXPECT_EQ(fake_.records(), run_.records().size());
    EXPECT_EQ(fake_.checkpoints(), checkpoints);
    EXPECT_THAT(fake_.entries(), SizeIs(1 + run_.records().size() + checkpoints.size()));
    for (const Digest& artifact : run_.artifacts()) {
      EXPECT_TRUE(fake_.Holds(artifact)) << artifact.ToHex();
    }
  }

  RunFixture run_;
  TemporaryFolder artifacts_;
  FakeCoordinator fake_{artifacts_.path()};
};

TEST_F(PublisherTest, TellsOfAllThatIsThere) {
  run_.Save();
  run_.Train(600);
  run_.Save();
  const auto publisher = Start();
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  ExpectComplete({0, 600});
  const trainer::PublishStatus status = publisher->status();
  EXPECT_TRUE(status.registered);
  EXPECT_EQ(status.next_step, 600u);
  EXPECT_EQ(status.checkpoints, 2u);
}

TEST_F(PublisherTest, KeepsReceiptsThatHold) {
  run_.Save();
  run_.Train(3);
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  const std::string folder = run_.run().path() + "/publish/";
  const audit::NoteKey key =
      audit::NoteKey::FromText(
          std::string(absl::StripAsciiWhitespace(ReadBytes(folder + "log_key"))))
          .value();
  EXPECT_EQ(key, fake_.log_key());
  for (const char* const name : {"run", "records", "checkpoint-0"}) {
    const auto receipt =
        audit::ParseReceipt(ReadBytes(absl::StrCat(folder, "receipts/", name, ".json")));
    ASSERT_THAT(receipt, IsOk());
    EXPECT_THAT(fake_.entries(), Contains(receipt->entry));
    EXPECT_THAT(audit::VerifyLogProof(receipt->proof, MerkleLeafHash(AsBytes(receipt->entry)), key),
                IsOk());
  }
}

TEST_F(PublisherTest, FollowsARunAtWork) {
  const auto publisher = Start();
  std::vector<uint64_t> saved;
  for (int i = 0; i < 10; ++i) {
    saved.push_back(run_.records().size());
    run_.Save();
    run_.Train(7);
    ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
    EXPECT_EQ(fake_.records(), run_.records().size());
  }
  ExpectComplete(saved);
}

TEST_F(PublisherTest, APartOfARecordIsNotSent) {
  run_.Save();
  run_.Train(2);
  const std::string log = ReadBytes(run_.run().StepLogPath());
  WriteBytes(run_.run().StepLogPath(), log + log.substr(0, 100));
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  EXPECT_EQ(fake_.records(), 2u);
}

TEST_F(PublisherTest, WhatAKillLeftBehindIsRemoved) {
  run_.Save();
  run_.Train(2);
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  const std::string folder = run_.run().path() + "/publish";
  const auto whole = ReadAll(folder + "/receipts");
  for (const char* const name : {"/.lockstep-1-1.tmp", "/receipts/.lockstep-1-2.tmp"}) {
    WriteBytes(folder + name, "half");
  }
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  EXPECT_EQ(ReadAll(folder + "/receipts").size(), whole.size());
  EXPECT_FALSE(std::filesystem::exists(folder + "/.lockstep-1-1.tmp"));
}

TEST_F(PublisherTest, ARunWithoutAStateHasNothingToTell) {
  const auto publisher = Start();
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  EXPECT_FALSE(publisher->status().registered);
  EXPECT_THAT(fake_.entries(), IsEmpty());
}

TEST_F(PublisherTest, WhatWasPublishedIsNotSentAgain) {
  run_.Save();
  run_.Train(300);
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  const auto before = fake_.calls();
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  ExpectComplete({0});
  EXPECT_EQ(fake_.calls()["PublishRecords"], before.at("PublishRecords"));
  EXPECT_EQ(fake_.calls()["AnnounceCheckpoint"], before.at("AnnounceCheckpoint"));
}

TEST_F(PublisherTest, ACoordinatorMayBeAway) {
  fake_.Stop();
  const auto publisher = Start();
  run_.Save();
  run_.Train(50);
  // Who waits for it is told, and nobody else is held up.
  EXPECT_THAT(publisher->Drain(absl::Milliseconds(200), nullptr),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(publisher->Drain(kLong, [] { return true; }), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(publisher->status().records, StatusIs(absl::StatusCode::kUnavailable));
  run_.Train(50);
  fake_.Start();
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  ExpectComplete({0});
  // And again, in the middle.
  fake_.Stop();
  run_.Train(500);
  EXPECT_THAT(publisher->Drain(absl::Milliseconds(50), nullptr),
              StatusIs(absl::StatusCode::kUnavailable));
  fake_.Start();
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  ExpectComplete({0});
}

TEST_F(PublisherTest, EveryCallMayFail) {
  for (const Fault fault :
       {Fault::kRefuse, Fault::kDieAfter, Fault::kInternal, Fault::kBadReceipt}) {
    SCOPED_TRACE(static_cast<int>(fault));
    TemporaryFolder artifacts;
    FakeCoordinator fake(artifacts.path());
    RunFixture run;
    run.Save();
    run.Train(600);
    run.Save();
    // Each method fails at its first three calls.
    std::map<std::string, int> failures;
    fake.SetFault([&, fault](absl::string_view method) {
      return failures[std::string(method)]++ < 3 ? fault : Fault::kNone;
    });
    const auto publisher =
        Publisher::Start(run.run(), Ed25519PrivateKey::Generate().value(), QuickOptions(fake.url()))
            .value();
    ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
    EXPECT_EQ(fake.records(), 600u);
    EXPECT_THAT(fake.checkpoints(), ElementsAre(0, 600));
    EXPECT_THAT(fake.entries(), SizeIs(603));
    fake.SetFault(nullptr);
  }
}

TEST_F(PublisherTest, AnythingMayHappenInAnyOrder) {
  const uint64_t seed = 20261130;
  std::mt19937_64 random(seed);
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  int left = 60;
  fake_.SetFault([&](absl::string_view) {
    constexpr Fault kFaults[] = {Fault::kRefuse,   Fault::kDieAfter,   Fault::kForget,
                                 Fault::kInternal, Fault::kBadReceipt, Fault::kNone,
                                 Fault::kNone,     Fault::kNone};
    return left-- > 0 ? kFaults[random() % std::size(kFaults)] : Fault::kNone;
  });
  const auto publisher = Start();
  for (int i = 0; i < 5; ++i) {
    run_.Save();
    run_.Train(100);
    std::this_thread::yield();
  }
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  // It may have forgotten after the publisher's last word.
  fake_.SetFault(nullptr);
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  EXPECT_EQ(fake_.records(), 500u);
  EXPECT_THAT(fake_.checkpoints(), ElementsAre(0, 100, 200, 300, 400));
}

TEST_F(PublisherTest, SilenceEndsAtTheDeadline) {
  run_.Save();
  run_.Train(10);
  std::map<std::string, int> failures;
  fake_.SetFault([&](absl::string_view method) {
    return failures[std::string(method)]++ < 1 ? Fault::kSilent : Fault::kNone;
  });
  trainer::PublisherOptions options = QuickOptions(fake_.url());
  options.deadline = absl::Milliseconds(300);
  const auto publisher = StartWith(options).value();
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  ExpectComplete({0});
  // Who stops does not wait for it.
  fake_.SetFault([](absl::string_view) { return Fault::kSilent; });
}

TEST_F(PublisherTest, StoppingDoesNotWaitForAnswers) {
  run_.Save();
  fake_.SetFault([](absl::string_view) { return Fault::kSilent; });
  trainer::PublisherOptions options = QuickOptions(fake_.url());
  options.deadline = absl::Hours(1);
  auto publisher = StartWith(options).value();
  while (fake_.calls().empty()) std::this_thread::yield();
  publisher = nullptr;
  EXPECT_THAT(fake_.entries(), IsEmpty());
}

TEST_F(PublisherTest, ACoordinatorThatForgotIsToldAgain) {
  run_.Save();
  run_.Train(300);
  run_.Save();
  const auto publisher = Start();
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  for (const size_t kept : {0, 1, 2, 200}) {
    fake_.LoseFrom(kept);
    // It is noticed when there is something to say, or by the next publisher.
    run_.Train(1);
    ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk()) << kept;
    EXPECT_EQ(fake_.records(), run_.records().size()) << kept;
  }
  fake_.LoseFrom(0);
  run_.Train(1);
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  ExpectComplete({0, 300});
}

TEST_F(PublisherTest, NeverSendsASecondHistory) {
  run_.Save();
  run_.Train(5);
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  const size_t before = fake_.entries().size();
  // The run is trained anew, and comes out differently from step 3 on.
  std::string log = ReadBytes(run_.run().StepLogPath());
  std::string kept = log.substr(0, 3 * audit::kStepRecordBytes);
  audit::StepRecord other = run_.records()[3];
  for (int i = 0; i < 4; ++i) {
    other.loss += 1;
    kept += audit::EncodeStepRecord(other);
    const Digest chain = audit::ChainAfter(other);
    ++other.step;
    other.previous_chain = chain;
    other.tokens_before += other.tokens;
  }
  WriteBytes(run_.run().StepLogPath(), kept);
  const auto publisher = Start();
  EXPECT_THAT(publisher->Drain(kLong, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another history")));
  EXPECT_THAT(fake_.entries(), SizeIs(before));
}

TEST_F(PublisherTest, ALogThatLostItsEndWaitsForTraining) {
  run_.Save();
  run_.Train(10);
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  const std::string log = ReadBytes(run_.run().StepLogPath());
  WriteBytes(run_.run().StepLogPath(), log.substr(0, 4 * audit::kStepRecordBytes));
  const auto publisher = Start();
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  EXPECT_EQ(fake_.records(), 10u);
  WriteBytes(run_.run().StepLogPath(), log);
  run_.Train(5);
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  ExpectComplete({0});
}

TEST_F(PublisherTest, AnotherLogOrAnotherKeyStopsIt) {
  run_.Save();
  run_.Train(2);
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  {
    const auto publisher = Publisher::Start(run_.run(), Ed25519PrivateKey::Generate().value(),
                                            QuickOptions(fake_.url()))
                               .value();
    EXPECT_THAT(publisher->Drain(kLong, nullptr),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--trainer-key")));
  }
  fake_.BecomeAnotherLog();
  EXPECT_THAT(Start()->Drain(kLong, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has fake.example/log+")));
  EXPECT_THAT(fake_.entries(), IsEmpty());
}

TEST_F(PublisherTest, MirrorsAreNamedAndNothingIsUploaded) {
  fake_.WantNothing();
  run_.Save();
  run_.Train(2);
  trainer::PublisherOptions options = QuickOptions(fake_.url());
  options.mirrors = {"https://mirror.example/a"};
  ASSERT_THAT(StartWith(options).value()->Drain(kLong, nullptr), IsOk());
  EXPECT_THAT(fake_.mirrors(), AllOf(SizeIs(Gt(4)), Each(std::string("https://mirror.example/a"))));
  for (const Digest& artifact : run_.artifacts()) EXPECT_FALSE(fake_.Holds(artifact));
}

TEST_F(PublisherTest, RemovedAndDamagedStatesArePassedOver) {
  run_.Save();
  run_.Train(2);
  run_.Save();
  run_.Train(2);
  run_.Save();
  WriteBytes(run_.run().CheckpointPath(2) + "/parameters.safetensors", "damaged");
  const auto publisher = Start();
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  EXPECT_THAT(fake_.checkpoints(), ElementsAre(0, 4));
  std::filesystem::remove_all(run_.run().CheckpointPath(0));
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
}

TEST_F(PublisherTest, EvaluationsAreSentOnceWhenTheirRecordsAreThere) {
  const auto publisher = Start();
  for (int i = 0; i < 3; ++i) {
    run_.Save();
    run_.Evaluate(8.0 - i);
    run_.Train(2);
  }
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  EXPECT_EQ(publisher->status().evaluations, 3u);
  EXPECT_THAT(fake_.entries(), SizeIs(1 + 6 + 3 + 3));
  EXPECT_EQ(fake_.calls()["PublishEvaluation"], 3);
  EXPECT_TRUE(std::filesystem::exists(run_.run().path() + "/publish/receipts"));
}

TEST_F(PublisherTest, EvaluationsThatNobodyTakesHoldNothingUp) {
  run_.Save();
  run_.Train(2);
  run_.Evaluate(5);
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  run_.Evaluate(4);  // the same texts, and another result
  WriteBytes(run_.run().path() + "/evaluations/00000001-damaged.json", "{");
  run_.Train(2);
  run_.Evaluate(3);
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  EXPECT_THAT(fake_.entries(), SizeIs(1 + 4 + 1 + 2));
}

TEST_F(PublisherTest, ACoordinatorThatForgotIsToldItsEvaluationsAgain) {
  run_.Save();
  run_.Train(2);
  run_.Evaluate(5);
  const auto publisher = Start();
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  bool forget = true;
  fake_.SetFault([&](absl::string_view method) {
    return method == "GetProgress" && std::exchange(forget, false) ? Fault::kForget : Fault::kNone;
  });
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  EXPECT_THAT(fake_.entries(), SizeIs(1 + 2 + 1 + 1));
}

TEST_F(PublisherTest, AStateThatTheCoordinatorHasOtherwiseHoldsNoOtherUp) {
  run_.Save();
  run_.Train(2);
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  const Ed25519PrivateKey key = trainer::LoadOrCreateTrainerKey(run_ / "key").value();
  const Ed25519PrivateKey* const keys[] = {&key};
  run_.Save();
  auto other = trainer::ReadCheckpoint(run_.run(), run_.run().CheckpointPath(2)).value();
  other.announcement.manifest = Sha256(AsBytes("another"));
  ASSERT_THAT(fake_.Append(audit::MakeLogEntry(other.announcement, keys).value()), IsOk());
  fake_.HideCheckpoints();
  run_.Train(2);
  run_.Save();
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  EXPECT_THAT(fake_.checkpoints(), ElementsAre(0, 2, 4));
}

TEST_F(PublisherTest, TheAddressForFilesMayChange) {
  run_.Save();
  run_.Train(2);
  const auto publisher = Start();
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  fake_.MoveArtifacts();
  run_.Save();
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  ExpectComplete({0, 2});
}

TEST_F(PublisherTest, AnotherLogAtTheSameAddressGetsNothing) {
  run_.Save();
  run_.Train(2);
  const auto publisher = Start();
  ASSERT_THAT(publisher->Drain(kLong, nullptr), IsOk());
  const std::vector<std::string> entries = fake_.entries();
  fake_.BecomeAnotherLog();
  // Even one that has the run so far, copied from the first.
  for (const std::string& entry : entries) ASSERT_THAT(fake_.Append(entry), IsOk());
  run_.Train(2);
  EXPECT_THAT(publisher->Drain(kLong, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has fake.example/log+")));
  EXPECT_EQ(fake_.records(), 2u);
}

TEST_F(PublisherTest, OnePublishesAtATime) {
  run_.Save();
  const auto publisher = Start();
  EXPECT_THAT(StartWith(QuickOptions(fake_.url())),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(PublisherTest, AddressesThatAreNoneOrNotSafe) {
  for (const char* const url : {"", "localhost:1", "ftp://localhost:1", "http://example.com:80",
                                "https://", "https://host/path", "http://10.0.0.1:5"}) {
    EXPECT_THAT(StartWith(QuickOptions(url)), StatusIs(absl::StatusCode::kInvalidArgument)) << url;
  }
}

TEST_F(PublisherTest, MirrorsAreFilledWhole) {
  run_.Save();
  const auto inputs = trainer::InputArtifacts(run_.run());
  ASSERT_THAT(inputs, IsOk());
  auto artifacts = *inputs;
  const auto state = trainer::ReadCheckpoint(run_.run(), run_.run().CheckpointPath(0));
  ASSERT_THAT(state, IsOk());
  artifacts.insert(artifacts.end(), state->files.begin(), state->files.end());
  const std::string mirror = run_ / "mirror";
  std::filesystem::create_directories(mirror + "/artifact");
  for (const auto& artifact : artifacts) {
    EXPECT_THAT(trainer::CopyToMirror(artifact, mirror, [](int64_t) {}), IsOkAndHolds(true));
    EXPECT_THAT(trainer::CopyToMirror(artifact, mirror, [](int64_t) {}), IsOkAndHolds(false));
  }
  std::map<std::string, std::string> files = ReadAll(mirror + "/artifact");
  EXPECT_THAT(files, SizeIs(run_.artifacts().size()));
  for (const Digest& digest : run_.artifacts()) {
    EXPECT_EQ(Sha256(AsBytes(files[digest.ToHex()])), digest);
  }
  trainer::RunArtifact damaged = artifacts[0];
  std::filesystem::remove(mirror + "/artifact/" + damaged.sha256.ToHex());
  WriteBytes(damaged.path, "damaged");
  EXPECT_THAT(trainer::CopyToMirror(damaged, mirror, [](int64_t) {}),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ReadAll(mirror + "/artifact"), SizeIs(run_.artifacts().size() - 1));
}

TEST_F(PublisherTest, MayBeKilledAtAnyMoment) {
  ASSERT_THAT(trainer::LoadOrCreateTrainerKey(run_ / "key"), IsOk());
  const uint64_t seed = 5;
  std::mt19937_64 random(seed);
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  constexpr int kKills = 50;
  std::vector<uint64_t> saved;
  for (int i = 0; i < kKills; ++i) {
    if (i % 10 == 0) {
      saved.push_back(run_.records().size());
      run_.Save();
    }
    run_.Train(40);
    const int calls_left = static_cast<int>(random() % 12);
    // At a call that is drawn, before or after it has its effect, or somewhere between.
    const pid_t child = StartChild({run_.run().path(), fake_.url(), run_ / "key"});
    std::atomic<int> left = calls_left;
    const bool after = random() % 2 == 0;
    fake_.SetFault([&, after, child](absl::string_view) {
      if (left-- > 0) return Fault::kNone;
      kill(child, SIGKILL);
      return after ? Fault::kDieAfter : Fault::kRefuse;
    });
    const int status = WaitForChild(child);
    fake_.SetFault(nullptr);
    ASSERT_TRUE(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << status;
  }
  ASSERT_THAT(Start()->Drain(kLong, nullptr), IsOk());
  ExpectComplete(saved);
}

}  // namespace lockstep::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  if (argc == 1) return RUN_ALL_TESTS();
  // RUN URL KEY: publishes, and ends when all is published.
  using lockstep::engine::RunFolder;
  const auto publisher = lockstep::trainer::Publisher::Start(
      RunFolder::Open(argv[1]).value(), lockstep::trainer::LoadOrCreateTrainerKey(argv[3]).value(),
      lockstep::testing::QuickOptions(argv[2]));
  const absl::Status drained = publisher.value()->Drain(absl::Seconds(60), nullptr);
  std::fprintf(stderr, "%s", drained.ok() ? "" : std::string(drained.message()).c_str());
  return drained.ok() ? 0 : 1;
}
