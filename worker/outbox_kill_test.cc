// SPDX-License-Identifier: Apache-2.0
//
// The outbox under kill -9: a process adds, acknowledges and finishes items until it is killed at a
// random moment, over and over in one folder. Whatever it was told is durable must be there.
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "audit/ledger/receipt.h"
#include "audit/testing/small_log.h"
#include "base/status.h"
#include "base/testing/child_process.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/outbox.h"

namespace lockstep::worker {
namespace {

using ::testing::EndsWith;

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

audit::LogProof Proof(uint64_t step) {
  return {.extra = std::nullopt, .index = step, .hashes = {}, .checkpoint = "head\n"};
}

// Notes of what was promised, which a kill of this process does not take back. By writev, which the
// outbox does not use: so faults can be told apart from it (tests/worker_test.py).
void Note(int fd, const std::string& line) {
  const iovec piece = {.iov_base = const_cast<char*>(line.data()), .iov_len = line.size()};
  LOCKSTEP_CHECK(::writev(fd, &piece, 1) == static_cast<ssize_t>(line.size()));
}

// The child: goes on from whatever is there until `end`. An error of the outbox ends it.
absl::Status Work(const std::string& folder, uint64_t end) {
  const int notes = ::open((folder + "/notes").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  LOCKSTEP_CHECK(notes >= 0);
  WriteBytes(folder + "/begun", "");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Outbox> outbox, Outbox::Open(folder + "/outbox"));
  for (uint64_t step = 0; step < end; ++step) {
    if (outbox->Knows(kOrigin, Item(step).run_id, step)) continue;
    LOCKSTEP_RETURN_IF_ERROR(outbox->Add(Item(step)));
    Note(notes, absl::StrCat("added ", step, "\n"));
    const std::vector<uint64_t> pending = outbox->Pending();
    if (pending.size() < 3) continue;
    const uint64_t number = pending.front();
    LOCKSTEP_ASSIGN_OR_RETURN(const OutboxItem oldest, outbox->Read(number));
    LOCKSTEP_RETURN_IF_ERROR(outbox->Acknowledge(number, Proof(oldest.step), Ed25519Signature{}));
    Note(notes, absl::StrCat("acknowledged ", oldest.step, "\n"));
    LOCKSTEP_RETURN_IF_ERROR(outbox->Finish(number));
    Note(notes, absl::StrCat("finished ", oldest.step, "\n"));
  }
  return absl::OkStatus();
}

// Whether what is on the disk is what the notes promise.
void Check(const std::string& folder) {
  const auto outbox = Outbox::Open(folder + "/outbox");
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
  const auto files = ReadAll(folder + "/outbox");
  for (const auto& [name, bytes] : files) EXPECT_THAT(name, EndsWith(".json"));
  for (const absl::string_view line :
       absl::StrSplit(ReadBytes(folder + "/notes"), '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    uint64_t step = 0;
    ASSERT_EQ(words.size(), 2u);
    std::from_chars(words[1].data(), words[1].data() + words[1].size(), step);
    EXPECT_TRUE((*outbox)->Knows(kOrigin, Item(step).run_id, step)) << line;
    EXPECT_FALSE(words[0] == "finished" && waiting.contains(step)) << line;
    if (words[0] == "added") continue;
    const auto receipt = std::find_if(files.begin(), files.end(), [&](const auto& file) {
      return absl::StrContains(file.first, absl::StrCat("-", step, "-"));
    });
    ASSERT_NE(receipt, files.end()) << line;
    EXPECT_THAT(audit::ParseReceipt(receipt->second),
                IsOkAndHolds(audit::Receipt{.entry = Item(step).envelope, .proof = Proof(step)}));
  }
}

TEST(OutboxKill, WhatWasPromisedIsThere) {
  const TemporaryFolder folder;
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  // Of a child's life, from when it begins its work; an emulator is slow at what it does first.
  constexpr uint64_t kLongestUs = *LOCKSTEP_EMULATOR == '\0' ? 40'000 : 400'000;
  for (int kill = 0; kill < kKills; ++kill) {
    std::filesystem::remove(folder / "begun");
    const pid_t child = StartChild({"--work", folder.path()});
    while (!std::filesystem::exists(folder / "begun")) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % kLongestUs));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_TRUE(WIFSIGNALED(WaitForChild(child)));

    Check(folder.path());
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(ReadBytes(folder / "notes").size(), 0u) << "no child got anywhere";
}

}  // namespace
}  // namespace lockstep::worker

// --work FOLDER [STEPS]: the child; exit code 1 for an error of the outbox, which is printed.
// --check FOLDER: exit code 1 unless what was promised is there.
int main(int argc, char** argv) {
  const auto is = [&](const char* word) { return argc >= 3 && std::strcmp(argv[1], word) == 0; };
  if (is("--work")) {
    const uint64_t end = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : UINT64_MAX;
    const absl::Status status = lockstep::worker::Work(argv[2], end);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return status.ok() ? 0 : 1;
  }
  const std::string checked = is("--check") ? argv[2] : "";
  ::testing::InitGoogleMock(&argc, argv);
  if (!checked.empty()) {
    lockstep::worker::Check(checked);
    return ::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0;
  }
  return RUN_ALL_TESTS();
}
