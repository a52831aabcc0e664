// SPDX-License-Identifier: Apache-2.0
//
// Envelopes against the vectors of the DSSE repository (protocol.md, and testvectors/vectors.json
// with the Ed25519 keys of RFC 8032's tests 1 and 2), and every way that one can be wrong.
#include "audit/evidence/dsse.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr char kStatement[] = R"({"_type":"https://in-toto.io/Statement/v1"})";
constexpr char kStatementBase64[] = "eyJfdHlwZSI6Imh0dHBzOi8vaW4tdG90by5pby9TdGF0ZW1lbnQvdjEifQ==";

Ed25519PrivateKey KeyA() {
  const std::string seed =
      HexDecode("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").value();
  return Ed25519PrivateKey::FromSeed(AsBytes(seed)).value();
}
Ed25519PublicKey KeyB() {
  return Ed25519PublicKey::FromHex(
             "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
      .value();
}

bool Verifies(const DsseEnvelope& envelope, size_t which, const Ed25519PublicKey& key) {
  return VerifyEd25519(key, AsBytes(DssePae(envelope.payload_type, envelope.payload)),
                       AsBytes(envelope.signatures[which].bytes));
}

TEST(Dsse, PaeOfProtocolMd) {
  EXPECT_EQ(DssePae("http://example.com/HelloWorld", "hello world"),
            "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
  EXPECT_EQ(DssePae("", ""), "DSSEv1 0  0 ");
}

TEST(Dsse, ReadsTheEnvelopeOfProtocolMd) {
  const auto envelope = ParseDsse(
      R"({"payload": "aGVsbG8gd29ybGQ=",
 "payloadType": "http://example.com/HelloWorld",
 "signatures": [{"sig": "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="}]})");
  ASSERT_THAT(envelope, IsOk());
  EXPECT_EQ(envelope->payload, "hello world");
  EXPECT_EQ(envelope->payload_type, "http://example.com/HelloWorld");
  ASSERT_EQ(envelope->signatures.size(), 1u);
  EXPECT_EQ(envelope->signatures[0].key_id, "");
  EXPECT_EQ(envelope->signatures[0].bytes.size(), 64u);
}

struct Vector {
  absl::string_view id;
  absl::string_view payload;  // as base64
  absl::string_view type;
  absl::string_view signature;
  bool valid;
};
// "payload-type-swapped" has the signature over another type.
constexpr Vector kVectors[] = {
    {"single-signature", kStatementBase64, "application/vnd.in-toto+json",
     "2WAfaHm5jluo0w+0rk8uVkluELJYWjSmU9x7EUzx+AyteDGJ4/nqyJXfmAUVFIAoQafWm7AxBZNw5M9ixNHiCA==",
     true},
    {"url-safe-base64", "-_-_Pj8=", "application/vnd.in-toto+json",
     "P-_KHICeR7tI6S_YyejJTRtrXhcQyQ2LYPaL8h90KjC9qN8HU_svOQ6TuDOT1HIrsGW886DbWNWcCmX5twLrAw==",
     true},
    {"payload-type-swapped", kStatementBase64, "application/vnd.example.other+json",
     "2WAfaHm5jluo0w+0rk8uVkluELJYWjSmU9x7EUzx+AyteDGJ4/nqyJXfmAUVFIAoQafWm7AxBZNw5M9ixNHiCA==",
     false},
    {"non-ascii-payload-type", kStatementBase64, "application/vnd.ex\xc3\xa4mple+json",
     "xmSk/ug66ysT7ayhkCIjhAq42zgZXSsEWuzUaNL7w2eGAdF/NU6/fRXPtmfN+5DNSAs5/i2lUnHjbbjPsu0tAw==",
     true},
    {"empty-payload", "", "application/vnd.in-toto+json",
     "gSggCAaTLTYyRH6FIDBem6meyIynsYy8RTHVzwx9tnTb7Bg/1jMWnuVgI/gffqmbsC2VX5/jHfkkDqsj7CDbDg==",
     true}};

TEST(Dsse, VectorsOfTheRepository) {
  for (const Vector& v : kVectors) {
    const auto envelope =
        ParseDsse(absl::StrCat(R"({"payload":")", v.payload, R"(","payloadType":")", v.type,
                               R"(","signatures":[{"sig":")", v.signature, R"(","keyid":"A"}]})"));
    ASSERT_THAT(envelope, IsOk()) << v.id;
    EXPECT_EQ(envelope->signatures[0].key_id, "A");
    EXPECT_EQ(Verifies(*envelope, 0, KeyA().public_key()), v.valid) << v.id;
    EXPECT_FALSE(Verifies(*envelope, 0, KeyB())) << v.id;
  }
  // "empty-payload-type": nobody supports one.
  EXPECT_THAT(ParseDsse(R"({"payload":"","payloadType":"","signatures":[{"sig":""}]})"),
              StatusIs(kDataLoss, HasSubstr("payload type")));
}

TEST(Dsse, SignsAsTheVectorSays) {
  const Ed25519PrivateKey key = KeyA();
  const Ed25519PrivateKey* const keys[] = {&key};
  const DsseEnvelope envelope = SignDsse("application/vnd.in-toto+json", kStatement, keys);
  EXPECT_EQ(Base64Encode(AsBytes(envelope.signatures[0].bytes)), kVectors[0].signature);
  EXPECT_EQ(envelope.signatures[0].key_id, key.public_key().Id().ToHex());
  const std::string json = EncodeDsse(envelope);
  EXPECT_EQ(json, absl::StrCat(R"({"payload":")", kStatementBase64,
                               R"(","payloadType":"application/vnd.in-toto+json","signatures":[{)",
                               R"("keyid":")", key.public_key().Id().ToHex(), R"(","sig":")",
                               kVectors[0].signature, R"("}]})"));
  EXPECT_THAT(ParseDsse(json), IsOkAndHolds(envelope));
}

TEST(Dsse, PassesOverWhatItDoesNotKnow) {
  const auto envelope = ParseDsse(
      R"( {"x":{"payload":"no","signatures":[{"sig":"bm8="}]},"payload":"AQ","y":[["sig",1],{"sig":2}],
      "signatures":[{"keyid":"k","sig":"Ag==","cert":{"sig":"no","keyid":[]},"z":[{"sig":"no"}]}],
      "payloadType":"t","w":null} )");
  ASSERT_THAT(envelope, IsOk());
  EXPECT_EQ(*envelope, (DsseEnvelope{.payload_type = "t",
                                     .payload = "\x01",
                                     .signatures = {{.key_id = "k", .bytes = "\x02"}}}));
}

TEST(Dsse, EndsWhereItsTextEnds) {
  const std::string good = R"({"payload":"AQ==","payloadType":"t","signatures":[{"sig":"Ag=="}]})";
  ASSERT_THAT(ParseDsse(good), IsOk());
  for (const char* const more : {"x", "{}", ","}) {
    EXPECT_THAT(ParseDsse(good + more), StatusIs(absl::StatusCode::kDataLoss)) << more;
    EXPECT_THAT(ParseDsse(good + '\0' + more), StatusIs(absl::StatusCode::kDataLoss)) << more;
  }
  EXPECT_THAT(ParseDsse(good + '\0'), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(Dsse, RefusesOtherForms) {
  const std::string deep = std::string(40, '[') + std::string(40, ']');
  std::string many;
  for (size_t i = 0; i <= kDsseSignaturesMax; ++i) many += R"({"sig":"Ag=="},)";
  many.pop_back();
  const std::string bad[] = {
      "", "null", "1", "\"payload\"", "[]", "{}",
      "{\"payload\":", R"([{"payload":"AQ==","payloadType":"t","signatures":[{"sig":"Ag=="}]}])",
      R"({"payload":"AQ==","payloadType":"t","signatures":[]})",
      R"({"payload":"AQ==","payloadType":"t","signatures":[{}]})",
      R"({"payload":"AQ==","payloadType":"t","signatures":{"sig":"Ag=="}})",
      R"({"payload":"AQ==","payloadType":"t","signatures":["Ag=="]})",
      R"({"payload":"AQ==","payloadType":"t","signatures":[["sig"]]})",
      R"({"payload":"AQ==","payloadType":"t","signatures":[[{"sig":"Ag=="}]]})",
      R"({"payload":"AQ==","payloadType":"t","signatures":[1]})",
      R"({"payload":"AQ==","payloadType":"t","signatures":1})",
      R"({"payload":"AQ==","payloadType":"t","signatures":[{"sig":1}]})",
      R"({"payload":"AQ==","payloadType":"t","signatures":[{"sig":["Ag=="]}]})",
      R"({"payload":"AQ==","payloadType":"t","signatures":[{"sig":"Ag==","keyid":1}]})",
      R"({"payload":"A!==","payloadType":"t","signatures":[{"sig":"Ag=="}]})",
      R"({"payload":"AQ==","payloadType":"t","signatures":[{"sig":"A"}]})",
      R"({"payload":1,"payloadType":"t","signatures":[{"sig":"Ag=="}]})",
      R"({"payload":{"x":"AQ=="},"payloadType":"t","signatures":[{"sig":"Ag=="}]})",
      R"({"payload":"AQ==","payloadType":null,"signatures":[{"sig":"Ag=="}]})",
      R"({"payload":"AQ==","signatures":[{"sig":"Ag=="}]})",
      R"({"payloadType":"t","signatures":[{"sig":"Ag=="}]})",
      R"({"payload":"AQ==","payloadType":"t"})",
      // Twice, which readers take differently.
      R"({"payload":"AQ==","payload":"Ag==","payloadType":"t","signatures":[{"sig":"Ag=="}]})",
      R"({"payload":"AQ==","payloadType":"t","payloadType":"t","signatures":[{"sig":"Ag=="}]})",
      R"({"payload":"AQ==","payloadType":"t","signatures":[{"sig":"Ag=="}],"signatures":[]})",
      R"({"payload":"AQ==","payloadType":"t","signatures":[{"sig":"Ag==","sig":"Ag=="}]})",
      R"({"payload":"AQ==","payloadType":"t","signatures":[{"sig":"Ag=="}]} x)",
      absl::StrCat(R"({"x":)", deep,
                   R"(,"payload":"AQ==","payloadType":"t","signatures":[{"sig":"Ag=="}]})"),
      absl::StrCat(R"({"payload":"AQ==","payloadType":"t","signatures":[)", many, "]}"),
      "{\"payload\":\"AQ==\",\"payloadType\":\"\xff\",\"signatures\":[{\"sig\":\"Ag==\"}]}"};
  for (const std::string& json : bad) {
    EXPECT_THAT(ParseDsse(json), StatusIs(kDataLoss)) << json;
  }
}

TEST(Dsse, SizesAreThoseOfTheEncoding) {
  for (size_t payload = 0; payload < 8; ++payload) {
    for (size_t signatures = 0; signatures < 4; ++signatures) {
      DsseEnvelope envelope = {
          .payload_type = "type/x+json", .payload = std::string(payload, '\xff'), .signatures = {}};
      for (size_t i = 0; i < signatures; ++i) {
        envelope.signatures.push_back(
            {.key_id = std::string(i, 'a'), .bytes = std::string(i, 'b')});
      }
      EXPECT_EQ(DsseBytes(envelope), EncodeDsse(envelope).size()) << payload << " " << signatures;
    }
  }
}

}  // namespace
}  // namespace lockstep::audit
