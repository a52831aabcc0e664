// SPDX-License-Identifier: Apache-2.0
//
// The short payloads as docs/attestation.md gives them: key events, run registrations, checkpoint
// announcements, evaluations, disputes; and the entries that they make.
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "audit/evidence/dsse.h"
#include "audit/evidence/log_entry.h"
#include "audit/testing/digests.h"
#include "audit/testing/json_changes.h"
#include "audit/testing/small_log.h"
#include "base/encoding.h"
#include "base/merkle.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

std::string Key(int n) { return TestPublicKey(n).ToHex(); }

CheckpointAnnouncement Announcement() {
  CheckpointAnnouncement a = {
      .run_id = Filled(1), .next_step = 10, .chain = Filled(2), .manifest = Filled(3), .files = {}};
  for (const char* name : kCheckpointFiles) {
    a.files.push_back({.name = name, .bytes = 123, .sha256 = Filled(4)});
  }
  return a;
}

Evaluation TwoFiles() {
  return {.run_id = Filled(1),
          .next_step = 10,
          .chain = Filled(2),
          .limit = 20,
          .files = {{.name = "whales.jsonl",
                     .sha256 = Filled(3),
                     .documents = 20,
                     .bytes = 4000,
                     .tokens = 1000,
                     .nats_per_token = 3.5},
                    {.name = "speeches.jsonl",
                     .sha256 = Filled(4),
                     .documents = 7,
                     .bytes = 6000,
                     .tokens = 3000,
                     .nats_per_token = 4}}};
}

TEST(KeyEvent, LiesAsDocumented) {
  const std::pair<KeyEvent, std::string> cases[] = {
      {OperatorEvent{.operator_key = TestPublicKey(1),
                     .revocation_key = TestPublicKey(2),
                     .name = "Ada",
                     .contact = "ada@example.com"},
       absl::StrCat(
           R"({"contact":"ada@example.com","event":"operator","name":"Ada","operatorKey":")",
           Key(1), R"(","revocationKey":")", Key(2), R"("})")},
      {WorkerEvent{.worker_key = TestPublicKey(3),
                   .operator_key = TestPublicKey(1),
                   .hardware = "a laptop"},
       absl::StrCat(R"({"event":"worker","hardware":"a laptop","operatorKey":")", Key(1),
                    R"(","workerKey":")", Key(3), R"("})")},
      {RotateEvent{.old_key = TestPublicKey(3), .new_key = TestPublicKey(4)},
       absl::StrCat(R"({"event":"rotate","newKey":")", Key(4), R"(","oldKey":")", Key(3), R"("})")},
      {RevokeEvent{.key = TestPublicKey(3), .reason = "stolen"},
       absl::StrCat(R"({"event":"revoke","key":")", Key(3), R"(","reason":"stolen"})")}};
  for (const auto& [event, text] : cases) {
    EXPECT_EQ(EncodeKeyEvent(event), text);
    EXPECT_THAT(ParseKeyEvent(text), IsOkAndHolds(event));
    for (const auto& [what, changed] : JsonChanges(text)) {
      if (what == "/contact is gone") continue;
      const bool free_text =
          absl::StrContains(what, "/name") || absl::StrContains(what, "/contact") ||
          absl::StrContains(what, "/hardware") || absl::StrContains(what, "/reason");
      if (free_text && absl::StrContains(what, "becomes \"x\"")) continue;
      EXPECT_THAT(ParseKeyEvent(changed), StatusIs(kDataLoss)) << what;
    }
  }
}

TEST(KeyEvent, RefusesWeakAndEqualKeys) {
  const std::string text = EncodeKeyEvent(OperatorEvent{.operator_key = TestPublicKey(1),
                                                        .revocation_key = TestPublicKey(2),
                                                        .name = "Ada",
                                                        .contact = ""});
  const std::string weak = "01" + std::string(62, '0');
  EXPECT_THAT(ParseKeyEvent(absl::StrReplaceAll(text, {{Key(1), weak}})),
              StatusIs(kDataLoss, HasSubstr("small order")));
  EXPECT_THAT(ParseKeyEvent(absl::StrReplaceAll(text, {{Key(2), Key(1)}})),
              StatusIs(kDataLoss, HasSubstr("revocationKey")));
  const std::string high = "ee" + std::string(60, 'f') + "7f";
  EXPECT_THAT(ParseKeyEvent(absl::StrReplaceAll(text, {{Key(2), high}})),
              StatusIs(kDataLoss, HasSubstr("2^255")));
  EXPECT_THAT(ParseKeyEvent(EncodeKeyEvent(
                  RotateEvent{.old_key = TestPublicKey(1), .new_key = TestPublicKey(1)})),
              StatusIs(kDataLoss));
  EXPECT_THAT(
      ParseKeyEvent(EncodeKeyEvent(WorkerEvent{
          .worker_key = TestPublicKey(1), .operator_key = TestPublicKey(1), .hardware = "x"})),
      StatusIs(kDataLoss));
}

TEST(KeyEvent, RefusesTextThatIsNotALine) {
  for (const std::string& name : {std::string("a\nb"), std::string("a\x7f"), std::string("\x1b[2J"),
                                  std::string(65, 'a'), std::string()}) {
    EXPECT_THAT(ParseKeyEvent(EncodeKeyEvent(OperatorEvent{.operator_key = TestPublicKey(1),
                                                           .revocation_key = TestPublicKey(2),
                                                           .name = name,
                                                           .contact = ""})),
                StatusIs(kDataLoss, HasSubstr("name")));
  }
}

TEST(RunRegistration, LiesAsDocumented) {
  const RunRegistration registration =
      TestRegistration({.operators = 3, .backends = 2, .openings = 1});
  const std::string text = EncodeRunRegistration(registration);
  EXPECT_EQ(text,
            absl::StrCat(R"({"genesis":{"cursor":")", registration.genesis->cursor.ToHex(),
                         R"(","firstMoment":")", registration.genesis->first_moment.ToHex(),
                         R"(","parameters":")", registration.genesis->parameters.ToHex(),
                         R"(","secondMoment":")", registration.genesis->second_moment.ToHex(),
                         R"("},"manifest":)", EncodeRunManifest(registration.manifest),
                         R"(,"quorum":{"backends":2,"openings":1,"operators":3},"trainerKey":")",
                         Key(kTrainerKey), R"("})"));
  EXPECT_THAT(ParseRunRegistration(text), IsOkAndHolds(registration));
  for (const auto& [what, changed] : JsonChanges(text)) {
    // The manifest's own rules are run_manifest_test.cc's.
    if (absl::StartsWith(what, "/manifest/")) continue;
    EXPECT_THAT(ParseRunRegistration(changed), StatusIs(kDataLoss)) << what;
  }
  for (const char* bad : {R"("operators":0)", R"("operators":101)"}) {
    EXPECT_THAT(ParseRunRegistration(absl::StrReplaceAll(text, {{R"("operators":3)", bad}})),
                StatusIs(kDataLoss, HasSubstr("operators")));
  }
  EXPECT_THAT(
      ParseRunRegistration(absl::StrReplaceAll(text, {{R"("replicas":2)", R"("replicas":3)"}})),
      StatusIs(kDataLoss, HasSubstr("manifest")));
}

TEST(RunRegistration, ASegmentHasItsParentsChainAndNoGenesis) {
  RunRegistration registration = TestRegistration();
  EXPECT_EQ(registration.first_step(), 0u);
  EXPECT_EQ(registration.first_chain(),
            GenesisChain(RunIdOf(registration.manifest), registration.genesis->parameters,
                         registration.genesis->first_moment, registration.genesis->second_moment,
                         registration.genesis->cursor));
  registration.manifest.parent = ParentSegment{.run_id = Filled(1),
                                               .step = 5,
                                               .tokens = registration.manifest.model.seq_len,
                                               .chain = Filled(2)};
  EXPECT_THAT(ParseRunRegistration(EncodeRunRegistration(registration)),
              StatusIs(kDataLoss, HasSubstr("genesis")));
  registration.genesis.reset();
  EXPECT_THAT(ParseRunRegistration(EncodeRunRegistration(registration)),
              IsOkAndHolds(registration));
  EXPECT_EQ(registration.first_step(), 5u);
  EXPECT_EQ(registration.first_chain(), Filled(2));
}

TEST(CheckpointAnnouncement, LiesAsDocumented) {
  const std::string text = EncodeCheckpointAnnouncement(Announcement());
  const std::string file = absl::StrCat(R"("sha256":")", Filled(4).ToHex(), "\"}");
  EXPECT_EQ(text, absl::StrCat(R"({"chain":")", Filled(2).ToHex(),
                               R"(","files":[{"bytes":123,"name":"first_moment.safetensors",)",
                               file, R"(,{"bytes":123,"name":"parameters.safetensors",)", file,
                               R"(,{"bytes":123,"name":"second_moment.safetensors",)", file,
                               R"(],"manifest":")", Filled(3).ToHex(), R"(","nextStep":10,"run":")",
                               Filled(1).ToHex(), R"("})"));
  EXPECT_THAT(ParseCheckpointAnnouncement(text), IsOkAndHolds(Announcement()));
  for (const auto& [what, changed] : JsonChanges(text)) {
    EXPECT_THAT(ParseCheckpointAnnouncement(changed), StatusIs(kDataLoss)) << what;
  }
  EXPECT_THAT(ParseCheckpointAnnouncement(
                  absl::StrReplaceAll(text, {{"parameters.safetensors", "../etc/passwd"}})),
              StatusIs(kDataLoss, HasSubstr("name")));
}

TEST(Evaluation, LiesAsDocumented) {
  const std::string text = EncodeEvaluation(TwoFiles());
  EXPECT_EQ(text,
            absl::StrCat(R"({"chain":")", Filled(2).ToHex(),
                         R"(","heldOut":[{"bytes":4000,"documents":20,"name":"whales.jsonl",)",
                         R"("natsPerToken":3.5,"sha256":")", Filled(3).ToHex(),
                         R"(","tokens":1000},{"bytes":6000,"documents":7,"name":"speeches.jsonl",)",
                         R"("natsPerToken":4,"sha256":")", Filled(4).ToHex(),
                         R"(","tokens":3000}],"limit":20,"nextStep":10,"run":")", Filled(1).ToHex(),
                         R"("})"));
  EXPECT_THAT(ParseEvaluation(text), IsOkAndHolds(TwoFiles()));
  for (const auto& [what, changed] : JsonChanges(text)) {
    if (absl::StrContains(what, "/name becomes \"x\"")) continue;
    if (absl::StrContains(what, "/natsPerToken becomes 0.5")) continue;
    EXPECT_THAT(ParseEvaluation(changed), StatusIs(kDataLoss)) << what;
  }
}

TEST(Evaluation, AddsUpBeforeItDivides) {
  EXPECT_DOUBLE_EQ(NatsPerToken(TwoFiles()), (3500.0 + 12000) / 4000);
  EXPECT_DOUBLE_EQ(BitsPerByte(TwoFiles()), 15500 / std::log(2.0) / 10000);
}

TEST(Evaluation, IsOfItsTexts) {
  Evaluation other = TwoFiles();
  other.files[0].nats_per_token = 1;
  other.files[1].name = "a copy";
  other.next_step = 11;
  EXPECT_EQ(TextsOf(other), TextsOf(TwoFiles()));
  other.limit = 0;
  EXPECT_NE(TextsOf(other), TextsOf(TwoFiles()));
  other = TwoFiles();
  std::swap(other.files[0].sha256, other.files[1].sha256);
  EXPECT_NE(TextsOf(other), TextsOf(TwoFiles()));
}

TEST(Dispute, LiesAsDocumented) {
  const Dispute dispute = {.run_id = Filled(1),
                           .step = 3,
                           .reason = DisputeReason::kBadOpening,
                           .evidence = {Filled(2), std::string("envelope")}};
  const std::string text = EncodeDispute(dispute);
  EXPECT_EQ(text, absl::StrCat(R"({"evidence":[{"entry":")", Filled(2).ToHex(),
                               R"("},{"envelope":"ZW52ZWxvcGU="}],"reason":"bad-opening","run":")",
                               Filled(1).ToHex(), R"(","step":3})"));
  EXPECT_THAT(ParseDispute(text), IsOkAndHolds(dispute));
  for (const auto& [what, changed] : JsonChanges(text)) {
    if (what == "/evidence/1/envelope becomes \"\"") continue;  // no bytes are bytes
    EXPECT_THAT(ParseDispute(changed), StatusIs(kDataLoss)) << what;
  }
}

TEST(LogEntry, HasAKindForEachPayloadType) {
  Opening opening;
  opening.leaf = EncodeTranscriptLeaf(TestTranscript(0)[0]);
  const EntryPayload payloads[] = {
      TestRegistration(),
      PublishedRecord{.run_id = Filled(1), .record = TestRecord(TestRegistration(), nullptr)},
      Announcement(),
      RevokeEvent{.key = TestPublicKey(3), .reason = "stolen"},
      TestAttestation(Filled(1), TestRecord(TestRegistration(), nullptr), TestPublicKey(5)),
      opening,
      Dispute{.run_id = Filled(1), .evidence = {Filled(2)}},
      TwoFiles()};
  for (size_t i = 0; i < std::size(payloads); ++i) {
    const std::string bytes = TestEntry(payloads[i], {7, 8});
    const auto entry = LogEntry::Parse(bytes);
    ASSERT_THAT(entry, IsOk()) << i;
    EXPECT_EQ(static_cast<size_t>(entry->kind()), i);
    EXPECT_EQ(entry->leaf_hash(), MerkleLeafHash(AsBytes(bytes)));
    EXPECT_THAT(entry->signer_ids(), ElementsAre(TestPublicKey(7).Id(), TestPublicKey(8).Id()));
    EXPECT_TRUE(entry->IsSignedBy(TestPublicKey(7)));
    EXPECT_TRUE(entry->IsSignedBy(TestPublicKey(8)));
    EXPECT_FALSE(entry->IsSignedBy(TestPublicKey(9)));
    EXPECT_EQ(TestEntry(entry->payload(), {7, 8}), bytes);
  }
}

TEST(LogEntry, RefusesWhatTheLogDoesNotHold) {
  const EntryPayload payload = RevokeEvent{.key = TestPublicKey(3), .reason = "stolen"};
  const std::string bytes = TestEntry(payload, {3});
  DsseEnvelope envelope = ParseDsse(bytes).value();
  const auto refuses = [](const DsseEnvelope& changed, const char* message) {
    EXPECT_THAT(LogEntry::Parse(EncodeDsse(changed)), StatusIs(kDataLoss, HasSubstr(message)));
  };
  DsseEnvelope changed = envelope;
  changed.payload_type = "application/json";
  refuses(changed, "payload type");
  changed = envelope;
  changed.signatures[0].key_id = "";
  refuses(changed, "keyid");
  changed.signatures[0].key_id = "alice";
  refuses(changed, "keyid");
  changed = envelope;
  changed.signatures[0].bytes.pop_back();
  refuses(changed, "64 bytes");
  changed = envelope;
  changed.signatures.push_back(changed.signatures[0]);
  refuses(changed, "found two");
  changed = envelope;
  changed.payload_type = kRecordPayloadType;
  refuses(changed, "published record");
  changed.payload = std::string(32 + kStepRecordBytes, 'x');
  refuses(changed, "published record");
  EXPECT_THAT(LogEntry::Parse(absl::StrCat(bytes, std::string(70000, ' '))),
              StatusIs(kDataLoss, HasSubstr("65535")));
  // Bytes that are not the payload's own are verified as they are: no second reading of them.
  changed = envelope;
  changed.signatures[0].key_id = TestPublicKey(4).Id().ToHex();
  const auto foreign = LogEntry::Parse(EncodeDsse(changed));
  ASSERT_THAT(foreign, IsOk());
  EXPECT_FALSE(foreign->IsSignedBy(TestPublicKey(4)));
  EXPECT_FALSE(foreign->IsSignedBy(TestPublicKey(3)));
}

TEST(LogEntry, TooLargeAPayloadIsSaidBeforeItIsLogged) {
  Dispute dispute = {.run_id = Filled(1), .evidence = {std::string(60000, 'x')}};
  const Ed25519PrivateKey* const keys[] = {&TestKey(1)};
  EXPECT_THAT(MakeLogEntry(dispute, keys), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(LogEntry, RemembersOnlyWhoSigned) {
  auto entry = LogEntry::Parse(
      TestEntry(EntryPayload(RevokeEvent{.key = TestPublicKey(3), .reason = "x"}), {3}));
  ASSERT_THAT(entry, IsOk());
  entry->MarkSignedBy(TestPublicKey(4));
  EXPECT_FALSE(entry->IsSignedBy(TestPublicKey(4)));
  entry->MarkSignedBy(TestPublicKey(3));
  EXPECT_TRUE(entry->IsSignedBy(TestPublicKey(3)));
  entry->MarkChallengedBy(TestPublicKey(1));
  EXPECT_FALSE(entry->IsChallengedBy(TestPublicKey(1)));
}

}  // namespace
}  // namespace lockstep::audit
