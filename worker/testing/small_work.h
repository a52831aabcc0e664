// SPDX-License-Identifier: Apache-2.0
//
// A real run, small: the golden run's first steps with their records and a state, the corpus and
// the state's files on a web server by digest, and a coordinator that knows the run and a worker.
// For tests only.
#ifndef LOCKSTEP_WORKER_TESTING_SMALL_WORK_H_
#define LOCKSTEP_WORKER_TESTING_SMALL_WORK_H_

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "audit/checkpoint_manifest.h"
#include "audit/evidence/dsse.h"
#include "audit/evidence/log_entry.h"
#include "audit/testing/small_log.h"
#include "base/testing/temporary_folder.h"
#include "engine/backend/cpu_backend.h"
#include "engine/data/manifest.h"
#include "engine/state/checkpoint.h"
#include "engine/testing/golden_run.h"
#include "lockstep/v1/audit.pb.h"
#include "net/testing/http_server.h"
#include "worker/testing/fake_coordinator.h"

namespace lockstep::worker {

// What of the run never changes from test to test: computed once in a process.
class SmallRun {
 public:
  static constexpr int kSteps = 4;
  static constexpr uint64_t kStateStep = 2;  // before which there is a state to start from

  static const SmallRun& Get() {
    static const auto* const run = new SmallRun();
    return *run;
  }

  audit::RunRegistration registration;
  std::vector<audit::StepRecord> records;
  std::map<std::string, std::string> artifacts;    // by path: "/artifact/<sha256>"
  std::map<std::string, std::string> state_files;  // by name: of the state before kStateStep
  Digest run_id() const { return audit::RunIdOf(registration.manifest); }

 private:
  SmallRun() {
    // Loopback is not to be reached by a proxy.
    setenv("no_proxy", "127.0.0.1", 1);
    const TemporaryFolder folder;
    const auto backend = engine::CreateCpuBackend(2).value();
    golden::GoldenRun run(*backend);
    registration.manifest = run.manifest();
    registration.trainer_key = audit::TestPublicKey(audit::kTrainerKey);
    registration.quorum = {.operators = 1, .backends = 1, .openings = 2};
    // The roots before step 0, as a checkpoint has them.
    LOCKSTEP_CHECK(engine::SaveCheckpoint(*backend, run.manifest(), run.state(), nullptr,
                                          folder / "initial", [](int64_t) {})
                       .ok());
    const auto initial = engine::ReadCheckpointManifest(folder / "initial").value();
    registration.genesis = {.parameters = initial.roots().parameters,
                            .first_moment = initial.roots().first_moment,
                            .second_moment = initial.roots().second_moment,
                            .cursor = Sha256(AsBytes(initial.cursor))};
    LOCKSTEP_CHECK(registration.first_chain() == run.state().chain);
    for (int i = 0; i < kSteps; ++i) {
      records.push_back(run.Step().record);
      if (run.state().step == kStateStep) {
        LOCKSTEP_CHECK(run.Save(records.back(), folder / "state").ok());
      }
    }
    state_files = ReadAll(folder / "state");
    for (const auto& [name, bytes] : state_files) Serve(bytes);
    const engine::testing::MemoryCorpus corpus = golden::GoldenCorpus();
    Serve(engine::SerializeManifest(*corpus.manifest));
    for (const auto& [id, bytes] : corpus.files->files) Serve(bytes);
  }
  void Serve(const std::string& bytes) {
    artifacts["/artifact/" + Sha256(AsBytes(bytes)).ToHex()] = bytes;
  }
};

class SmallWork {
 public:
  explicit SmallWork(net::testing::HttpServer::Fault fault = nullptr)
      : run_(SmallRun::Get()), http_(run_.artifacts, std::move(fault)) {
    small_.AddOperator(0);
    for (const std::string& entry : small_.entries()) coordinator_.Append(entry);
    coordinator_.Append(RunEntry());
    for (const audit::StepRecord& record : run_.records) coordinator_.Append(RecordEntry(record));
    coordinator_.SetArtifactUrl(http_.address());
  }

  const SmallRun& run() const { return run_; }
  FakeCoordinator& coordinator() { return coordinator_; }
  net::testing::HttpServer& http() { return http_; }
  const Ed25519PrivateKey& key() const { return audit::TestKey(audit::WorkerKey(0)); }

  std::string RunEntry() const { return audit::TestEntry(run_.registration, {audit::kTrainerKey}); }
  std::string RecordEntry(const audit::StepRecord& record) const {
    return audit::TestEntry(audit::PublishedRecord{.run_id = run_.run_id(), .record = record},
                            {audit::kTrainerKey});
  }

  // Of steps [begin, end), from the start of the run or from the state before kStateStep.
  v1::Lease Lease(uint64_t begin, uint64_t end, bool from_state = false) const {
    v1::Lease lease;
    lease.set_lease_id(absl::StrCat("lease-", begin, "-", end, "-xxxxxx"));
    lease.set_nonce(AsChars(audit::TestDigest("nonce", begin).bytes).data(), 32);
    lease.set_run_id(AsChars(run_.run_id().bytes).data(), 32);
    lease.set_begin_step(begin);
    lease.set_end_step(end);
    lease.set_heartbeat_ms(200);
    lease.set_lifetime_ms(600'000);
    lease.set_run_envelope(RunEntry());
    const uint64_t start = from_state ? SmallRun::kStateStep : 0;
    lease.mutable_start()->set_step(start);
    if (from_state) {
      for (const auto& [name, bytes] : run_.state_files) {
        v1::Artifact* const file = lease.mutable_start()->add_files();
        file->set_name(name);
        file->set_size(bytes.size());
        file->set_sha256(AsChars(Sha256(AsBytes(bytes)).bytes).data(), 32);
      }
    }
    for (uint64_t step = start; step < end; ++step) {
      lease.add_records(RecordEntry(run_.records[step]));
    }
    return lease;
  }

  // The lease's last record false in one place. signer: whose valid signature it has; none: as a
  // canary has it, the trainer's, which does not hold.
  v1::Lease WithFalseRecord(v1::Lease lease, std::optional<int> signer = std::nullopt) const {
    audit::StepRecord record = run_.records[lease.end_step() - 1];
    record.parameters = audit::TestDigest("false", 1);
    std::string entry =
        audit::TestEntry(audit::PublishedRecord{.run_id = run_.run_id(), .record = record},
                         {signer.value_or(audit::kTrainerKey)});
    if (!signer) {
      audit::DsseEnvelope envelope = audit::ParseDsse(entry).value();
      envelope.signatures[0].bytes[0] ^= 1;
      entry = audit::EncodeDsse(envelope);
    }
    *lease.mutable_records(lease.records_size() - 1) = std::move(entry);
    return lease;
  }

 private:
  const SmallRun& run_;
  net::testing::HttpServer http_;
  audit::SmallLog small_;
  FakeCoordinator coordinator_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_TESTING_SMALL_WORK_H_
