// SPDX-License-Identifier: Apache-2.0
//
// Notes and log checkpoints against the example of golang.org/x/mod/sumdb/note (keys PeterNeumann)
// and the texts of c2sp.org/signed-note and c2sp.org/tlog-checkpoint.
#include "audit/log/signed_note.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "audit/log/log_checkpoint.h"
#include "audit/testing/digests.h"
#include "base/encoding.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kDenied = absl::StatusCode::kPermissionDenied;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

constexpr char kPeter[] = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
// "PRIVATE+KEY+PeterNeumann+c74f20a3+" and this, whose first byte is the type.
constexpr char kPeterSeed[] = "AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
constexpr char kText[] =
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n";
constexpr char kSignatureLine[] =
    "\xe2\x80\x94 PeterNeumann "
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdng"
    "otpRZb6KE6RyyBwJnAM=\n";

Ed25519PrivateKey Peter() {
  const std::string bytes = Base64Decode(kPeterSeed).value();
  return Ed25519PrivateKey::FromSeed(AsBytes(bytes).subspan(1)).value();
}
std::string Note() { return absl::StrCat(kText, "\n", kSignatureLine); }

TEST(NoteKey, IsAsOthersWriteIt) {
  const auto key = NoteKey::FromText(kPeter);
  ASSERT_THAT(key, IsOk());
  EXPECT_EQ(key->name, "PeterNeumann");
  EXPECT_EQ(key->id(), 0xc74f20a3);
  EXPECT_EQ(key->key, Peter().public_key());
  EXPECT_EQ(key->ToText(), kPeter);
}

TEST(NoteKey, RefusesEveryOtherText) {
  const std::string text = kPeter;
  for (size_t begin = 0; begin <= text.size(); ++begin) {
    for (size_t end = begin; end <= text.size(); ++end) {
      if (begin == 0 && end == text.size()) continue;
      EXPECT_THAT(NoteKey::FromText(text.substr(begin, end - begin)), StatusIs(kInvalid));
    }
  }
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    ++changed[i];
    EXPECT_THAT(NoteKey::FromText(changed), StatusIs(kInvalid)) << changed;
  }
  for (const char* bad :
       {// Wrong length, unknown algorithm, each with its id put right; an id in capitals.
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"}) {
    EXPECT_THAT(NoteKey::FromText(bad), StatusIs(kInvalid)) << bad;
  }
  // A key of small order, with the right id.
  const NoteKey weak = {.name = "weak", .key = {}};
  EXPECT_THAT(NoteKey::FromText(weak.ToText()), StatusIs(kInvalid, HasSubstr("small order")));
}

TEST(SignedNote, VerifiesTheGoExample) {
  const auto note = ParseSignedNote(Note());
  ASSERT_THAT(note, IsOk());
  EXPECT_EQ(note->text, kText);
  ASSERT_EQ(note->signatures.size(), 1u);
  EXPECT_EQ(note->signatures[0].name, "PeterNeumann");
  EXPECT_EQ(note->signatures[0].key_id, 0xc74f20a3);
  EXPECT_THAT(VerifyNote(*note, NoteKey::FromText(kPeter).value()), IsOk());
  EXPECT_EQ(note->Encode(), Note());
}

TEST(SignedNote, SignsAsTheGoExample) {
  SignedNote note = {.text = kText, .signatures = {}};
  SignNote("PeterNeumann", Peter(), &note);
  EXPECT_EQ(note.Encode(), Note());
}

TEST(SignedNote, EveryByteOfTheTextMatters) {
  const NoteKey key = NoteKey::FromText(kPeter).value();
  for (size_t i = 0; i + 1 < sizeof(kText) - 1; ++i) {
    SignedNote note = ParseSignedNote(Note()).value();
    note.text[i] ^= 1;
    EXPECT_THAT(VerifyNote(note, key), StatusIs(kDenied, HasSubstr("does not verify"))) << i;
  }
}

TEST(SignedNote, ReadsTheExampleOfTheSpecification) {
  // A text with an empty line; its key is not given there.
  const auto note = ParseSignedNote(
      "Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned \xc3\xa8 subito "
      "sera.\n\n\xe2\x80\x94 quasimodo.example/salvatore "
      "NnugSzTjtVAewIS+Z/iJhUPeFDkO/"
      "5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=\n");
  ASSERT_THAT(note, IsOk());
  EXPECT_THAT(note->text, HasSubstr("sole:\n\ned"));
  EXPECT_EQ(note->signatures[0].key_id, 0x367ba04bu);
  EXPECT_THAT(VerifyNote(*note, NoteKey::FromText(kPeter).value()),
              StatusIs(kDenied, HasSubstr("found none")));
}

TEST(SignedNote, IgnoresForeignSignaturesAndNoneOfItsOwn) {
  const NoteKey key = NoteKey::FromText(kPeter).value();
  SignedNote note = ParseSignedNote(Note()).value();
  const NoteSignature good = note.signatures[0];
  NoteSignature foreign = good;
  foreign.bytes[0] ^= 1;
  foreign.name = "another";
  note.signatures = {foreign, good};
  EXPECT_THAT(VerifyNote(note, key), IsOk());
  foreign = good;
  foreign.key_id ^= 1;
  foreign.bytes = "of another kind";
  note.signatures = {foreign, good};
  EXPECT_THAT(VerifyNote(note, key), IsOk());
  EXPECT_THAT(ParseSignedNote(note.Encode()), IsOkAndHolds(note));
  // A wrong one that claims to be the key's spoils the note, wherever it stands.
  foreign = good;
  foreign.bytes[63] ^= 1;
  note.signatures = {good, foreign};
  EXPECT_THAT(VerifyNote(note, key), StatusIs(kDenied));
  note.signatures = {foreign, good};
  EXPECT_THAT(VerifyNote(note, key), StatusIs(kDenied));
}

TEST(SignedNote, RefusesOtherForms) {
  const std::string good = Note();
  const std::string bad[] = {
      "",
      "\n",
      "\n\n",
      kText,
      std::string(kText) + "\n",
      kSignatureLine,
      good.substr(0, good.size() - 1),
      good + "\n",
      good + "x",
      absl::StrReplaceAll(good, {{"think", "th\tink"}}),
      absl::StrReplaceAll(good, {{"think", "th\xff"}}),
      absl::StrReplaceAll(good, {{"think", std::string(1, '\0')}}),
      absl::StrReplaceAll(good, {{"think", "th\rink"}}),
      absl::StrReplaceAll(good, {{"\xe2\x80\x94 ", "- "}}),
      absl::StrReplaceAll(good, {{" PeterNeumann ", "  "}}),
      absl::StrReplaceAll(good, {{" PeterNeumann", " Peter+Neumann"}}),
      absl::StrReplaceAll(good, {{" PeterNeumann", " Peter\xe2\x80\x83Neumann"}}),
      absl::StrReplaceAll(good, {{"nAM=", "nAM"}}),
      absl::StrReplaceAll(good, {{"x08go/", "x08go_"}}),
      absl::StrReplaceAll(good, {{"PeterNeumann x08", "PeterNeumann  x08"}}),
      std::string(kText) + "\n\xe2\x80\x94 a AAAAAA==\n",  // an id and no signature
      std::string(70000, 'a') + "\n\n" + kSignatureLine};
  for (const std::string& note : bad) {
    EXPECT_THAT(ParseSignedNote(note), StatusIs(kDataLoss)) << note.substr(0, 300);
  }
  std::string many = std::string(kText) + "\n";
  for (size_t i = 0; i < kNoteSignaturesMax; ++i) many += kSignatureLine;
  EXPECT_THAT(ParseSignedNote(many), IsOk());
  EXPECT_THAT(ParseSignedNote(many + kSignatureLine), StatusIs(kDataLoss));
}

TEST(LogCheckpoint, ReadsTheExampleOfTheSpecification) {
  const auto note = ParseSignedNote(
      "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
      "\xe2\x80\x94 example.com/behind-the-sofa "
      "Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/"
      "Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n");
  ASSERT_THAT(note, IsOk());
  const auto checkpoint = ParseLogCheckpoint(note->text);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->origin, "example.com/behind-the-sofa");
  EXPECT_EQ(checkpoint->size, 20852163u);
  EXPECT_EQ(Base64Encode(checkpoint->root.bytes), "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=");
  EXPECT_EQ(EncodeLogCheckpoint(*checkpoint), note->text);
}

TEST(LogCheckpoint, OpensWhatItSigned) {
  const LogCheckpoint checkpoint = {.origin = "example.com/log", .size = 9, .root = Filled(7)};
  const std::string note = SignLogCheckpoint(checkpoint, Peter());
  NoteKey key = {.name = "example.com/log", .key = Peter().public_key()};
  EXPECT_THAT(OpenLogCheckpoint(note, key), IsOkAndHolds(checkpoint));
  EXPECT_THAT(OpenLogCheckpoint(absl::StrReplaceAll(note, {{"\n9\n", "\n8\n"}}), key),
              StatusIs(kDenied));
  key.name = "example.com/other";
  EXPECT_THAT(OpenLogCheckpoint(note, key), StatusIs(kDenied));
  // Signed under its name by the key, but the head of another log.
  SignedNote other = {.text = EncodeLogCheckpoint(checkpoint), .signatures = {}};
  SignNote("example.com/other", Peter(), &other);
  EXPECT_THAT(OpenLogCheckpoint(other.Encode(), key),
              StatusIs(kDenied, HasSubstr("expected the log")));
}

TEST(LogCheckpoint, RefusesOtherTexts) {
  const std::string root = Base64Encode(Filled(7).bytes);
  EXPECT_THAT(ParseLogCheckpoint("log\n0\n" + root + "\n"), IsOk());
  EXPECT_THAT(ParseLogCheckpoint("log\n18446744073709551615\n" + root + "\nextension\n"), IsOk());
  const std::string bad[] = {"",
                             "\n",
                             "log\n",
                             "log\n9\n",
                             "log\n9\n" + root,
                             "\n9\n" + root + "\n",
                             "log\n09\n" + root + "\n",
                             "log\n+9\n" + root + "\n",
                             "log\n 9\n" + root + "\n",
                             "log\n-1\n" + root + "\n",
                             "log\n18446744073709551616\n" + root + "\n",
                             "log\n9\n" + root + "\n\n",
                             "log\n9\n" + root.substr(4) + "\n",
                             "log\n9\nAAAA" + root + "\n",
                             "log\n9\n" + root.substr(0, root.size() - 1) + "\n"};
  for (const std::string& text : bad) {
    EXPECT_THAT(ParseLogCheckpoint(text), StatusIs(kDataLoss)) << text;
  }
}

}  // namespace
}  // namespace lockstep::audit
