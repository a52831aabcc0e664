// SPDX-License-Identifier: Apache-2.0
//
// Writes a coordinator's data directory with the log of a run as long as the paper's, 80,957 steps:
// curves with spikes, stretches that are confirmed, provisional and unaudited, and four disputed
// steps. Every signature holds; the states that records and attestations speak of never were. For
// tests of what is shown of such a run (web/tests).
//
//   lockstep_whole_run FOLDER [STEPS]
//
// FOLDER is not there yet. Prints a line of JSON: the log's name, the run and how many of its steps
// are in each state.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "audit/testing/small_log.h"
#include "base/directory.h"
#include "base/logging.h"
#include "coordinator/log/log_writer.h"
#include "coordinator/store/sqlite_store.h"
#include "nlohmann/json.hpp"

namespace lockstep::coordinator {
namespace {

using audit::OperatorKey;
using audit::StepRecord;
using audit::TestPublicKey;
using audit::WorkerKey;

constexpr uint64_t kSteps = 80'957;
constexpr char kOrigin[] = "test.example/log";
constexpr size_t kBatch = 8'192;
constexpr int kSkippedSteps = 5;  // after a spike
constexpr std::array<const char*, 3> kOperators = {"Ada's lab", "<b>not bold</b>", "Bob"};
constexpr std::array<const char*, 3> kBackends = {"x86-avx2", "arm-neon", "cuda-sm90"};

enum class Audited { kNot, kOnce, kTwice, kDisputed };

// A number that looks random, the same every time: SplitMix64.
uint64_t Scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class WholeRun {
 public:
  WholeRun(const std::string& directory, uint64_t steps) : steps_(steps) {
    LOCKSTEP_CHECK(MakeDirectories(directory).ok());
    const Ed25519PrivateKey key = Ed25519PrivateKey::Create(directory + "/log.key").value();
    log_ = LogWriter::Open({.directory = directory + "/log", .origin = kOrigin}, key).value();
    store_ = SqliteStore::Open(directory + "/store.sqlite").value();
    registration_ = audit::TestRegistration({.operators = 2, .backends = 2, .openings = 0});
    audit::RunManifest& manifest = registration_.manifest;
    manifest.name = "whole-run";
    manifest.batch.resize(1);
    manifest.batch[0].until_tokens = manifest.recipe.total_tokens =
        static_cast<int64_t>(steps) * manifest.batch[0].windows_per_step * manifest.model.seq_len;
    run_ = audit::RunIdOf(manifest);
    now_ms_ = absl::ToUnixMillis(absl::Now());
    AddKeys();
    Add("run", audit::TestEntry(registration_, {audit::kTrainerKey}), std::nullopt);
    AddSteps();
    Write();
  }

  nlohmann::json Facts() const {
    return {{"origin", kOrigin},       {"run", run_.ToHex()},       {"steps", steps_},
            {"unaudited", counts_[0]}, {"provisional", counts_[1]}, {"confirmed", counts_[2]},
            {"disputed", counts_[3]}};
  }

 private:
  void AddKeys() {
    for (int n = 0; n < static_cast<int>(kOperators.size()); ++n) {
      Add("key",
          audit::TestEntry(audit::KeyEvent(audit::OperatorEvent{
                               .operator_key = TestPublicKey(OperatorKey(n)),
                               .revocation_key = TestPublicKey(audit::RevocationKey(n)),
                               .name = kOperators[n],
                               .contact = ""}),
                           {OperatorKey(n)}),
          std::nullopt, false);
      Add("key",
          audit::TestEntry(
              audit::KeyEvent(audit::WorkerEvent{.worker_key = TestPublicKey(WorkerKey(n)),
                                                 .operator_key = TestPublicKey(OperatorKey(n)),
                                                 .hardware = "a machine"}),
              {OperatorKey(n), WorkerKey(n)}),
          std::nullopt, false);
    }
  }

  void AddSteps() {
    std::optional<StepRecord> previous;
    for (uint64_t step = 0; step < steps_; ++step) {
      StepRecord record = audit::TestRecord(registration_, previous ? &*previous : nullptr);
      Measure(record);
      Add("record", audit::TestEntry(audit::PublishedRecord{run_, record}, {audit::kTrainerKey}),
          step);
      const Audited audited = HowAudited(step);
      ++counts_[static_cast<size_t>(audited)];
      if (audited == Audited::kTwice || audited == Audited::kOnce) Attest(record, 0, nullptr);
      if (audited == Audited::kTwice) Attest(record, 1, nullptr);
      if (audited == Audited::kDisputed) {
        StepRecord other = record;
        other.parameters = audit::TestDigest("other parameters", step);
        Attest(record, 2, &other);
      }
      previous = std::move(record);
    }
  }

  // Early stretches are mostly confirmed, late ones less and less.
  Audited HowAudited(uint64_t step) const {
    if (step % (steps_ / 4) == 1'234 % (steps_ / 4)) return Audited::kDisputed;
    const uint64_t draw = Scramble(step / 400) % 100;
    const uint64_t sure = 97 - 60 * step / steps_;
    if (draw < sure) return Audited::kTwice;
    return draw < sure + (100 - sure) / 2 ? Audited::kOnce : Audited::kNot;
  }

  // Losses fall, norms settle; six spikes, each of one step, and the steps skipped for it.
  void Measure(StepRecord& record) const {
    const double at = static_cast<double>(record.step);
    const double noise = static_cast<double>(Scramble(record.step) % 1000) / 1000 - 0.5;
    const uint64_t since_spike = (record.step + steps_ / 14) % (steps_ / 6);
    const bool spike = since_spike == 0;
    record.loss = static_cast<float>(2.5 + 8 * std::exp(-at / 900) + 0.9 * std::exp(-at / 16'000) +
                                     0.05 * noise + (spike ? 3 : 0));
    record.z_loss = static_cast<float>(11 + 3 * std::exp(-at / 3'000));
    record.gradient_norm =
        static_cast<float>(0.4 + 2 * std::exp(-at / 500) + 0.2 * noise + (spike ? 14 : 0));
    record.learning_rate = static_cast<float>(
        2.5e-4 + 2e-4 * std::cos(std::numbers::pi * at / static_cast<double>(steps_)));
    if (spike) {
      record.outcome = audit::StepOutcome::kSkippedSpike;
    } else if (since_spike <= kSkippedSteps) {
      record.outcome = audit::StepOutcome::kSkippedAfterSpike;
    }
  }

  void Attest(const StepRecord& record, int who, const StepRecord* found) {
    const audit::Attestation said = audit::TestAttestation(
        run_, record, TestPublicKey(WorkerKey(who)), found, kBackends[static_cast<size_t>(who)]);
    const std::string entry = audit::TestEntry(said, {WorkerKey(who)});
    Add("attestation", entry, record.step);
  }

  void Add(const char* kind, std::string envelope, std::optional<uint64_t> step,
           bool of_run = true) {
    EntryRow row;
    row.kind = kind;
    row.leaf_hash = MerkleLeafHash(AsBytes(envelope));
    if (of_run) row.run = run_;
    row.step = step;
    // Half a second between steps, up to now.
    row.received_unix_ms = now_ms_ - static_cast<int64_t>(500 * (steps_ - step.value_or(0)));
    row.envelope = std::move(envelope);
    rows_.push_back(std::move(row));
    if (rows_.size() == kBatch) Write();
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

  const uint64_t steps_;
  std::unique_ptr<LogWriter> log_;
  std::unique_ptr<SqliteStore> store_;
  audit::RunRegistration registration_;
  Digest run_;
  int64_t now_ms_ = 0;
  std::array<uint64_t, 4> counts_ = {};  // by Audited
  std::vector<EntryRow> rows_;
};

int Main(int argc, char** argv) {
  uint64_t steps = kSteps;
  if (argc < 2 || argc > 3 || (argc == 3 && (!absl::SimpleAtoi(argv[2], &steps) || steps < 100))) {
    std::fprintf(stderr, "usage: lockstep_whole_run FOLDER [STEPS, at least 100]\n");
    return 2;
  }
  const WholeRun run(argv[1], steps);
  std::printf("%s\n", run.Facts().dump().c_str());
  return 0;
}

}  // namespace
}  // namespace lockstep::coordinator

int main(int argc, char** argv) { return lockstep::coordinator::Main(argc, argv); }
