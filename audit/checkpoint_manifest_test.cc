// SPDX-License-Identifier: Apache-2.0
//
// The manifest's text, its claims, and what strangers may write in it.
#include "audit/checkpoint_manifest.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "audit/presets.h"
#include "audit/testing/digests.h"
#include "base/bytes.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/testing/source_dir.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

CheckpointManifest Initial() {
  CheckpointManifest m;
  m.run_id = Filled(0x1d);
  m.origin = InitialState{
      .parameters = Filled(0xa1), .first_moment = Filled(0xa2), .second_moment = Filled(0xa3)};
  m.cursor = "cursor";
  m.files = {{.name = "first_moment.safetensors", .bytes = 100, .sha256 = Filled(0xf1)},
             {.name = "parameters.safetensors", .bytes = 60, .sha256 = Filled(0xf2)},
             {.name = "second_moment.safetensors", .bytes = 101, .sha256 = Filled(0xf3)}};
  return m;
}

CheckpointManifest AfterStep() {
  CheckpointManifest m = Initial();
  StepRecord record;
  record.step = 9;
  record.tokens_before = 9000;
  record.tokens = 1000;
  record.updates = 8;
  record.parameters = Filled(0xb1);
  record.first_moment = Filled(0xb2);
  record.second_moment = Filled(0xb3);
  record.cursor = Sha256(AsBytes("cursor"));
  record.loss = 2.5f;
  record.outcome = StepOutcome::kSkippedSpike;
  record.spike = {.skips_left = 1, .events = 2, .events_since = 3};
  record.previous_chain = Filled(0xcc);
  m.origin = record;
  return m;
}

TEST(CheckpointManifest, RoundTrips) {
  for (const CheckpointManifest& m : {Initial(), AfterStep()}) {
    EXPECT_THAT(ParseCheckpointManifest(EncodeCheckpointManifest(m)), IsOkAndHolds(m));
  }
}

// docs/checkpoint.md shows it.
TEST(CheckpointManifest, HasOneText) {
  const auto hex = [](uint8_t byte) { return Filled(byte).ToHex(); };
  EXPECT_EQ(EncodeCheckpointManifest(Initial()),
            absl::StrCat(R"({"chain":")", Initial().chain().ToHex(),
                         R"(","cursor":"637572736f72","files":[)",
                         R"({"bytes":100,"name":"first_moment.safetensors","sha256":")", hex(0xf1),
                         R"("},)", R"({"bytes":60,"name":"parameters.safetensors","sha256":")",
                         hex(0xf2), R"("},)",
                         R"({"bytes":101,"name":"second_moment.safetensors","sha256":")", hex(0xf3),
                         R"("}],)", R"("format":"lockstep-checkpoint","initial":{"first_moment":")",
                         hex(0xa2), R"(","parameters":")", hex(0xa1), R"(","second_moment":")",
                         hex(0xa3), R"("},"run_id":")", hex(0x1d), R"(","version":1})"));
}

// The chain is from Python's hashlib.
TEST(CheckpointManifestPage, ShowsTheText) {
  const auto page = ReadFile(testing::SourcePath("docs/checkpoint.md"), 1 << 20);
  ASSERT_THAT(page, IsOk());
  EXPECT_THAT(*page, HasSubstr(EncodeCheckpointManifest(Initial())));
  EXPECT_EQ(Initial().chain().ToHex(),
            "d2e58deebff0f7e2ad99793dc6a9d1d1e3fd2bb43c087997e57258a109973c6f");
}

TEST(CheckpointManifest, GivesTheState) {
  const CheckpointManifest initial = Initial();
  EXPECT_EQ(initial.record(), nullptr);
  EXPECT_EQ(initial.next_step(), 0u);
  EXPECT_EQ(initial.tokens(), 0u);
  EXPECT_EQ(initial.updates(), 0u);
  EXPECT_EQ(initial.spike(), SpikeState());
  EXPECT_EQ(initial.roots().second_moment, Filled(0xa3));
  EXPECT_EQ(initial.chain(), GenesisChain(Filled(0x1d), Filled(0xa1), Filled(0xa2), Filled(0xa3),
                                          Sha256(AsBytes("cursor"))));
  const CheckpointManifest after = AfterStep();
  EXPECT_EQ(after.next_step(), 10u);
  EXPECT_EQ(after.tokens(), 10000u);
  EXPECT_EQ(after.updates(), 8u);
  EXPECT_EQ(after.spike().events, 2u);
  EXPECT_EQ(after.roots().first_moment, Filled(0xb2));
  EXPECT_EQ(after.chain(), ChainAfter(*after.record()));
}

absl::Status With(const CheckpointManifest& m, absl::string_view from, absl::string_view to) {
  const std::string text = EncodeCheckpointManifest(m);
  const std::string changed = absl::StrReplaceAll(text, {{from, to}});
  EXPECT_NE(text, changed) << from;
  return ParseCheckpointManifest(changed).status();
}

TEST(CheckpointManifest, HoldsTheChainToTheOrigin) {
  for (const CheckpointManifest& m : {Initial(), AfterStep()}) {
    EXPECT_THAT(With(m, m.chain().ToHex(), Filled(1).ToHex()),
                StatusIs(kDataLoss, AllOf(HasSubstr(".chain: expected what follows"),
                                          HasSubstr(m.chain().ToHex()))));
  }
  // Of the initial state, everything is in the chain.
  for (const uint8_t byte : {0x1d, 0xa1, 0xa2, 0xa3}) {
    EXPECT_THAT(With(Initial(), Filled(byte).ToHex(), Filled(1).ToHex()),
                StatusIs(kDataLoss, HasSubstr(".chain: ")));
  }
  EXPECT_THAT(With(Initial(), "637572736f72", "637572736f73"),
              StatusIs(kDataLoss, HasSubstr(".chain: ")));
  // Of a record, too; and the cursor is the record's.
  EXPECT_THAT(With(AfterStep(), Filled(0xb1).ToHex(), Filled(1).ToHex()),
              StatusIs(kDataLoss, HasSubstr(".chain: ")));
  EXPECT_THAT(With(AfterStep(), "637572736f72", "637572736f73"),
              StatusIs(kDataLoss, HasSubstr(".cursor: expected bytes whose SHA-256")));
}

TEST(CheckpointManifest, TakesItsFilesAndNoOthers) {
  const auto name = [](absl::string_view other) {
    return With(Initial(), "parameters.safetensors", other);
  };
  for (const absl::string_view other :
       {"", ".", "..", "../parameters.safetensors", "/etc/passwd", "a/parameters.safetensors",
        "parameters.pt", "first_moment.safetensors", "Parameters.safetensors"}) {
    EXPECT_THAT(
        name(other),
        StatusIs(kDataLoss, HasSubstr("files[1].name: expected \"parameters.safetensors\"")))
        << other;
  }
  EXPECT_THAT(With(Initial(), "\"bytes\":60", "\"bytes\":0"),
              StatusIs(kDataLoss, HasSubstr("files[1].bytes: ")));
  EXPECT_THAT(With(Initial(), "\"bytes\":60", "\"bytes\":1125899906842625"),
              StatusIs(kDataLoss, HasSubstr("files[1].bytes: ")));
  EXPECT_THAT(With(Initial(), Filled(0xf2).ToHex(), "f2"),
              StatusIs(kDataLoss, HasSubstr("files[1].sha256: ")));
  CheckpointManifest m = Initial();
  m.files.pop_back();
  EXPECT_THAT(ParseCheckpointManifest(EncodeCheckpointManifest(m)),
              StatusIs(kDataLoss, HasSubstr(".files: expected 3 files; found 2")));
  m.files.resize(4, Initial().files[2]);
  EXPECT_THAT(ParseCheckpointManifest(EncodeCheckpointManifest(m)),
              StatusIs(kDataLoss, HasSubstr(".files: ")));
  m = Initial();
  std::swap(m.files[0], m.files[1]);
  EXPECT_THAT(ParseCheckpointManifest(EncodeCheckpointManifest(m)),
              StatusIs(kDataLoss, HasSubstr("files[0].name: ")));
}

TEST(CheckpointManifest, SaysWhatIsWrong) {
  EXPECT_THAT(With(Initial(), "lockstep-checkpoint", "lockstep-run"),
              StatusIs(kDataLoss, HasSubstr(".format: ")));
  EXPECT_THAT(With(Initial(), "\"version\":1", "\"version\":0"),
              StatusIs(kDataLoss, HasSubstr(".version: ")));
  EXPECT_THAT(With(Initial(), "637572736f72", "637572736F72"),
              StatusIs(kDataLoss, HasSubstr(".cursor: expected lower-case")));
  EXPECT_THAT(With(Initial(), "637572736f72", "6"), StatusIs(kDataLoss, HasSubstr(".cursor: ")));
  EXPECT_THAT(With(Initial(), "\"initial\":{", "\"initial\":{\"a\":1,"),
              StatusIs(kDataLoss, HasSubstr(".initial.a: expected no such key")));
  EXPECT_THAT(With(Initial(), "\"initial\"", "\"initiak\""),
              StatusIs(kDataLoss, HasSubstr(".record: ")));
  const std::string magic = HexEncode(AsBytes("LKSR"));
  EXPECT_THAT(With(AfterStep(), magic, HexEncode(AsBytes("LKSQ"))),
              StatusIs(kDataLoss, AllOf(HasSubstr(".record: "), HasSubstr("offset 0"))));
  EXPECT_THAT(With(AfterStep(), magic, magic.substr(2)),
              StatusIs(kDataLoss, HasSubstr("found 335")));
  // Both origins at once.
  const std::string hex = HexEncode(AsBytes(EncodeStepRecord(*AfterStep().record())));
  EXPECT_THAT(With(Initial(), "\"run_id\"", absl::StrCat("\"record\":\"", hex, "\",\"run_id\"")),
              StatusIs(kDataLoss, HasSubstr(".record: expected no such key")));
}

TEST(CheckpointManifest, EveryCutIsRefused) {
  const std::string text = EncodeCheckpointManifest(AfterStep());
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_THAT(ParseCheckpointManifest(text.substr(0, size)), StatusIs(kDataLoss)) << size;
  }
  EXPECT_THAT(ParseCheckpointManifest(std::string(kCheckpointManifestBytesMax + 1, ' ')),
              StatusIs(kDataLoss, HasSubstr("bytes")));
  CheckpointManifest m = Initial();
  m.cursor = std::string(kCursorBytesMax + 1, 'c');
  EXPECT_THAT(ParseCheckpointManifest(EncodeCheckpointManifest(m)),
              StatusIs(kDataLoss, HasSubstr(".cursor: ")));
}

TEST(CheckpointIsOfRun, TakesItsOwnAndItsParents) {
  constexpr auto kFailed = absl::StatusCode::kFailedPrecondition;
  RunManifest run = Preset("golden").value();
  CheckpointManifest checkpoint = AfterStep();
  EXPECT_THAT(
      CheckpointIsOfRun(checkpoint, run),
      StatusIs(kFailed, AllOf(HasSubstr(RunIdOf(run).ToHex()), HasSubstr(Filled(0x1d).ToHex()))));
  checkpoint.run_id = RunIdOf(run);
  EXPECT_THAT(CheckpointIsOfRun(checkpoint, run), IsOk());

  checkpoint.run_id = Filled(0x1d);
  const ParentSegment parent = {
      .run_id = Filled(0x1d), .step = 10, .tokens = 10 * 1024, .chain = checkpoint.chain()};
  run.parent = parent;
  EXPECT_THAT(CheckpointIsOfRun(checkpoint, run), IsOk());
  run.parent->step = 11;
  EXPECT_THAT(CheckpointIsOfRun(checkpoint, run), StatusIs(kFailed, HasSubstr("step 11")));
  run.parent = parent;
  run.parent->chain = Filled(1);
  EXPECT_THAT(CheckpointIsOfRun(checkpoint, run), StatusIs(kFailed));
  run.parent = parent;
  run.parent->run_id = Filled(1);
  EXPECT_THAT(CheckpointIsOfRun(checkpoint, run), StatusIs(kFailed));
}

}  // namespace
}  // namespace lockstep::audit
