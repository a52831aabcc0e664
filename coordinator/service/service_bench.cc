// SPDX-License-Identifier: Apache-2.0
//
// The coordinator through real gRPC on loopback, client and server on the same cores: attestations
// made durable a second, and how long a lease takes while a thousand workers heartbeat. What they
// send is signed before the clock starts. The data directory is in /var/tmp, on a disk.

#include <stdlib.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "audit/testing/small_log.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/logging.h"
#include "bench/harness.h"
#include "coordinator/service/server.h"
#include "coordinator/testing/test_client.h"

namespace lockstep::coordinator {
namespace {

using audit::TestKey;
using audit::TestPublicKey;
using audit::WorkerKey;

int64_t NowUnixMs() { return absl::ToUnixMillis(RealClock().Now()); }

// The writer takes together what comes together: setting up is quicker by many.
void InParallel(int count, const std::function<void(int)>& body) {
  constexpr int kThreads = 256;
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < std::min(kThreads, count); ++t) {
    threads.emplace_back([&] {
      for (int n = next++; n < count; n = next++) body(n);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A served run without openings, whose workers may hold what they like.
class Served {
 public:
  // There is a state to begin at before each step that `state_every` divides.
  Served(int operators, int steps, int state_every, int quorum) {
    std::string name = "/var/tmp/lockstep_bench_XXXXXX";
    LOCKSTEP_CHECK(mkdtemp(name.data()) != nullptr);
    directory_ = name;
    CoordinatorOptions options;
    options.directory = directory_;
    options.origin = "bench.example/log";
    options.policy.trust.quota_steps_new = options.policy.trust.quota_steps_max = 1 << 20;
    options.policy.trust.canary_share_new = options.policy.trust.canary_share_min = 0;
    options.policy.leases_per_address_max = 1 << 20;
    coordinator_ = Coordinator::Open(options).value();
    GrpcServerOptions grpc;
    grpc.registry = std::make_shared<prometheus::Registry>();
    servers_ = GrpcServers::Start(*coordinator_, grpc).value();

    registration_ = audit::TestRegistration({.operators = quorum, .backends = 1, .openings = 0});
    registration_.manifest.batch.resize(1);
    registration_.manifest.batch[0].until_tokens = registration_.manifest.recipe.total_tokens =
        1'000'000'000'000;
    run_ = audit::RunIdOf(registration_.manifest);
    coordinator_->RegisterRun(audit::TestEntry(registration_, {audit::kTrainerKey}), {}).value();
    Publish(steps, state_every);
    AddOperators(operators);
  }
  ~Served() {
    servers_.reset();
    coordinator_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::unique_ptr<TestClient> Client(uint64_t requests) const {
    auto client = std::make_unique<TestClient>(servers_->public_port(), servers_->trainer_port(),
                                               coordinator_->origin(), NowUnixMs);
    client->SetRequests(requests << 32);
    return client;
  }
  // Ready to be sent: attestations of the lease's steps.
  std::vector<v1::SubmitAttestationRequest> Attestations(TestClient& client, const v1::Lease& lease,
                                                         int key) const {
    std::vector<v1::SubmitAttestationRequest> requests;
    for (uint64_t step = lease.begin_step(); step < lease.end_step(); ++step) {
      audit::Attestation said = audit::TestAttestation(run_, records_[step], TestPublicKey(key));
      said.lease_id = HexEncode(AsBytes(lease.lease_id()));
      said.nonce = Digest::FromBytes(AsBytes(lease.nonce())).value();
      requests.push_back(client.Attestation(audit::TestEntry(said, {key}), key));
    }
    return requests;
  }

 private:
  void Publish(int steps, int state_every) {
    std::vector<std::string> entries;
    for (int step = 0; step < steps; ++step) {
      records_.push_back(
          audit::TestRecord(registration_, records_.empty() ? nullptr : &records_.back()));
      entries.push_back(audit::TestEntry(
          audit::PublishedRecord{.run_id = run_, .record = records_.back()}, {audit::kTrainerKey}));
      if (entries.size() < 256 && step + 1 < steps) continue;
      coordinator_->PublishRecords(run_, entries).value();
      entries.clear();
    }
    InParallel((steps - 1) / state_every,
               [&](int n) { AnnounceState(static_cast<uint64_t>((n + 1) * state_every)); });
  }
  // With its files somewhere else.
  void AnnounceState(uint64_t step) {
    audit::CheckpointAnnouncement state{.run_id = run_,
                                        .next_step = step,
                                        .chain = records_[step].previous_chain,
                                        .manifest = audit::TestDigest("checkpoint.json", step),
                                        .files = {}};
    std::vector<ArtifactSource> artifacts = {
        {.digest = state.manifest, .bytes = 100, .mirrors = {"https://mirror.example"}}};
    for (const char* const name : audit::kCheckpointFiles) {
      state.files.push_back({.name = name, .bytes = 100, .sha256 = audit::TestDigest(name, step)});
      artifacts.push_back({.digest = state.files.back().sha256,
                           .bytes = 100,
                           .mirrors = {"https://mirror.example"}});
    }
    coordinator_->AnnounceCheckpoint(audit::TestEntry(state, {audit::kTrainerKey}), artifacts)
        .value();
  }
  void AddOperators(int count) {
    // TestKey makes keys at their first use, and not for several threads at once.
    std::vector<std::string> operators;
    std::vector<std::string> workers;
    for (int n = 0; n < count; ++n) {
      const int operator_key = 10'000'000 + n;
      const int revocation_key = 20'000'000 + n;
      operators.push_back(audit::TestEntry(
          audit::KeyEvent(audit::OperatorEvent{.operator_key = TestPublicKey(operator_key),
                                               .revocation_key = TestPublicKey(revocation_key),
                                               .name = "an operator",
                                               .contact = ""}),
          {operator_key}));
      workers.push_back(audit::TestEntry(
          audit::KeyEvent(audit::WorkerEvent{.worker_key = TestPublicKey(WorkerKey(n)),
                                             .operator_key = TestPublicKey(operator_key),
                                             .hardware = "a machine"}),
          {operator_key, WorkerKey(n)}));
    }
    for (const std::vector<std::string>& events : {operators, workers}) {
      InParallel(count, [&](int n) { coordinator_->SubmitKeyEvent(events[n]).value(); });
    }
  }

  std::string directory_;
  audit::RunRegistration registration_;
  Digest run_;
  std::vector<audit::StepRecord> records_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<GrpcServers> servers_;
};

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// One worker's attestations, each sent when the one before is answered.
class Sender {
 public:
  Sender(TestClient& client, const std::vector<v1::SubmitAttestationRequest>& requests)
      : client_(client), requests_(requests) {}

  // False: all are answered. The answer to this one comes on the queue, with this as its tag.
  bool SendNext(grpc::CompletionQueue& queue) {
    if (next_ == requests_.size()) return false;
    context_.emplace();
    context_->set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    reader_ = client_.audit().AsyncSubmitAttestation(&*context_, requests_[next_++], &queue);
    reader_->Finish(&response_, &status_, this);
    return true;
  }
  const grpc::Status& status() const { return status_; }

 private:
  TestClient& client_;
  const std::vector<v1::SubmitAttestationRequest>& requests_;
  size_t next_ = 0;
  std::optional<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::SubmitAttestationResponse>> reader_;
  v1::SubmitAttestationResponse response_;
  grpc::Status status_;
};

// All workers at once from one thread, so that the clients, which are elsewhere in life, take
// little of these cores from the coordinator. How many were answered.
int64_t SendAll(const std::vector<std::unique_ptr<TestClient>>& clients,
                const std::vector<std::vector<v1::SubmitAttestationRequest>>& requests) {
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Sender>> senders;
  size_t sending = 0;
  for (size_t n = 0; n < requests.size(); ++n) {
    senders.push_back(std::make_unique<Sender>(*clients[n % clients.size()], requests[n]));
    sending += senders.back()->SendNext(queue) ? 1 : 0;
  }
  int64_t answered = 0;
  void* tag = nullptr;
  for (bool ok = false; sending > 0 && queue.Next(&tag, &ok);) {
    auto* const sender = static_cast<Sender*>(tag);
    LOCKSTEP_CHECK(ok && sender->status().ok(), "{}", sender->status().error_message());
    ++answered;
    if (!sender->SendNext(queue)) --sending;
  }
  queue.Shutdown();
  return answered;
}

LOCKSTEP_BENCH(coordinator_ingest, "durable attestations a second through the gRPC service", b) {
  constexpr int kWorkers = 512;
  constexpr int kConnections = 64;
  constexpr int kStepsEach = 48;
  constexpr int kQuorum = 3;
  if (!b.Wants("attestations")) return;
  const Served served(kWorkers, kWorkers * kStepsEach / kQuorum, kStepsEach, kQuorum);
  std::vector<std::unique_ptr<TestClient>> clients(kConnections);
  std::vector<v1::Lease> leases(kWorkers);
  InParallel(kConnections, [&](int c) {
    clients[c] = served.Client(static_cast<uint64_t>(c));
    for (int n = c; n < kWorkers; n += kConnections) {
      const v1::AcquireLeaseResponse answer = clients[c]->Acquire(WorkerKey(n), kStepsEach).value();
      LOCKSTEP_CHECK(answer.has_lease(), "{}", answer.no_work_reason());
      leases[n] = answer.lease();
    }
  });
  std::vector<std::vector<v1::SubmitAttestationRequest>> requests(kWorkers);
  for (int n = 0; n < kWorkers; ++n) {
    requests[n] = served.Attestations(*clients[n % kConnections], leases[n], WorkerKey(n));
  }
  const double busy_before = ProcessorSeconds();
  const auto start = std::chrono::steady_clock::now();
  const int64_t taken = SendAll(clients, requests);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  b.Row(absl::StrCat("attestations, ", kWorkers, " workers"),
        static_cast<double>(taken) / took.count(), "1/s", "", 0);
  b.Row("processor time of one, its client's too",
        (ProcessorSeconds() - busy_before) / static_cast<double>(taken) * 1e3, "ms", "", 0);
}

LOCKSTEP_BENCH(coordinator_leases, "p99 of a lease while 1,000 workers heartbeat", b) {
  constexpr int kWorkers = 1'000;
  constexpr int kThreads = 32;
  constexpr auto kFor = std::chrono::seconds(20);
  if (!b.Wants("acquire p99")) return;
  const Served served(kWorkers, 4'096, 8, 3);
  std::vector<std::vector<double>> acquire_ms(kThreads);
  std::atomic<int64_t> heartbeats{0};
  std::vector<std::thread> threads;
  const auto end = std::chrono::steady_clock::now() + kFor;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::unique_ptr<TestClient> client = served.Client(static_cast<uint64_t>(t));
      // Each thread is many workers: now and then one gives its lease back for another, and in
      // between each heartbeats as its lease asks it to.
      std::vector<std::string> leases(kWorkers);
      for (int n = t; std::chrono::steady_clock::now() < end; n += kThreads) {
        const int worker = n % kWorkers;
        if (worker % kThreads != t) continue;
        std::string& lease = leases[worker];
        if (!lease.empty() && n / kWorkers % 8 == 7) {
          v1::ReleaseLeaseRequest release;
          release.set_lease_id(lease);
          client->Signed<v1::ReleaseLeaseResponse>("ReleaseLease", WorkerKey(worker), release)
              .value();
          lease.clear();
        }
        if (lease.empty()) {
          const auto start = std::chrono::steady_clock::now();
          const v1::AcquireLeaseResponse answer = client->Acquire(WorkerKey(worker), 8).value();
          const std::chrono::duration<double, std::milli> took =
              std::chrono::steady_clock::now() - start;
          acquire_ms[t].push_back(took.count());
          lease = answer.lease().lease_id();
        } else {
          v1::HeartbeatRequest heartbeat;
          heartbeat.set_lease_id(lease);
          client->Signed<v1::HeartbeatResponse>("Heartbeat", WorkerKey(worker), heartbeat).value();
          ++heartbeats;
        }
        // All together about 1,000 calls a second: twenty times what the heartbeats come to.
        std::this_thread::sleep_for(std::chrono::milliseconds(kThreads));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (const std::vector<double>& some : acquire_ms)
    all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  LOCKSTEP_CHECK(!all.empty());
  b.Row(absl::StrCat("acquire p50 of ", all.size()), all[all.size() / 2], "ms", "", 0);
  b.Row(absl::StrCat("acquire p99 of ", all.size()), all[all.size() * 99 / 100], "ms", "", 0);
  b.Row("heartbeats meanwhile",
        static_cast<double>(heartbeats.load()) / std::chrono::duration<double>(kFor).count(), "1/s",
        "", 0);
}

}  // namespace
}  // namespace lockstep::coordinator
