// SPDX-License-Identifier: Apache-2.0
//
// One pass over the entries: tree, ledger and what was known before, side by side.
#include "audit/ledger/verify_log.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "audit/log/log_proof.h"
#include "audit/verdict.h"
#include "base/merkle.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

// Entries that are parsed and have their signatures checked at once.
constexpr size_t kBatch = 512;

// A claim about the log at some size or index, from before.
struct Expected {
  uint64_t at = 0;  // a size, for a root; an index, for a leaf
  bool is_root = true;
  Digest hash;
  Finding::Kind kind = Finding::Kind::kKnownCheckpoint;
  std::string name;
  std::string what{};  // the entry of a leaf, in words
};

std::string OfStep(absl::string_view kind, const Digest& run_id, uint64_t step) {
  return absl::StrCat(kind, " of step ", step, " of run ", run_id.ToHex());
}

// An entry for people. Nothing in it is a stranger's text.
std::string WhatItIs(const std::string& bytes) {
  const absl::StatusOr<LogEntry> entry = LogEntry::Parse(bytes);
  if (!entry.ok()) return "no entry of this network";
  if (const auto* record = std::get_if<PublishedRecord>(&entry->payload())) {
    return OfStep("the trainer's record", record->run_id, record->record.step);
  }
  if (const auto* attestation = std::get_if<Attestation>(&entry->payload())) {
    return OfStep(absl::StrCat("an attestation, ", VerdictName(attestation->verdict), ","),
                  attestation->run_id, attestation->step);
  }
  if (const auto* state = std::get_if<CheckpointAnnouncement>(&entry->payload())) {
    return absl::StrCat("a state before step ", state->next_step, " of run ",
                        state->run_id.ToHex());
  }
  if (const auto* dispute = std::get_if<Dispute>(&entry->payload())) {
    return OfStep("a dispute", dispute->run_id, dispute->step);
  }
  return absl::StrCat("an entry of kind ", EntryKindName(entry->kind()));
}

class LogVerifier {
 public:
  LogVerifier(LogSource& source, const VerifyOptions& options, ThreadPool& pool)
      : source_(source), options_(options), pool_(pool) {}

  absl::StatusOr<LogReport> Run() {
    LOCKSTEP_RETURN_IF_ERROR(ReadHead());
    CollectExpected();
    report_.ledger = std::make_unique<Ledger>(report_.log_key.key);
    CheckRoots();
    bool more = true;
    while (more) {
      LOCKSTEP_ASSIGN_OR_RETURN(more, TakeBatch());
    }
    Finish();
    return std::move(report_);
  }

 private:
  void Find(Finding::Kind kind, std::string message) {
    report_.findings.push_back({.kind = kind, .message = std::move(message)});
  }

  absl::Status ReadHead() {
    report_.log_key_given = options_.log_key.has_value();
    if (options_.log_key) {
      report_.log_key = *options_.log_key;
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(report_.log_key, NoteKey::FromText(source_.named_key()),
                                "the log's key is not given, and the source names none");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const SignedNote note, ParseSignedNote(source_.checkpoint()));
    LOCKSTEP_ASSIGN_OR_RETURN(report_.checkpoint, ParseLogCheckpoint(note.text));
    const absl::Status opened = OpenLogCheckpoint(source_.checkpoint(), report_.log_key).status();
    if (!opened.ok()) Find(Finding::Kind::kSignature, std::string(opened.message()));
    return absl::OkStatus();
  }

  void Expect(Expected expected) {
    const uint64_t size = report_.checkpoint.size;
    if (expected.is_root ? expected.at > size : expected.at >= size) {
      Find(Finding::Kind::kNewer,
           absl::StrCat(expected.name, " is of a later log than this one, of ", size, " entries",
                        expected.is_root ? ""
                                         : absl::StrCat(": it promises ", expected.what,
                                                        " as entry ", expected.at)));
    } else {
      expected_.push_back(std::move(expected));
    }
  }

  // Whether the log is to be held to this note; counts it.
  bool IsPromise(const std::string& note, bool may_be_of_another_log) {
    if (may_be_of_another_log) {
      const absl::StatusOr<SignedNote> parsed = ParseSignedNote(note);
      const auto head = parsed.ok() ? ParseLogCheckpoint(parsed->text) : parsed.status();
      if (head.ok() && head->origin != report_.log_key.name) {
        ++report_.promises_of_other_logs;
        return false;
      }
    }
    ++report_.promises;
    return true;
  }

  void CollectExpected() {
    for (const KnownHead& known : options_.known_checkpoints) {
      if (!IsPromise(known.note, known.may_be_of_another_log)) continue;
      const auto head = OpenLogCheckpoint(known.note, report_.log_key);
      if (!head.ok()) {
        Find(Finding::Kind::kKnownCheckpoint,
             absl::StrCat(known.name, " is not of this log: ", head.status().message()));
        continue;
      }
      Expect({.at = head->size, .hash = head->root, .name = known.name});
    }
    for (const auto& [name, receipt, may_be_of_another_log] : options_.receipts) {
      if (!IsPromise(receipt.proof.checkpoint, may_be_of_another_log)) continue;
      const Digest leaf_hash = MerkleLeafHash(AsBytes(receipt.entry));
      const auto head = VerifyLogProof(receipt.proof, leaf_hash, report_.log_key);
      if (!head.ok()) {
        Find(Finding::Kind::kReceipt,
             absl::StrCat(name, " is not this log's: ", head.status().message()));
        continue;
      }
      Expect({.at = receipt.proof.index,
              .is_root = false,
              .hash = leaf_hash,
              .kind = Finding::Kind::kReceipt,
              .name = name,
              .what = WhatItIs(receipt.entry)});
      if (head->size <= report_.checkpoint.size) {
        Expect({.at = head->size,
                .hash = head->root,
                .kind = Finding::Kind::kReceipt,
                .name = absl::StrCat("the head in ", name)});
      }
    }
    // By the moment at which they can be looked at: a leaf is there one entry after its index.
    std::stable_sort(expected_.begin(), expected_.end(), [](const Expected& a, const Expected& b) {
      return a.at + (a.is_root ? 0 : 1) < b.at + (b.is_root ? 0 : 1);
    });
  }

  // Everything that was known of the log at its present size.
  void CheckRoots() {
    for (; next_expected_ < expected_.size(); ++next_expected_) {
      const Expected& expected = expected_[next_expected_];
      if (expected.at + (expected.is_root ? 0 : 1) > tree_.size()) return;
      const Digest found = expected.is_root ? tree_.Root() : last_leaf_;
      if (found == expected.hash) continue;
      const std::string was =
          expected.is_root
              ? absl::StrCat("the root over the first ", expected.at, " entries was ")
              : absl::StrCat("entry ", expected.at, " was ", expected.what, ", leaf hash ");
      Find(expected.kind, absl::StrCat(expected.name, ": ", was, expected.hash.ToHex(), "; found ",
                                       found.ToHex(), ": the log has been rewritten"));
    }
  }

  // The next entries; false if there are none left.
  absl::StatusOr<bool> TakeBatch() {
    std::vector<std::string> batch;
    bool more = true;
    while (more && batch.size() < kBatch) {
      LOCKSTEP_ASSIGN_OR_RETURN(std::optional<std::string> entry, source_.Next());
      more = entry.has_value();
      if (more) batch.push_back(*std::move(entry));
    }
    std::vector<absl::StatusOr<LogEntry>> parsed(batch.size());
    pool_.ParallelFor(static_cast<int64_t>(batch.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) parsed[i] = Prepare(batch[i]);
    });
    for (size_t i = 0; i < batch.size(); ++i) TakeEntry(batch[i], parsed[i]);
    return more;
  }

  // What needs no order. Keys that this very batch brings are left to the ledger.
  absl::StatusOr<LogEntry> Prepare(const std::string& bytes) const {
    const Ledger& ledger = *report_.ledger;
    absl::StatusOr<LogEntry> entry = LogEntry::Parse(bytes);
    if (!entry.ok()) return entry;
    for (const Digest& id : entry->signer_ids()) {
      const uint32_t key = ledger.keys().FindById(id);
      if (key != kNoId) entry->MarkSignedBy(ledger.keys().keys()[key].key);
    }
    entry->MarkChallengedBy(ledger.log_key());
    return entry;
  }

  void TakeEntry(const std::string& bytes, const absl::StatusOr<LogEntry>& entry) {
    const uint64_t index = tree_.size();
    last_leaf_ = entry.ok() ? entry->leaf_hash() : MerkleLeafHash(AsBytes(bytes));
    tree_.Append(last_leaf_);
    CheckRoots();
    const absl::StatusOr<Outcome> outcome =
        entry.ok() ? report_.ledger->Apply(index, *entry, Signatures::kVerify)
                   : absl::StatusOr<Outcome>(Refuse(Refusal::kMalformed, entry.status().message()));
    if (outcome.ok()) {
      ++report_.entries[static_cast<size_t>(outcome->kind)];
      return;
    }
    ++report_.refused;
    if (report_.refused > kRefusedListed) return;
    Find(Finding::Kind::kRefusedEntry,
         absl::StrCat("entry ", index, " counts for nothing: ",
                      RefusalName(RefusalOf(outcome.status()).value_or(Refusal::kMalformed)), ": ",
                      outcome.status().message()));
  }

  void Finish() {
    if (tree_.Root() != report_.checkpoint.root) {
      Find(Finding::Kind::kRoot,
           absl::StrCat("the root over all ", tree_.size(), " entries: the log signed for ",
                        report_.checkpoint.root.ToHex(), "; found ", tree_.Root().ToHex()));
    }
    std::stable_partition(
        report_.findings.begin(), report_.findings.end(),
        [](const Finding& finding) { return finding.kind != Finding::Kind::kRefusedEntry; });
    const KeyRegistry& keys = report_.ledger->keys();
    report_.operators = keys.operators().size();
    for (uint32_t id = 0; id < keys.keys().size(); ++id) {
      if (keys.keys()[id].role == KeyRole::kWorker) ++report_.worker_keys;
      if (!keys.IsGood(id)) ++report_.ended_keys;
    }
    for (const RunLedger& run : report_.ledger->runs()) report_.runs.push_back(ReportOf(run));
  }

  RunReport ReportOf(const RunLedger& run) const {
    const VerifierPolicy policy = options_.policy
                                      ? options_.policy(run.registration())
                                      : VerifierPolicy{.quorum = run.registration().quorum,
                                                       .trusted_operators = std::nullopt};
    RunReport report;
    report.run_id = run.run_id();
    report.name = run.registration().manifest.name;
    report.trainer_key = report_.ledger->keys().keys()[run.trainer_key_id()].key;
    report.first_step = run.first_step();
    report.steps = run.records().size();
    report.chain = run.chain();
    report.quorum = policy.quorum;
    report.attestations = run.attestations().size();
    const std::vector<StepTally> tallies = report_.ledger->TalliesUnder(run, policy);
    for (size_t i = 0; i < tallies.size(); ++i) {
      const StepTally& tally = tallies[i];
      const StepState state = StateOf(tally, policy.quorum);
      ++report.states[static_cast<size_t>(state)];
      report.step_states.push_back(state);
      report.matches += static_cast<uint64_t>(tally.matches);
      report.awaiting_openings += static_cast<uint64_t>(tally.awaiting_openings);
      report.mismatches += static_cast<uint64_t>(tally.mismatches);
      report.voided += static_cast<uint64_t>(tally.voided);
      if (state == StepState::kDisputed && report.disputed.size() < kDisputedListed) {
        report.disputed.push_back(DisputedOf(run, run.first_step() + i));
      }
    }
    return report;
  }

  static DisputedStep DisputedOf(const RunLedger& run, uint64_t step) {
    const auto digest = [](const StepRecord& record) {
      return Sha256(AsBytes(EncodeStepRecord(record)));
    };
    DisputedStep disputed;
    disputed.step = step;
    disputed.published = digest(*run.FindRecord(step));
    if (const SecondRecord* second = run.FindSecondRecord(step); second != nullptr) {
      disputed.others.push_back(digest(second->record));
      disputed.evidence.push_back(second->entry.log_index);
    }
    for (const uint32_t id : run.AttestationsOf(step)) {
      const MismatchFacts* mismatch = run.FindMismatch(id);
      if (mismatch == nullptr) continue;
      disputed.others.push_back(digest(mismatch->computed));
      disputed.evidence.push_back(run.attestations()[id].log_index);
      const Difference& difference = mismatch->difference;
      disputed.places.push_back(
          absl::StrCat(difference.field, difference.place.empty() ? "" : " ", difference.place));
    }
    return disputed;
  }

  LogSource& source_;
  const VerifyOptions& options_;
  ThreadPool& pool_;
  LogReport report_;
  MerkleFrontier tree_;
  Digest last_leaf_;
  std::vector<Expected> expected_;
  size_t next_expected_ = 0;
};

}  // namespace

absl::StatusOr<LogReport> VerifyLog(LogSource& source, const VerifyOptions& options,
                                    ThreadPool& pool) {
  return LogVerifier(source, options, pool).Run();
}

}  // namespace lockstep::audit
