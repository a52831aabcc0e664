// SPDX-License-Identifier: Apache-2.0
//
// The program over the log of a whole run, 80,957 steps with three attestations each: how long it
// takes to start, what memory it has then and after a whole export, and how long what is asked of
// it takes: the coverage through gRPC, pages of the API through HTTP. The log is written
// beforehand, by the store and the log writer and without signatures, which a start does not verify
// again.

#include <stdlib.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "audit/evidence/dsse.h"
#include "audit/testing/small_log.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/logging.h"
#include "bench/harness.h"
#include "coordinator/http/testing/raw_client.h"
#include "coordinator/log/log_writer.h"
#include "coordinator/store/sqlite_store.h"
#include "coordinator/testing/program.h"
#include "coordinator/testing/test_client.h"

namespace lockstep::coordinator {
namespace {

using audit::TestPublicKey;
using audit::WorkerKey;

constexpr int kSteps = 80'957;
constexpr int kOperators = 3;
constexpr char kOrigin[] = "bench.example/log";

class WholeRun {
 public:
  explicit WholeRun(const std::string& directory) {
    LOCKSTEP_CHECK(MakeDirectories(directory).ok());
    const Ed25519PrivateKey key = Ed25519PrivateKey::Create(directory + "/log.key").value();
    log_ = LogWriter::Open({.directory = directory + "/log", .origin = kOrigin}, key).value();
    store_ = SqliteStore::Open(directory + "/store.sqlite").value();
    registration_ = audit::TestRegistration({.operators = 3, .backends = 1, .openings = 0});
    registration_.manifest.batch.resize(1);
    registration_.manifest.batch[0].until_tokens = registration_.manifest.recipe.total_tokens =
        1'000'000'000'000;
    run_ = audit::RunIdOf(registration_.manifest);
    AddKeys();
    Add("run", audit::TestEntry(registration_, {audit::kTrainerKey}), &run_, nullptr);
    AddSteps();
    Write();
  }
  const Digest& run() const { return run_; }

 private:
  void AddKeys() {
    for (int n = 0; n < kOperators; ++n) {
      Add("key",
          audit::TestEntry(audit::KeyEvent(audit::OperatorEvent{
                               .operator_key = TestPublicKey(audit::OperatorKey(n)),
                               .revocation_key = TestPublicKey(audit::RevocationKey(n)),
                               .name = "an operator",
                               .contact = ""}),
                           {audit::OperatorKey(n)}),
          nullptr, nullptr);
      Add("key",
          audit::TestEntry(audit::KeyEvent(audit::WorkerEvent{
                               .worker_key = TestPublicKey(WorkerKey(n)),
                               .operator_key = TestPublicKey(audit::OperatorKey(n)),
                               .hardware = "a machine"}),
                           {audit::OperatorKey(n), WorkerKey(n)}),
          nullptr, nullptr);
    }
  }
  void AddSteps() {
    audit::StepRecord record;
    for (uint64_t step = 0; step < kSteps; ++step) {
      record = audit::TestRecord(registration_, step == 0 ? nullptr : &record);
      Add("record",
          Unsigned(audit::kRecordPayloadType,
                   ToString(run_.bytes) + audit::EncodeStepRecord(record), audit::kTrainerKey),
          &run_, &step);
      for (int n = 0; n < kOperators; ++n) {
        const audit::Attestation said =
            audit::TestAttestation(run_, record, TestPublicKey(WorkerKey(n)));
        Add("attestation",
            Unsigned(audit::kAttestationPayloadType, audit::EncodeAttestation(said), WorkerKey(n)),
            &run_, &step);
      }
    }
  }
  static std::string Unsigned(const char* type, std::string payload, int key) {
    return audit::EncodeDsse({.payload_type = type,
                              .payload = std::move(payload),
                              .signatures = {{.key_id = TestPublicKey(key).Id().ToHex(),
                                              .bytes = std::string(kEd25519SignatureBytes, 's')}}});
  }
  void Add(const char* kind, std::string envelope, const Digest* run, const uint64_t* step) {
    EntryRow row;
    row.kind = kind;
    row.leaf_hash = MerkleLeafHash(AsBytes(envelope));
    if (run != nullptr) row.run = *run;
    if (step != nullptr) row.step = *step;
    row.received_unix_ms = absl::ToUnixMillis(RealClock().Now());
    row.envelope = std::move(envelope);
    rows_.push_back(std::move(row));
    if (rows_.size() == 8'192) Write();
  }
  void Write() {
    std::vector<std::string> envelopes;
    {
      const std::unique_ptr<StoreTransaction> transaction = store_->Write().value();
      for (const EntryRow& row : rows_) {
        transaction->AppendEntry(row).value();
        envelopes.push_back(row.envelope);
      }
      LOCKSTEP_CHECK(transaction->Commit().ok());
    }
    LOCKSTEP_CHECK(log_->Append(envelopes).ok());
    rows_.clear();
  }

  std::unique_ptr<LogWriter> log_;
  std::unique_ptr<SqliteStore> store_;
  audit::RunRegistration registration_;
  Digest run_;
  std::vector<EntryRow> rows_;
};

double Megabytes(pid_t pid, const std::string& field) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  std::string name;
  double kilobytes = 0;
  while (status >> name) {
    if (name == field + ":" && status >> kilobytes) return kilobytes * 1024 / 1e6;
  }
  return 0;
}

// How long each of many calls takes.
class Times {
 public:
  template <typename Call>
  Times(int calls, const Call& call) {
    for (int i = 0; i < calls; ++i) {
      const auto asked = std::chrono::steady_clock::now();
      call();
      took_ms_.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - asked)
              .count());
    }
    std::sort(took_ms_.begin(), took_ms_.end());
  }
  double Percentile(size_t percent) const { return took_ms_[took_ms_.size() * percent / 100]; }

 private:
  std::vector<double> took_ms_;
};

// Pages of the API, one after another on one connection.
void MeasurePages(const Program& program, const Digest& run, bench::Bench& b) {
  testing::RawClient client(static_cast<uint16_t>(program.http_port));
  const std::string path = absl::StrCat("/api/v1/runs/", run.ToHex());
  for (const auto& [name, rest] : std::vector<std::pair<std::string, std::string>>{
           {"run", ""},
           {"coverage", "/coverage"},
           {"curves", "/curves"},
           {"100 steps", "/steps?begin=40000"},
           {"1,000 steps", "/steps?begin=40000&limit=1000"},
           {"steps by state, none", "/steps?state=disputed"},
           {"step", "/steps/40000"},
           {"100 attestations, newest first", "/attestations?newest=1"},
           {"attestations by verdict, none", "/attestations?verdict=mismatch"}}) {
    size_t bytes = 0;
    const Times times(200, [&] {
      const testing::RawResponse answer = client.Get(path + rest);
      LOCKSTEP_CHECK(answer.status == 200, "{}: {}", rest, answer.body);
      bytes = answer.body.size();
    });
    const std::string row = absl::StrCat("HTTP, ", name, " (", (bytes + 512) / 1024, " KiB)");
    b.Row(row + " p50", times.Percentile(50), "ms", "", 0);
    b.Row(row + " p99", times.Percentile(99), "ms", "", 0);
  }
}

// All attestations as a file, by a reader that keeps up.
void MeasureExport(const Program& program, const Digest& run, bench::Bench& b) {
  testing::RawClient client(static_cast<uint16_t>(program.http_port));
  size_t bytes = 0;
  const Times times(1, [&] {
    client.Send(absl::StrCat("GET /api/v1/runs/", run.ToHex(),
                             "/attestations.csv HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    while (client.Receive()) {
      bytes += client.buffer().size();
      client.buffer().clear();
    }
  });
  LOCKSTEP_CHECK(bytes > 10'000'000);
  b.Row(absl::StrCat("HTTP, all attestations as CSV (", bytes >> 20, " MiB)"), times.Percentile(50),
        "ms", "", 0);
  b.Row("memory, most after that", Megabytes(program.pid(), "VmHWM"), "MB", "", 0);
}

LOCKSTEP_BENCH(coordinator_whole_run, "start, memory and queries over 80,957 steps", b) {
  std::string directory = "/var/tmp/lockstep_bench_XXXXXX";
  LOCKSTEP_CHECK(mkdtemp(directory.data()) != nullptr);
  const Digest run = WholeRun(directory + "/data").run();
  {
    const auto start = std::chrono::steady_clock::now();
    Program program(directory + "/data", kOrigin);
    LOCKSTEP_CHECK(program.WaitUntilReady(), "the coordinator does not start");
    const std::chrono::duration<double> started = std::chrono::steady_clock::now() - start;
    TestClient client(program.public_port, program.trainer_port, kOrigin,
                      [] { return absl::ToUnixMillis(RealClock().Now()); });
    v1::GetCoverageRequest request;
    request.set_run_id(ToString(run.bytes));
    const Times times(200, [&] {
      const auto answer = client.Call<v1::GetCoverageResponse>(
          client.open(), &v1::PublicService::Stub::GetCoverage, request);
      LOCKSTEP_CHECK(answer.ok() && answer->counts().confirmed() == kSteps);
    });
    b.Row("start", started.count(), "s", "", 0);
    b.Row("memory, resident", Megabytes(program.pid(), "VmRSS"), "MB", "", 0);
    b.Row("memory, most since the start", Megabytes(program.pid(), "VmHWM"), "MB", "", 0);
    b.Row("coverage query p50", times.Percentile(50), "ms", "", 0);
    b.Row("coverage query p99", times.Percentile(99), "ms", "", 0);
    MeasurePages(program, run, b);
    MeasureExport(program, run, b);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace lockstep::coordinator
