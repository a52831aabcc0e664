// SPDX-License-Identifier: Apache-2.0
//
// The program, killed at moments that nobody chose while a trainer and auditors keep it busy:
// nothing that it acknowledged may be gone, and what is on the disk must be a whole log for a
// checker that shares no code with it. LOCKSTEP_KILLS says how often (50).

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "audit/evidence/dsse.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/merkle.h"
#include "coordinator/testing/log_checker.h"
#include "coordinator/testing/small_network.h"
#include "coordinator/testing/test_client.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lockstep::coordinator {
namespace {

constexpr int kWorkers = 4;
constexpr uint64_t kStepsMax = 20'000;
constexpr char kOrigin[] = "test.example/killed";

int64_t NowUnixMs() { return absl::ToUnixMillis(RealClock().Now()); }

// `lockstep-coordinator serve`, as a process.
class Program {
 public:
  explicit Program(const std::string& data) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    std::vector<std::string> words = {LOCKSTEP_COORDINATOR_PROGRAM,
                                      "--log-level",
                                      "error",
                                      "serve",
                                      "--data",
                                      data,
                                      "--origin",
                                      kOrigin,
                                      "--listen",
                                      "127.0.0.1:0",
                                      "--trainer-listen",
                                      "127.0.0.1:0",
                                      "--http-port",
                                      "0"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    EXPECT_EQ(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = ends[0];
  }
  ~Program() {
    if (pid_ > 0) End(SIGKILL);
    close(output_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Waits for the line with the ports; false if the program ended before it.
  bool WaitUntilReady() {
    std::string line;
    char c = 0;
    while (read(output_, &c, 1) == 1 && c != '\n') line += c;
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return false;
    public_port = json["public_port"];
    trainer_port = json["trainer_port"];
    return true;
  }
  // Its wait status.
  int End(int signal) {
    kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

  int public_port = 0;
  int trainer_port = 0;

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

// What was acknowledged: envelopes by log index.
class Acknowledged {
 public:
  void Add(const v1::Receipt& receipt, const std::string& envelope) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [at, added] = envelopes_.emplace(receipt.index(), envelope);
    EXPECT_EQ(at->second, envelope) << "two entries were given index " << receipt.index();
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

// An honest auditor that outlives the coordinator: it asks again for what it got no answer to.
class Worker {
 public:
  Worker(SmallNetwork& network, int key, Acknowledged& acknowledged)
      : network_(network), key_(key), acknowledged_(acknowledged) {}

  // Until somebody does not answer.
  void Work(TestClient& client, const std::atomic<bool>& stop) {
    while (!stop) {
      const absl::Status status = lease_ ? Step(client) : Acquire(client);
      if (!status.ok() && rpc::ReasonOf(status).empty()) return;
    }
  }

 private:
  absl::Status Acquire(TestClient& client) {
    if (!asked_) {
      asked_.emplace();
      *asked_->mutable_header() = client.Header(key_);
      v1::Capabilities& machine = *asked_->mutable_capabilities();
      machine.set_backend_class("x86-avx2");
      machine.set_memory_bytes(uint64_t{1} << 40);
      machine.set_disk_bytes(uint64_t{1} << 40);
      machine.set_tokens_per_second(1e9);
    }
    const auto answer = client.Signed<v1::AcquireLeaseResponse>("AcquireLease", key_, *asked_);
    if (answer.ok() || !rpc::ReasonOf(answer.status()).empty()) asked_.reset();
    if (!answer.ok()) return answer.status();
    if (answer->has_lease()) {
      lease_ = answer->lease();
      next_step_ = lease_->begin_step();
      if (next_step_ >= lease_->end_step()) lease_.reset();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return absl::OkStatus();
  }

  absl::Status Step(TestClient& client) {
    const uint64_t step = next_step_;
    const auto served =
        audit::LogEntry::Parse(lease_->records(static_cast<int>(step - lease_->start().step())));
    const audit::StepRecord record = std::get<audit::PublishedRecord>(served->payload()).record;
    const bool same = record == network_.Record(step);
    audit::Attestation said =
        audit::TestAttestation(network_.run_id(), record, audit::TestPublicKey(key_),
                               same ? nullptr : &network_.Record(step));
    said.lease_id = HexEncode(AsBytes(lease_->lease_id()));
    said.nonce = Digest::FromBytes(AsBytes(lease_->nonce())).value();
    said.openings_digest =
        audit::OpeningsDigest(said.nonce, audit::TestPublicKey(key_), audit::TestTranscript(step));
    const std::string envelope = audit::TestEntry(said, {key_});
    const auto answer = client.Submit(lease_->lease_id(), envelope, key_);
    if (!answer.ok()) {
      const std::string reason = rpc::ReasonOf(answer.status());
      if (reason == "ATTESTATION_EXISTS") {
        if (++next_step_ == lease_->end_step()) lease_.reset();
        return absl::OkStatus();
      }
      // Ended meanwhile, perhaps by this very answer that never arrived.
      if (!reason.empty()) lease_.reset();
      EXPECT_TRUE(reason.empty() || reason == "LEASE_EXPIRED") << answer.status();
      return answer.status();
    }
    EXPECT_EQ(answer->has_receipt(), same);
    if (answer->has_receipt()) acknowledged_.Add(answer->receipt(), envelope);
    if (!answer->challenge().empty()) {
      AttestationAnswer asked{
          .entry = audit::EntryRef{.log_index = answer->receipt().index(),
                                   .leaf_hash = MerkleLeafHash(AsBytes(envelope))},
          .challenge = Ed25519Signature()};
      std::copy(answer->challenge().begin(), answer->challenge().end(), asked.challenge->begin());
      v1::SubmitOpeningRequest openings;
      for (const audit::Opening& opening : network_.Openings(said, asked, key_)) {
        openings.add_envelopes(audit::TestEntry(opening, {key_}));
      }
      const auto opened = client.Signed<v1::SubmitOpeningResponse>("SubmitOpening", key_, openings);
      if (!opened.ok()) return opened.status();
      acknowledged_.Add(opened->receipt(), openings.envelopes(openings.envelopes_size() - 1));
    }
    if (++next_step_ == lease_->end_step()) lease_.reset();
    return absl::OkStatus();
  }

  SmallNetwork& network_;
  const int key_;
  Acknowledged& acknowledged_;
  std::optional<v1::AcquireLeaseRequest> asked_;
  std::optional<v1::Lease> lease_;
  uint64_t next_step_ = 0;
};

// A state that others may start from, with its files somewhere else.
absl::Status Announce(TestClient& client, SmallNetwork& network, uint64_t step,
                      Acknowledged& acknowledged) {
  const audit::CheckpointAnnouncement state = network.StateBefore(step);
  v1::AnnounceCheckpointRequest request;
  request.set_envelope(audit::TestEntry(state, {audit::kTrainerKey}));
  std::vector<Digest> files = {state.manifest};
  for (const audit::CheckpointFile& file : state.files) files.push_back(file.sha256);
  for (const Digest& digest : files) {
    v1::Artifact& artifact = *request.add_artifacts();
    artifact.set_sha256(ToString(digest.bytes));
    artifact.set_size(100);
    artifact.add_mirrors("https://mirror.example");
  }
  const auto announced = client.Call<v1::AnnounceCheckpointResponse>(
      client.trainer(), &v1::TrainerService::Stub::AnnounceCheckpoint, request);
  if (!announced.ok()) return announced.status();
  acknowledged.Add(announced->receipt(), request.envelope());
  return absl::OkStatus();
}

// Publishes records from where the coordinator has them.
void Train(TestClient& client, SmallNetwork& network, Acknowledged& acknowledged,
           const std::atomic<bool>& stop) {
  v1::RegisterRunRequest registration;
  registration.set_envelope(network.RunEntry());
  const auto registered = client.Call<v1::RegisterRunResponse>(
      client.trainer(), &v1::TrainerService::Stub::RegisterRun, registration);
  if (!registered.ok()) return;
  acknowledged.Add(registered->receipt(), registration.envelope());
  v1::GetProgressRequest request;
  request.set_run_id(ToString(network.run_id().bytes));
  const auto progress = client.Call<v1::GetProgressResponse>(
      client.trainer(), &v1::TrainerService::Stub::GetProgress, request);
  if (!progress.ok()) return;
  for (uint64_t step = progress->next_step(); !stop && step + 4 < kStepsMax; step += 4) {
    const std::vector<std::string> entries = network.RecordEntries(static_cast<int>(step), 4);
    const auto published = client.Publish(network.run_id(), entries);
    if (!published.ok()) {
      EXPECT_EQ(rpc::ReasonOf(published.status()), "") << published.status();
      return;
    }
    acknowledged.Add(published->last(), entries.back());
    if (step % 16 == 0) {
      const absl::Status announced = Announce(client, network, step + 4, acknowledged);
      if (!announced.ok()) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void AddKeys(TestClient& client, Acknowledged& acknowledged) {
  const auto add = [&](const audit::KeyEvent& event, const std::vector<int>& keys) {
    const auto added = client.SubmitKey(event, keys);
    ASSERT_TRUE(added.ok()) << added.status();
    acknowledged.Add(added->receipt(), audit::TestEntry(event, keys));
  };
  for (int n = 0; n < kWorkers; ++n) {
    add(audit::OperatorEvent{.operator_key = audit::TestPublicKey(audit::OperatorKey(n)),
                             .revocation_key = audit::TestPublicKey(audit::RevocationKey(n)),
                             .name = absl::StrCat("operator ", n),
                             .contact = ""},
        {audit::OperatorKey(n)});
    add(audit::WorkerEvent{.worker_key = audit::TestPublicKey(audit::WorkerKey(n)),
                           .operator_key = audit::TestPublicKey(audit::OperatorKey(n)),
                           .hardware = "a machine"},
        {audit::OperatorKey(n), audit::WorkerKey(n)});
  }
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
  std::vector<Worker> workers;
  for (int n = 0; n < kWorkers; ++n) {
    workers.emplace_back(network, audit::WorkerKey(n), acknowledged);
  }
  bool keys_added = false;
  for (int round = 0; round <= kills; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    Program program(data);
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
    if (!keys_added) AddKeys(*make_client(50), acknowledged);
    keys_added = true;
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    threads.emplace_back([&] { Train(*make_client(51), network, acknowledged, stop); });
    for (int n = 0; n < kWorkers; ++n) {
      threads.emplace_back([&, n] { workers[n].Work(*make_client(n), stop); });
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
    Program program(data);
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
