// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: the ledger under sequences of well-signed entries in any order. Each byte is an
// action of somebody: registering, publishing, attesting, opening, revoking, rotating, disputing,
// with right and wrong values. After all of them, what states say follows from what was accepted.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "audit/ledger/ledger.h"
#include "audit/testing/small_log.h"
#include "base/logging.h"

namespace lockstep::audit {
namespace {

// Signing is slow: each entry is made once.
class Player {
 public:
  void Act(uint8_t action, uint8_t who) {
    const int n = who % 3;
    const int worker = WorkerKey(n, who / 3 % 2);
    const uint64_t step = who / 8 % 4;
    const bool good = (action & 0x10) == 0;
    switch (action % 9) {
      case 0:
        return Take({0, n}, [&] {
          return TestEntry(OperatorEvent{.operator_key = TestPublicKey(OperatorKey(n)),
                                         .revocation_key = TestPublicKey(RevocationKey(n)),
                                         .name = "x",
                                         .contact = ""},
                           {good ? OperatorKey(n) : worker});
        });
      case 1:
        return Take({1, worker, good}, [&] {
          return TestEntry(WorkerEvent{.worker_key = TestPublicKey(good ? worker : kTrainerKey),
                                       .operator_key = TestPublicKey(OperatorKey(n)),
                                       .hardware = "x"},
                           {good ? worker : kTrainerKey, OperatorKey(n)});
        });
      case 2:
        return Take({2}, [&] { return TestEntry(registration_, {kTrainerKey}); });
      case 3:
        return Take({3, static_cast<int>(step), good}, [&] {
          return TestEntry(PublishedRecord{.run_id = run_id_, .record = Record(step, good)},
                           {kTrainerKey});
        });
      case 4:
      case 5:
        return Attest(step, worker, action % 9 == 4);
      case 6:
        return Open(step, worker, good);
      case 7:
        return Take({7, who % 32, good}, [&] {
          const int key = who % 2 == 0 ? worker : OperatorKey(n);
          return good ? TestEntry(RevokeEvent{.key = TestPublicKey(key), .reason = "x"},
                                  {who % 4 < 2 ? RevocationKey(n) : key})
                      : TestEntry(RotateEvent{.old_key = TestPublicKey(key),
                                              .new_key = TestPublicKey(5000 + key)},
                                  {key, 5000 + key});
        });
      default:
        return DisputeStep(step, worker, good);
    }
  }

  void CheckInvariants() const {
    const RunLedger* run = ledger_.FindRun(run_id_);
    if (run == nullptr) return;
    const Quorum& quorum = run->registration().quorum;
    const std::vector<StepTally> tallies =
        ledger_.TalliesUnder(*run, {.quorum = quorum, .trusted_operators = std::nullopt});
    LOCKSTEP_CHECK(tallies.size() == run->states().size());
    size_t listed = 0;
    for (size_t i = 0; i < tallies.size(); ++i) {
      LOCKSTEP_CHECK(StateOf(tallies[i], quorum) == run->states()[i]);
      listed += run->AttestationsOf(i).size();
    }
    LOCKSTEP_CHECK(listed == run->attestations().size());
  }

 private:
  StepRecord Record(uint64_t step, bool good) const {
    StepRecord record = TestRecord(registration_, nullptr);
    for (uint64_t i = 0; i < step; ++i) record = TestRecord(registration_, &record);
    if (!good) record.gradient = TestDigest("another", step);
    return record;
  }
  Attestation Said(uint64_t step, int worker, bool match) const {
    const StepRecord published = Record(step, true);
    StepRecord found = published;
    found.gradient = TestDigest("found", step);
    return TestAttestation(run_id_, published, TestPublicKey(worker), match ? nullptr : &found);
  }
  const std::string& AttestationEntry(uint64_t step, int worker, bool match) {
    return Make({4, static_cast<int>(step), worker, match},
                [&] { return TestEntry(Said(step, worker, match), {worker}); });
  }
  const std::string& OpeningEntry(uint64_t step, int worker, bool good) {
    return Make({6, static_cast<int>(step), worker, good}, [&] {
      Opening opening =
          TestOpening(Said(step, worker, true), AttestationEntry(step, worker, true), worker);
      if (!good) opening.proof[0].bytes[0] ^= 1;
      return TestEntry(opening, {worker});
    });
  }
  void Attest(uint64_t step, int worker, bool match) {
    Apply(AttestationEntry(step, worker, match));
  }
  void Open(uint64_t step, int worker, bool good) { Apply(OpeningEntry(step, worker, good)); }
  void DisputeStep(uint64_t step, int worker, bool good) {
    Take({8, static_cast<int>(step), worker, good}, [&] {
      Dispute dispute = {.run_id = run_id_, .step = step, .evidence = {}};
      dispute.reason = good ? DisputeReason::kMismatch : DisputeReason::kBadOpening;
      if (good) {
        dispute.evidence = {MerkleLeafHash(AsBytes(AttestationEntry(step, worker, false)))};
      } else {
        dispute.evidence = {OpeningEntry(step, worker, false)};
      }
      return TestEntry(dispute, {kLogKey});
    });
  }

  template <typename F>
  const std::string& Make(const std::vector<int>& key, F make) {
    static auto* const cache = new std::map<std::vector<int>, std::string>();
    const auto found = cache->find(key);
    if (found != cache->end()) return found->second;
    std::string entry = make();
    return cache->emplace(key, std::move(entry)).first->second;
  }
  template <typename F>
  void Take(const std::vector<int>& key, F make) {
    Apply(Make(key, make));
  }
  void Apply(const std::string& entry) {
    const auto parsed = LogEntry::Parse(entry);
    LOCKSTEP_CHECK(parsed.ok());
    const bool ok = ledger_.Check(*parsed, Signatures::kTrust).ok();
    const auto outcome = ledger_.Apply(index_++, *parsed, Signatures::kTrust);
    LOCKSTEP_CHECK(outcome.ok() == ok);
  }

  RunRegistration registration_ = TestRegistration({.operators = 2, .backends = 1, .openings = 1});
  Digest run_id_ = RunIdOf(registration_.manifest);
  Ledger ledger_{TestPublicKey(kLogKey)};
  uint64_t index_ = 0;
};

}  // namespace
}  // namespace lockstep::audit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::audit::Player player;
  for (size_t i = 0; i + 1 < std::min<size_t>(size, 200); i += 2) player.Act(data[i], data[i + 1]);
  player.CheckInvariants();
  return 0;
}
