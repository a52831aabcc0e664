// SPDX-License-Identifier: Apache-2.0
//
// Writes logs for verify_cli_test into a folder: one of each kind, and what somebody did to them.
// facts.json says what is in them. Or a coordinator's log without its mismatches, as one that hides
// them would serve it. For tests only.
//
//   lockstep_log_fixture FOLDER
//   lockstep_log_fixture hide-mismatches COORDINATOR_FOLDER ORIGIN BUNDLE
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "audit/evidence/log_entry.h"
#include "audit/ledger/bundle.h"
#include "audit/ledger/log_source.h"
#include "audit/ledger/receipt.h"
#include "audit/log/log_checkpoint.h"
#include "audit/log/log_tiles.h"
#include "audit/testing/small_log.h"
#include "base/bytes.h"
#include "base/directory.h"
#include "base/ed25519.h"
#include "base/file.h"
#include "base/logging.h"
#include "base/merkle.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {
namespace {

constexpr uint64_t kSteps = 300;  // so that there are full tiles and partial ones

class Fixture {
 public:
  explicit Fixture(std::string folder) : folder_(std::move(folder)) {}

  void WriteAll() {
    SmallLog good = GoodLog();
    WriteBundleOf("good", good, good.log_key(), good.Checkpoint());
    WriteTiles("good", good);
    Write("log_key", good.log_key().ToText() + "\n");
    Write("early.checkpoint", good.CheckpointAt(100));
    Write("good.receipt", ReceiptOf(good, 50));
    facts_["entries"] = good.entries().size();
    facts_["steps"] = kSteps;
    facts_["run"] = good.run_id().ToHex();
    for (int n = 0; n < 3; ++n) {
      facts_["operators"].push_back(TestPublicKey(OperatorKey(n)).ToHex());
    }

    // A mismatch about step 7, and the same log without it, signed anew by the same key.
    SmallLog honest = GoodLog();
    const uint64_t hidden = honest.entries().size();
    LOCKSTEP_CHECK(honest.Append(honest.MismatchOf(7, WorkerKey(2)), {WorkerKey(2)}).ok());
    honest.Attest(8, WorkerKey(2));
    WriteBundleOf("disputed", honest, honest.log_key(), honest.Checkpoint());
    Write("mismatch.receipt", ReceiptOf(honest, hidden));
    Write("mismatch.proof", EncodeLogProof(ParseReceipt(ReceiptOf(honest, hidden)).value().proof));
    Write("honest.checkpoint", honest.Checkpoint());
    // As a worker keeps them, of several logs.
    LOCKSTEP_CHECK(MakeDirectories(folder_ + "/receipts/deeper").ok());
    Write("receipts/7.json", ReceiptOf(honest, hidden));
    Write("receipts/deeper/50.proof",
          EncodeLogProof(ParseReceipt(ReceiptOf(good, 50)).value().proof));
    Write("receipts/.half-written", "x");
    Receipt elsewhere = ParseReceipt(ReceiptOf(good, 50)).value();
    elsewhere.proof.checkpoint =
        SignLogCheckpoint({.origin = "elsewhere", .size = 1, .root = Digest()}, TestKey(98));
    Write("receipts/elsewhere.json", EncodeReceipt(elsewhere).value());
    SmallLog hiding = GoodLog();
    hiding.Attest(8, WorkerKey(2));
    hiding.Attest(9, WorkerKey(2));
    WriteBundleOf("hiding", hiding, hiding.log_key(), hiding.Checkpoint());

    SmallLog second = GoodLog();
    const StepRecord other =
        TestRecord(second.registration(), second.run().FindRecord(10), "other");
    LOCKSTEP_CHECK(
        second.Append(PublishedRecord{.run_id = second.run_id(), .record = other}, {kTrainerKey})
            .ok());
    WriteBundleOf("second", second, second.log_key(), second.Checkpoint());

    SmallLog refused = GoodLog();
    LOCKSTEP_CHECK(!refused.Append("{}").ok());
    WriteBundleOf("refused", refused, refused.log_key(), refused.Checkpoint());

    const NoteKey stranger{.name = good.log_key().name, .key = TestPublicKey(99)};
    WriteBundleOf("stranger", good, stranger, good.Checkpoint());
    facts_["stranger"] = stranger.ToText();

    // Signed, and not for these entries.
    SmallLog changed = GoodLog();
    changed.Attest(9, WorkerKey(2));
    std::vector<std::string> entries = changed.entries();
    std::swap(entries[entries.size() - 1], entries[entries.size() - 2]);
    WriteBundleOf("swapped", entries, changed.log_key(), changed.Checkpoint());

    Write("facts.json", facts_.dump());
  }

 private:
  // Three operators; steps 0 to 4 confirmed by two, step 5 with one match, the others with none.
  static SmallLog GoodLog() {
    SmallLog log({.operators = 2, .backends = 1, .openings = 1});
    log.MakeLong();
    for (int n = 0; n < 3; ++n) log.AddOperator(n);
    log.AddRun(static_cast<int>(kSteps));
    for (uint64_t step = 0; step < 5; ++step) {
      for (int n = 0; n < 2; ++n) log.Attest(step, WorkerKey(n));
    }
    log.Attest(5, WorkerKey(1));
    return log;
  }

  void Write(const std::string& name, const std::string& bytes) const {
    const absl::Status status = WriteFileAtOnce(folder_ + "/" + name, AsBytes(bytes));
    LOCKSTEP_CHECK(status.ok(), "{}", status);
  }
  void WriteBundleOf(const std::string& name, const std::vector<std::string>& entries,
                     const NoteKey& key, const std::string& checkpoint) const {
    auto writer =
        BundleWriter::Create(absl::StrCat(folder_, "/", name, ".bundle"), key, checkpoint);
    LOCKSTEP_CHECK(writer.ok(), "{}", writer.status());
    for (const std::string& entry : entries) LOCKSTEP_CHECK(writer->Append(entry).ok());
    LOCKSTEP_CHECK(writer->Commit().ok());
  }
  void WriteBundleOf(const std::string& name, const SmallLog& log, const NoteKey& key,
                     const std::string& checkpoint) const {
    WriteBundleOf(name, log.entries(), key, checkpoint);
  }

  void WriteTiles(const std::string& name, const SmallLog& log) const {
    for (const LogTile& tile : NewTiles(0, log.entries().size())) {
      const std::string path = absl::StrCat(name, "/", PathOf(tile));
      LOCKSTEP_CHECK(MakeDirectories(folder_ + "/" + path.substr(0, path.rfind('/'))).ok());
      if (tile.level) {
        Write(path, HashTileBytes(log.tree(), tile).value());
      } else {
        Write(path,
              EncodeEntryBundle(
                  std::span(log.entries()).subspan(tile.first(), static_cast<size_t>(tile.width)))
                  .value());
      }
    }
    Write(name + "/checkpoint", log.Checkpoint());
  }

  static std::string ReceiptOf(const SmallLog& log, uint64_t index) {
    const uint64_t size = log.entries().size();
    return EncodeReceipt({.entry = log.entries()[index],
                          .proof = {.extra = std::nullopt,
                                    .index = index,
                                    .hashes = log.tree().InclusionProof(index, size).value(),
                                    .checkpoint = log.CheckpointAt(size)}})
        .value();
  }

  const std::string folder_;
  nlohmann::json facts_;
};

bool SpeaksAgainstTheTrainer(const std::string& bytes) {
  const absl::StatusOr<LogEntry> entry = LogEntry::Parse(bytes);
  LOCKSTEP_CHECK(entry.ok(), "{}", entry.status());
  const auto* const attestation = std::get_if<Attestation>(&entry->payload());
  return entry->kind() == EntryKind::kDispute ||
         (attestation != nullptr && attestation->verdict == Verdict::kMismatch);
}

// A log without these entries, signed with the coordinator's own key.
absl::Status HideMismatches(const std::string& folder, const std::string& origin,
                            const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PrivateKey key,
                            Ed25519PrivateKey::Load(folder + "/log.key"));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<LogSource> source,
                            OpenTileDirectory(folder + "/log/public"));
  std::vector<std::string> entries;
  MerkleFrontier tree;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::optional<std::string> entry, source->Next());
    if (!entry) break;
    if (SpeaksAgainstTheTrainer(*entry)) continue;
    tree.Append(MerkleLeafHash(AsBytes(*entry)));
    entries.push_back(*std::move(entry));
  }
  const std::string head =
      SignLogCheckpoint({.origin = origin, .size = entries.size(), .root = tree.Root()}, key);
  LOCKSTEP_ASSIGN_OR_RETURN(
      BundleWriter writer,
      BundleWriter::Create(path, NoteKey{.name = origin, .key = key.public_key()}, head));
  for (const std::string& entry : entries) LOCKSTEP_RETURN_IF_ERROR(writer.Append(entry));
  return writer.Commit();
}

}  // namespace
}  // namespace lockstep::audit

// Whatever goes wrong in here ends the program, and should.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  using lockstep::audit::HideMismatches;
  if (argc == 5 && std::string(argv[1]) == "hide-mismatches") {
    const absl::Status status = HideMismatches(argv[2], argv[3], argv[4]);
    if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return status.ok() ? 0 : 1;
  }
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  lockstep::audit::Fixture(argv[1]).WriteAll();
  return 0;
}
