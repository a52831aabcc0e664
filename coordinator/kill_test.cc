// SPDX-License-Identifier: Apache-2.0
//
// The program, killed at moments that nobody chose while a trainer and auditors keep it busy:
// nothing that it acknowledged may be gone, and what is on the disk must be a whole log for a
// checker that shares no code with it. LOCKSTEP_KILLS says how often (50).

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "coordinator/testing/log_checker.h"
#include "coordinator/testing/program.h"
#include "coordinator/testing/small_network.h"
#include "coordinator/testing/test_client.h"
#include "coordinator/testing/test_load.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lockstep::coordinator {
namespace {

constexpr int kWorkers = 4;
constexpr uint64_t kStepsMax = 20'000;
constexpr char kOrigin[] = "test.example/killed";

int64_t NowUnixMs() { return absl::ToUnixMillis(RealClock().Now()); }

// What was acknowledged: envelopes by log index.
class Acknowledged {
 public:
  void Add(uint64_t log_index, const std::string& envelope) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [at, added] = envelopes_.emplace(log_index, envelope);
    EXPECT_EQ(at->second, envelope) << "two entries were given index " << log_index;
  }
  void Check(const std::vector<std::string>& entries) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [index, envelope] : envelopes_) {
      ASSERT_LT(index, entries.size()) << "an acknowledged entry is gone";
      ASSERT_EQ(entries[index], envelope) << "entry " << index << " is another";
    }
  }
  size_t size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return envelopes_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, std::string> envelopes_;
};

// Until somebody does not answer. What was refused is a failure.
void Work(TestWorker& worker, TestClient& client, const std::atomic<bool>& stop) {
  while (!stop) {
    const bool had_lease = worker.has_lease();
    const absl::Status status = had_lease ? worker.Step(client) : worker.Acquire(client);
    if (IsUnanswered(status)) return;
    EXPECT_TRUE(status.ok()) << status;
    if (!had_lease && !worker.has_lease()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

// Publishes records from where the coordinator has them.
void Train(TestTrainer& trainer, TestClient& client, const std::atomic<bool>& stop) {
  absl::Status status = trainer.Begin(client);
  while (status.ok() && !stop && trainer.next_step() + 4 < kStepsMax) {
    status = trainer.Publish(client, 4);
    if (status.ok() && trainer.next_step() % 16 == 4) status = trainer.Announce(client);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(status.ok() || IsUnanswered(status)) << status;
}

TEST(Kill, LosesNothingThatWasAcknowledged) {
  int kills = 50;
  if (const char* wanted = std::getenv("LOCKSTEP_KILLS")) {
    ASSERT_TRUE(absl::SimpleAtoi(wanted, &kills));
  }
  constexpr uint64_t kSeed = 5;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  SmallNetwork network;  // for what it knows of the run; its own coordinator is never opened
  network.Record(kStepsMax);
  const std::string data = network.scratch().Path("killed");
  Acknowledged acknowledged;
  const auto add = [&](uint64_t log_index, const std::string& envelope) {
    acknowledged.Add(log_index, envelope);
  };
  std::vector<TestWorker> workers;
  for (int n = 0; n < kWorkers; ++n) workers.emplace_back(network, audit::WorkerKey(n), add);
  TestTrainer trainer(network, add);
  bool keys_added = false;
  for (int round = 0; round <= kills; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    Program program(data, kOrigin);
    if (round > 0 && random() % 4 == 0) {
      // While it starts: recovery, cut off.
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
      program.End(SIGKILL);
      continue;
    }
    ASSERT_TRUE(program.WaitUntilReady());
    // Ids of requests are never used twice, in whichever round.
    const auto make_client = [&](int n) {
      auto client = std::make_unique<TestClient>(program.public_port, program.trainer_port, kOrigin,
                                                 NowUnixMs);
      client->SetRequests(static_cast<uint64_t>(round * 100 + n) << 32);
      return client;
    };
    for (int n = 0; !keys_added && n < kWorkers; ++n) {
      const absl::Status added = SubmitOperator(*make_client(50 + n), n, add);
      ASSERT_TRUE(added.ok()) << added;
    }
    keys_added = true;
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    threads.emplace_back([&] { Train(trainer, *make_client(49), stop); });
    for (int n = 0; n < kWorkers; ++n) {
      threads.emplace_back([&, n] { Work(workers[n], *make_client(n), stop); });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(30 + random() % 400));
    const bool last = round == kills;
    if (last) stop = true;
    const int status = program.End(last ? SIGTERM : SIGKILL);
    stop = true;
    for (std::thread& thread : threads) thread.join();
    if (last) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "asked to end, it ends well";
    }
  }
  // One more start and end, so that recovery has done what it does.
  {
    Program program(data, kOrigin);
    ASSERT_TRUE(program.WaitUntilReady());
    program.End(SIGTERM);
  }
  const auto key = Ed25519PrivateKey::Load(data + "/log.key");
  ASSERT_TRUE(key.ok()) << key.status();
  const auto entries =
      CheckLog(LogWriter::PublicDirectory(data + "/log"), kOrigin, key->public_key());
  ASSERT_TRUE(entries.ok()) << entries.status();
  acknowledged.Check(*entries);
  EXPECT_GT(acknowledged.size(), static_cast<size_t>(kills)) << "there was no load";
  // And every entry is one that a verifier takes.
  audit::Ledger ledger(key->public_key());
  for (size_t i = 0; i < entries->size(); ++i) {
    const auto taken = ledger.Apply(i, (*entries)[i], audit::Signatures::kVerify);
    ASSERT_TRUE(taken.ok()) << i << ": " << taken.status();
  }
  EXPECT_TRUE(ledger.disputes().empty());
  RecordProperty("acknowledged", static_cast<int>(acknowledged.size()));
}

}  // namespace
}  // namespace lockstep::coordinator
