// SPDX-License-Identifier: Apache-2.0
//
// Sums over the ledger that the public asks for again and again, kept up to date entry by entry, so
// that nobody has to go over all attestations of a run while the writer waits: who has how many
// matches that count, what the steps' curves are, when things came. Not the law: whatever is in
// here follows from the ledger (and the times from the store), and is made anew at each start.

#ifndef LOCKSTEP_COORDINATOR_CORE_TALLIES_H_
#define LOCKSTEP_COORDINATOR_CORE_TALLIES_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "audit/ledger/ledger.h"
#include "coordinator/core/counts.h"

namespace lockstep::coordinator {

// How often something happened within the last hour, by minutes.
class HourRate {
 public:
  void Add(int64_t unix_ms);
  // Within the sixty minutes up to now, the present one among them. A clock that was set back only
  // makes it forget.
  uint64_t Sum(int64_t now_unix_ms) const;

 private:
  static constexpr int64_t kMinutes = 60;
  std::array<uint32_t, kMinutes> counts_{};
  int64_t newest_ = 0;  // minute since 1970
};

// Attestations by what they are worth.
struct Credit {
  std::array<uint64_t, kWorths> by_worth{};

  uint64_t Of(Worth worth) const { return by_worth[static_cast<size_t>(worth)]; }
  Credit& operator+=(const Credit& other);
};

// What a step's record says that charts show.
struct StepPoint {
  float loss = 0;
  float z_loss = 0;
  float gradient_norm = 0;
  float learning_rate = 0;
  audit::StepOutcome outcome = audit::StepOutcome::kUpdated;
};

inline constexpr int64_t kTimeUnknown = -1;

struct RunTallies {
  std::vector<StepPoint> points;    // [steps]
  std::vector<int64_t> records_ms;  // [steps] when it came, or kTimeUnknown
  std::vector<Worth> worths;        // [attestations] by id
  std::vector<int64_t> attestations_ms;
  absl::flat_hash_map<uint32_t, uint64_t> matches_by_operator;  // that count; none is 0
  std::vector<uint64_t> matches_by_backend;                     // that count, by backend id
  Credit all;
  uint64_t disputes = 0;
  int64_t registered_ms = kTimeUnknown;
  HourRate records;
  HourRate confirmed;
  uint32_t trainer_operator = audit::kNoId;
};

struct KeyTallies {
  Credit credit;                            // over all runs
  std::map<std::string, uint64_t> refused;  // reports that are kept as evidence, by reason
  std::vector<uint64_t> by_backend;         // attestations, by backend id
  int64_t registered_ms = kTimeUnknown;
  int64_t last_seen_ms = kTimeUnknown;
};

// Not for several threads at once where one of them changes it.
class Tallies {
 public:
  // After the ledger took an entry. `received_ms`: when it came, or kTimeUnknown.
  void Apply(const audit::Ledger& ledger, const audit::Outcome& outcome, int64_t received_ms);
  // A report of a key was refused, and is kept as evidence.
  void AddRefused(uint32_t key_id, absl::string_view reason, uint64_t count);
  void AddSeen(uint32_t key_id, int64_t unix_ms);

  // By the place of the run in Ledger::runs; by key id.
  const RunTallies& run(size_t i) const { return runs_[i]; }
  const KeyTallies& key(uint32_t key_id) const { return keys_[key_id]; }
  // The place of a run.
  size_t PlaceOf(const Digest& run_id) const { return places_.at(run_id); }

 private:
  void AddKeys(const audit::Ledger& ledger, int64_t received_ms);
  void AddRecord(const audit::RunLedger& run, RunTallies& tallies, int64_t received_ms);
  void AddAttestation(const audit::Ledger& ledger, const audit::Outcome& outcome,
                      int64_t received_ms);
  void Reweigh(const audit::Ledger& ledger, uint32_t run, uint32_t attestation);
  void ReweighAll(const audit::Ledger& ledger);
  // Adds it to, or takes it from, everything that is counted by worth.
  void Count(const audit::Ledger& ledger, const audit::AttestationFacts& facts, Worth worth,
             RunTallies& tallies, bool add);

  std::vector<RunTallies> runs_;
  std::vector<KeyTallies> keys_;
  absl::flat_hash_map<Digest, size_t> places_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_CORE_TALLIES_H_
