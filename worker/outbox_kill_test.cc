// SPDX-License-Identifier: Apache-2.0
//
// The outbox under kill -9: a process adds, acknowledges and finishes items until it is killed at a
// random moment, over and over in one folder. Whatever it was told is durable must be there.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "audit/testing/small_log.h"
#include "base/testing/child_process.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/outbox.h"

namespace lockstep::worker {
namespace {

constexpr char kOrigin[] = "example.com/log";
constexpr int kKills = 60;

OutboxItem Item(uint64_t step) {
  return {.origin = kOrigin,
          .run_id = audit::TestDigest("run", 0),
          .step = step,
          .lease_id = "lease",
          .envelope = absl::StrCat("attestation of ", step),
          .nonce = audit::TestDigest("nonce", step),
          .openings = 1,
          .leaves = audit::TestTranscript(step)};
}

// Notes of what was promised, which a kill of this process does not take back.
void Note(int fd, const std::string& line) {
  LOCKSTEP_CHECK(::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
}

// The child: goes on from whatever is there.
int Work(const std::string& folder) {
  const int notes = ::open((folder + "/notes").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  LOCKSTEP_CHECK(notes >= 0);
  const std::unique_ptr<Outbox> outbox = Outbox::Open(folder + "/outbox").value();
  for (uint64_t step = 0;; ++step) {
    if (outbox->Knows(kOrigin, Item(step).run_id, step)) continue;
    LOCKSTEP_CHECK(outbox->Add(Item(step)).ok());
    Note(notes, absl::StrCat("added ", step, "\n"));
    const std::vector<uint64_t> pending = outbox->Pending();
    if (pending.size() < 3) continue;
    const uint64_t number = pending.front();
    const uint64_t oldest = outbox->Read(number)->step;
    LOCKSTEP_CHECK(
        outbox->Acknowledge(number, absl::StrCat("receipt ", oldest), Ed25519Signature{}).ok());
    LOCKSTEP_CHECK(outbox->Finish(number).ok());
    Note(notes, absl::StrCat("finished ", oldest, "\n"));
  }
}

TEST(OutboxKill, WhatWasPromisedIsThere) {
  const TemporaryFolder folder;
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  for (int kill = 0; kill < kKills; ++kill) {
    const pid_t child = StartChild({"--work", folder.path()});
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 40'000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_TRUE(WIFSIGNALED(WaitForChild(child)));

    const auto outbox = Outbox::Open(folder / "outbox");
    ASSERT_THAT(outbox, IsOk());
    std::set<uint64_t> waiting;
    for (const uint64_t number : (*outbox)->Pending()) {
      const absl::StatusOr<OutboxItem> item = (*outbox)->Read(number);
      ASSERT_THAT(item, IsOk());
      EXPECT_TRUE(waiting.insert(item->step).second) << "twice: step " << item->step;
      OutboxItem expected = Item(item->step);
      expected.challenge = item->challenge;
      EXPECT_EQ(*item, expected);
    }
    for (const absl::string_view line :
         absl::StrSplit(ReadBytes(folder / "notes"), '\n', absl::SkipEmpty())) {
      const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
      uint64_t step = 0;
      ASSERT_EQ(words.size(), 2u);
      std::from_chars(words[1].data(), words[1].data() + words[1].size(), step);
      EXPECT_TRUE((*outbox)->Knows(kOrigin, Item(step).run_id, step)) << line;
      EXPECT_FALSE(words[0] == "finished" && waiting.contains(step)) << line;
    }
  }
  EXPECT_GT(ReadBytes(folder / "notes").size(), 0u) << "no child got anywhere";
}

}  // namespace
}  // namespace lockstep::worker

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--work") == 0) return lockstep::worker::Work(argv[2]);
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
