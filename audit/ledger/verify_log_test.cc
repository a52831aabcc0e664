// SPDX-License-Identifier: Apache-2.0
//
// A log verified from its bundle and from its tiles: what is found in a good one, and that what
// somebody did to it is found.
#include "audit/ledger/verify_log.h"

#include <unistd.h>
#include <zstd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "audit/ledger/bundle.h"
#include "audit/log/log_tiles.h"
#include "audit/testing/digests.h"
#include "audit/testing/small_log.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/status.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
using Kind = Finding::Kind;

class VerifyLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/verify_log_XXXXXX");
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { EXPECT_THAT(RemoveDirectory(directory_), IsOk()); }

  std::string Path(absl::string_view name) const { return absl::StrCat(directory_, "/", name); }

  // A bundle of these entries under this head.
  std::string Bundle(const NoteKey& key, const std::string& checkpoint,
                     const std::vector<std::string>& entries) const {
    const std::string path = Path("log.bundle");
    auto writer = BundleWriter::Create(path, key, checkpoint);
    EXPECT_THAT(writer, IsOk());
    for (const std::string& entry : entries) EXPECT_THAT(writer->Append(entry), IsOk());
    EXPECT_THAT(writer->Commit(), IsOk());
    return path;
  }
  std::string Bundle(const SmallLog& log) const {
    return Bundle(log.log_key(), log.Checkpoint(), log.entries());
  }

  absl::StatusOr<LogReport> Verify(const std::string& path, const VerifyOptions& options) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<LogSource> source, OpenBundle(path));
    return VerifyLog(*source, options, pool_);
  }

  ThreadPool pool_{2};
  std::string directory_;
};

VerifyOptions OptionsFor(const SmallLog& log) {
  VerifyOptions options;
  options.log_key = log.log_key();
  return options;
}

auto FindingOf(Kind kind, const char* message) {
  return AllOf(Field(&Finding::kind, kind), Field(&Finding::message, HasSubstr(message)));
}

// Three operators; steps 0 to 3 confirmed, step 4 disputed, step 5 with one match, 6 with none.
SmallLog MixedLog() {
  SmallLog log({.operators = 2, .backends = 1, .openings = 1});
  for (int n = 0; n < 3; ++n) log.AddOperator(n);
  log.AddRun(7);
  for (uint64_t step = 0; step < 4; ++step) {
    for (int n = 0; n < 2; ++n) log.Attest(step, WorkerKey(n));
  }
  log.Append(log.MismatchOf(4, WorkerKey(2)), {WorkerKey(2)}).value();
  log.Attest(4, WorkerKey(0));
  log.Attest(5, WorkerKey(1));
  return log;
}

TEST_F(VerifyLogTest, SaysWhatAGoodLogHolds) {
  const SmallLog log = MixedLog();
  const auto report = Verify(Bundle(log), OptionsFor(log));
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->IsSound());
  EXPECT_TRUE(report->log_key_given);
  EXPECT_EQ(report->checkpoint.size, log.entries().size());
  // run, record, checkpoint, key, attestation, opening, dispute, evaluation
  EXPECT_THAT(report->entries, ElementsAre(1, 7, 0, 6, 11, 10, 0, 0));
  EXPECT_EQ(report->refused, 0u);
  EXPECT_EQ(report->operators, 3u);
  EXPECT_EQ(report->worker_keys, 3u);
  EXPECT_EQ(report->ended_keys, 0u);
  ASSERT_EQ(report->runs.size(), 1u);
  const RunReport& run = report->runs[0];
  EXPECT_EQ(run.name, log.registration().manifest.name);
  EXPECT_EQ(run.steps, 7u);
  EXPECT_EQ(run.chain, log.run().chain());
  EXPECT_THAT(run.states, ElementsAre(1, 0, 1, 4, 1));
  EXPECT_EQ(run.matches, 10u);
  EXPECT_EQ(run.mismatches, 1u);
  EXPECT_EQ(run.attestations, 11u);
  ASSERT_EQ(run.disputed.size(), 1u);
  const DisputedStep& disputed = run.disputed[0];
  const AttestationFacts& mismatch = log.run().attestations()[log.run().AttestationsOf(4)[0]];
  EXPECT_EQ(disputed.step, 4u);
  EXPECT_EQ(disputed.published, Sha256(AsBytes(EncodeStepRecord(*log.run().FindRecord(4)))));
  EXPECT_THAT(disputed.evidence, ElementsAre(mismatch.log_index));
  EXPECT_THAT(disputed.others, ElementsAre(Sha256(AsBytes(EncodeStepRecord(
                                   *log.MismatchOf(4, WorkerKey(2)).computed_record)))));
  EXPECT_THAT(disputed.places, ElementsAre("parameters tensor head, chunk 0 of 1"));
}

TEST_F(VerifyLogTest, JudgesByTheVerifiersOwnPolicy) {
  const SmallLog log = MixedLog();
  VerifyOptions options = OptionsFor(log);
  options.policy = [](const RunRegistration&) {
    return VerifierPolicy{.quorum = {.operators = 1, .backends = 1, .openings = 1},
                          .trusted_operators = {{TestPublicKey(OperatorKey(1))}}};
  };
  const auto report = Verify(Bundle(log), options);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->runs[0].states, ElementsAre(2, 0, 0, 5, 0));
  options.policy = [](const RunRegistration& run) {
    return VerifierPolicy{
        .quorum = {.operators = 3, .backends = 1, .openings = run.quorum.openings},
        .trusted_operators = std::nullopt};
  };
  const auto strict = Verify(Bundle(log), options);
  ASSERT_THAT(strict, IsOk());
  EXPECT_THAT(strict->runs[0].states, ElementsAre(1, 0, 5, 0, 1));
}

TEST_F(VerifyLogTest, FindsAChangedDroppedOrMovedEntry) {
  const SmallLog log = MixedLog();
  const size_t last = log.entries().size() - 1;
  std::vector<std::string> entries = log.entries();
  std::swap(entries[last], entries[last - 2]);
  auto report = Verify(Bundle(log.log_key(), log.Checkpoint(), entries), OptionsFor(log));
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->findings, ::testing::Contains(FindingOf(Kind::kRoot, "signed for")));
  entries = log.entries();
  entries[last].insert(1, " ");  // the same envelope, other bytes
  report = Verify(Bundle(log.log_key(), log.Checkpoint(), entries), OptionsFor(log));
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->findings, ElementsAre(FindingOf(Kind::kRoot, "signed for")));
}

TEST_F(VerifyLogTest, EntriesThatCountForNothingHideNothing) {
  const SmallLog log = MixedLog();
  std::vector<std::string> entries(2 * kRefusedListed, "{}");
  const std::vector<std::string> rest = log.entries();
  entries.insert(entries.end(), rest.begin(), rest.end());
  // Of so many entries, but not of these.
  const std::string head = SignLogCheckpoint(
      {.origin = log.log_key().name, .size = entries.size(), .root = Filled(1)}, TestKey(kLogKey));
  const auto report = Verify(Bundle(log.log_key(), head, entries), OptionsFor(log));
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->refused, 2 * kRefusedListed);
  ASSERT_THAT(report->findings, ::testing::SizeIs(1 + kRefusedListed));
  EXPECT_THAT(report->findings[0], FindingOf(Kind::kRoot, "signed for"));
  EXPECT_THAT(report->findings[1], FindingOf(Kind::kRefusedEntry, "entry 0 "));
}

TEST_F(VerifyLogTest, FindsAHeadThatTheLogDidNotSign) {
  const SmallLog log = MixedLog();
  const std::string forged = SignLogCheckpoint({.origin = log.log_key().name,
                                                .size = log.entries().size(),
                                                .root = *log.tree().Root(log.entries().size())},
                                               TestKey(66));
  auto report = Verify(Bundle(log.log_key(), forged, log.entries()), OptionsFor(log));
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->findings, ElementsAre(FindingOf(Kind::kSignature, "found none")));
  // A log by somebody else, of one piece: without a key that is meant, nothing can be said of whose
  // it is.
  NoteKey other = log.log_key();
  other.key = TestPublicKey(66);
  report = Verify(Bundle(other, forged, log.entries()), {});
  ASSERT_THAT(report, IsOk());
  EXPECT_FALSE(report->log_key_given);
  // Its challenges are not that log's, so openings do not hold either.
  EXPECT_FALSE(report->IsSound());
  EXPECT_THAT(report->runs[0].states, ElementsAre(6, 0, 0, 0, 1));
}

// The coordinator lets through what the rules do not: it counts for nothing, and is named.
TEST_F(VerifyLogTest, NamesEntriesThatTheLedgerRefuses) {
  SmallLog log = MixedLog();
  EXPECT_FALSE(log.Append("garbage").ok());
  EXPECT_FALSE(log.Append(log.MatchOf(6, WorkerKey(0)), {77}).ok());
  log.Attest(6, WorkerKey(0));
  const auto report = Verify(Bundle(log), OptionsFor(log));
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->refused, 2u);
  EXPECT_THAT(report->findings, ElementsAre(FindingOf(Kind::kRefusedEntry, "MALFORMED"),
                                            FindingOf(Kind::kRefusedEntry, "UNKNOWN_KEY")));
  EXPECT_THAT(report->runs[0].states, ElementsAre(0, 0, 2, 4, 1));
}

TEST_F(VerifyLogTest, AHeadSeenBeforeMustBeContained) {
  const SmallLog log = MixedLog();
  VerifyOptions options = OptionsFor(log);
  for (uint64_t size = 0; size <= log.entries().size(); ++size) {
    options.known_checkpoints.push_back({.name = "a head", .note = log.CheckpointAt(size)});
  }
  auto report = Verify(Bundle(log), options);
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->IsSound());
  EXPECT_EQ(report->promises, log.entries().size() + 1);
  // The log of yesterday, shown today.
  report = Verify(Bundle(log.log_key(), log.CheckpointAt(9),
                         {log.entries().begin(), log.entries().begin() + 9}),
                  options);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->findings.size(), log.entries().size() - 9);
  EXPECT_THAT(report->findings[0], FindingOf(Kind::kNewer, "later log"));
  // One of another log, and none at all.
  options.known_checkpoints = {
      {.name = "other",
       .note = SignLogCheckpoint({.origin = "x", .size = 1, .root = Filled(1)}, TestKey(5))},
      {.name = "none", .note = "x"}};
  report = Verify(Bundle(log), options);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->findings, ElementsAre(FindingOf(Kind::kKnownCheckpoint, "not of this log"),
                                            FindingOf(Kind::kKnownCheckpoint, "not of this log")));
  // In a collection of several logs' the first is passed over; what is none stays one.
  for (KnownHead& head : options.known_checkpoints) head.may_be_of_another_log = true;
  report = Verify(Bundle(log), options);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->findings, ElementsAre(FindingOf(Kind::kKnownCheckpoint, "none is not")));
  EXPECT_EQ(report->promises_of_other_logs, 1u);
}

// A coordinator that hides one mismatch from the log that it shows later: the worker's receipt
// tells.
TEST_F(VerifyLogTest, AReceiptShowsAHiddenMismatch) {
  const SmallLog honest = MixedLog();
  const uint64_t index = honest.run().attestations()[honest.run().AttestationsOf(4)[0]].log_index;
  const uint64_t size = index + 1;
  Receipt receipt = {.entry = honest.entries()[index],
                     .proof = {.extra = std::nullopt,
                               .index = index,
                               .hashes = honest.tree().InclusionProof(index, size).value(),
                               .checkpoint = honest.CheckpointAt(size)}};
  SmallLog hiding({.operators = 2, .backends = 1, .openings = 1});
  for (uint64_t i = 0; i < honest.entries().size(); ++i) {
    if (i == index) continue;
    ASSERT_THAT(hiding.Append(honest.entries()[i]), IsOk());
  }
  VerifyOptions options = OptionsFor(honest);
  auto report = Verify(Bundle(hiding), options);
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->IsSound());  // alone it looks well
  EXPECT_EQ(report->runs[0].states[static_cast<size_t>(StepState::kDisputed)], 0u);
  options.receipts = {{.name = "mine", .receipt = receipt}};
  report = Verify(Bundle(hiding), options);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->findings,
              UnorderedElementsAre(FindingOf(Kind::kReceipt, "an attestation, mismatch, of step 4"),
                                   FindingOf(Kind::kReceipt, "root over the first")));
  report = Verify(Bundle(honest), options);
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->IsSound());
  // Its own log, before the entry was there.
  report = Verify(Bundle(honest.log_key(), honest.CheckpointAt(index),
                         {honest.entries().begin(), honest.entries().begin() + index}),
                  options);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->findings, ElementsAre(FindingOf(Kind::kNewer, "mismatch, of step 4")));
  options.receipts[0].receipt.entry += " ";
  for (const bool maybe : {false, true}) {  // it names this log, wherever it was kept
    options.receipts[0].may_be_of_another_log = maybe;
    report = Verify(Bundle(honest), options);
    ASSERT_THAT(report, IsOk());
    EXPECT_THAT(report->findings, ElementsAre(FindingOf(Kind::kReceipt, "not this log's")));
  }
  options.receipts[0].receipt.proof.checkpoint =
      SignLogCheckpoint({.origin = "x", .size = 1, .root = Filled(1)}, TestKey(5));
  report = Verify(Bundle(honest), options);
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->IsSound());
  EXPECT_EQ(report->promises_of_other_logs, 1u);
}

TEST_F(VerifyLogTest, AnEmptyLogIsOne) {
  const SmallLog log;
  const auto report = Verify(Bundle(log), OptionsFor(log));
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->IsSound());
  EXPECT_THAT(report->runs, IsEmpty());
}

TEST_F(VerifyLogTest, ManyEntriesGoThroughInBatches) {
  SmallLog log({.operators = 1, .backends = 1, .openings = 0});
  log.MakeLong();
  log.AddOperator(0);
  log.AddRun(600);
  for (uint64_t step = 0; step < 600; ++step) log.Attest(step, WorkerKey(0));
  const auto report = Verify(Bundle(log), OptionsFor(log));
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->IsSound());
  EXPECT_EQ(report->runs[0].states[static_cast<size_t>(StepState::kConfirmed)], 600u);
}

TEST_F(VerifyLogTest, ABundleIsWholeOrNone) {
  const SmallLog log = MixedLog();
  const std::string path = Bundle(log);
  const std::string bytes = ReadFile(path, 1 << 24).value();
  const auto outcome = [&](const std::string& changed) {
    EXPECT_THAT(WriteFileAtOnce(path, AsBytes(changed)), IsOk());
    return Verify(path, OptionsFor(log));
  };
  ASSERT_THAT(outcome(bytes), IsOk());
  for (size_t size = 0; size < bytes.size();
       size += size < 600 || size + 50 > bytes.size() ? 1 : 37) {
    EXPECT_THAT(outcome(bytes.substr(0, size)), StatusIs(kDataLoss)) << size;
  }
  EXPECT_THAT(outcome(bytes + "x"), StatusIs(kDataLoss, HasSubstr("after the entries")));
  EXPECT_THAT(outcome(bytes + bytes), StatusIs(kDataLoss, HasSubstr("after the entries")));
  for (size_t i = 0; i < bytes.size(); i += i < 64 ? 1 : 101) {
    std::string changed = bytes;
    changed[i] ^= 0x20;
    const auto report = outcome(changed);
    // Some bits of the frame's header change nothing. (The root is over all entries.)
    if (!report.ok() || !report->IsSound()) continue;
    EXPECT_EQ(report->checkpoint.size, log.entries().size()) << i;
    EXPECT_LT(i, 16u);
  }
  EXPECT_THAT(OpenBundle(Path("none")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(OpenBundle(directory_), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(VerifyLogTest, ABundleOfTooFewOrTooManyEntriesIsNotWritten) {
  const SmallLog log = MixedLog();
  auto writer = BundleWriter::Create(Path("b"), log.log_key(), log.CheckpointAt(1));
  ASSERT_THAT(writer, IsOk());
  EXPECT_THAT(writer->Commit(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(writer->Append(std::string(65536, 'x')),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(writer->Append("x"), IsOk());
  EXPECT_THAT(writer->Append("x"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(BundleWriter::Create(Path("c"), log.log_key(), "no note"), StatusIs(kDataLoss));
}

TEST_F(VerifyLogTest, ABundleMayNotAskForMuchMemory) {
  std::string frame(1 << 16, '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 27);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  const std::string content(4096, 'a');
  ZSTD_inBuffer input = {content.data(), content.size(), 0};
  ZSTD_outBuffer output = {frame.data(), frame.size(), 0};
  // In two steps, so that the size is not known when the header is written.
  ZSTD_compressStream2(context, &output, &input, ZSTD_e_flush);
  ASSERT_EQ(ZSTD_compressStream2(context, &output, &input, ZSTD_e_end), 0u);
  ZSTD_freeCCtx(context);
  frame.resize(output.pos);
  ASSERT_THAT(WriteFileDurably(Path("w"), AsBytes("LKSBNDL1" + frame)), IsOk());
  EXPECT_THAT(OpenBundle(Path("w")), StatusIs(kDataLoss, HasSubstr("memory")));
}

// The same log as a directory of tiles.
TEST_F(VerifyLogTest, ReadsTheTilesOfALog) {
  SmallLog log({.operators = 1, .backends = 1, .openings = 0});
  log.MakeLong();
  log.AddOperator(0);
  log.AddRun(300);
  for (uint64_t step = 0; step < 100; ++step) log.Attest(step, WorkerKey(0));
  const auto write = [&](uint64_t size) {
    for (const LogTile& tile : NewTiles(0, size)) {
      if (tile.level) continue;
      const std::string path = Path(PathOf(tile));
      ASSERT_THAT(MakeDirectories(std::filesystem::path(path).parent_path().string()), IsOk());
      const auto bytes = EncodeEntryBundle(
          std::span(log.entries()).subspan(tile.first(), static_cast<size_t>(tile.width)));
      ASSERT_THAT(WriteFileDurably(path, AsBytes(*bytes)), IsOk());
    }
    ASSERT_THAT(WriteFileDurably(Path(kLogCheckpointPath), AsBytes(log.CheckpointAt(size))),
                IsOk());
  };
  const auto verify = [&]() -> absl::StatusOr<LogReport> {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto source, OpenTileDirectory(directory_));
    return VerifyLog(*source, OptionsFor(log), pool_);
  };
  EXPECT_THAT(OpenTileDirectory(directory_), StatusIs(absl::StatusCode::kNotFound));
  write(300);
  auto report = verify();
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->IsSound());
  EXPECT_EQ(report->checkpoint.size, 300u);
  // An older head, whose partial tile is gone: the full one begins with it.
  write(403);
  ASSERT_EQ(unlink(Path("tile/entries/001.p/44").c_str()), 0);
  ASSERT_THAT(WriteFileDurably(Path(kLogCheckpointPath), AsBytes(log.CheckpointAt(200))), IsOk());
  report = verify();
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->IsSound());
  // Into a bundle.
  ASSERT_THAT(WriteFileDurably(Path(kLogCheckpointPath), AsBytes(log.Checkpoint())), IsOk());
  const auto source = OpenTileDirectory(directory_);
  ASSERT_THAT(source, IsOk());
  ASSERT_THAT(WriteBundle(**source, log.log_key(), Path("b")), IsOk());
  report = Verify(Path("b"), {});
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->IsSound());
  // Without the key, tiles do not say whose they are.
  const auto again = OpenTileDirectory(directory_);
  ASSERT_THAT(again, IsOk());
  EXPECT_THAT(VerifyLog(**again, {}, pool_), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_EQ(unlink(Path("tile/entries/000").c_str()), 0);
  EXPECT_THAT(verify(), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace lockstep::audit
