// SPDX-License-Identifier: Apache-2.0
//
// RFC 8032's vectors, the keys that are refused, signatures that are not quite right (cases of
// C2SP's CCTV and of Wycheproof), and key files.
#include "base/ed25519.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string Bytes(absl::string_view hex) { return HexDecode(hex).value(); }

struct Vector {
  absl::string_view seed;
  absl::string_view key;
  absl::string_view message;
  absl::string_view signature;
};
// RFC 8032 section 7.1, tests 1 to 3.
constexpr Vector kVectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
     "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
     "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
     "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"}};

TEST(Ed25519, SignsAndVerifiesAsRfc8032) {
  for (const Vector& v : kVectors) {
    const auto key = Ed25519PrivateKey::FromSeed(AsBytes(Bytes(v.seed)));
    ASSERT_THAT(key, IsOk());
    EXPECT_EQ(key->public_key().ToHex(), v.key);
    EXPECT_THAT(Ed25519PublicKey::FromHex(v.key), IsOkAndHolds(key->public_key()));
    const std::string message = Bytes(v.message);
    const Ed25519Signature signature = key->Sign(AsBytes(message));
    EXPECT_EQ(HexEncode(signature), v.signature);
    EXPECT_TRUE(VerifyEd25519(key->public_key(), AsBytes(message), signature));
  }
}

TEST(Ed25519, EveryBitMatters) {
  const Vector& v = kVectors[2];
  const Ed25519PublicKey key = Ed25519PublicKey::FromHex(v.key).value();
  for (int part = 0; part < 3; ++part) {
    const size_t bits = part == 0 ? 512 : part == 1 ? 16 : 256;
    for (size_t bit = 0; bit < bits; ++bit) {
      std::string signature = Bytes(v.signature);
      std::string message = Bytes(v.message);
      Ed25519PublicKey other = key;
      uint8_t* const bytes = part == 0   ? reinterpret_cast<uint8_t*>(signature.data())
                             : part == 1 ? reinterpret_cast<uint8_t*>(message.data())
                                         : other.bytes.data();
      bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      EXPECT_FALSE(VerifyEd25519(other, AsBytes(message), AsBytes(signature)))
          << part << " " << bit;
    }
  }
}

TEST(Ed25519, TakesSignaturesOfOneLength) {
  const Vector& v = kVectors[2];
  const Ed25519PublicKey key = Ed25519PublicKey::FromHex(v.key).value();
  const std::string signature = Bytes(v.signature);
  for (size_t size = 0; size < signature.size(); ++size) {
    EXPECT_FALSE(VerifyEd25519(key, AsBytes(Bytes(v.message)), AsBytes(signature.substr(0, size))));
  }
  EXPECT_FALSE(VerifyEd25519(key, AsBytes(Bytes(v.message)), AsBytes(signature + '\0')));
}

// Wycheproof, "signature malleability": S plus the group's order fits the equation too.
TEST(Ed25519, RefusesSNotReduced) {
  const std::string order =
      Bytes("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
  for (const Vector& v : kVectors) {
    std::string signature = Bytes(v.signature);
    int carry = 0;
    for (size_t i = 0; i < 32; ++i) {
      const int sum =
          static_cast<uint8_t>(signature[32 + i]) + static_cast<uint8_t>(order[i]) + carry;
      signature[32 + i] = static_cast<char>(sum);
      carry = sum >> 8;
    }
    ASSERT_EQ(carry, 0);
    EXPECT_FALSE(VerifyEd25519(Ed25519PublicKey::FromHex(v.key).value(), AsBytes(Bytes(v.message)),
                               AsBytes(signature)));
  }
}

// All encodings of the small-order points, as C2SP's CCTV lists them (ed25519/README.md).
constexpr absl::string_view kSmallOrder[] = {
    "0000000000000000000000000000000000000000000000000000000000000000",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"};

TEST(Ed25519, RefusesKeysOfSmallOrder) {
  // R the identity and S zero: with such a key it may fit any message.
  const std::string signature = Bytes(absl::StrCat(kSmallOrder[4], std::string(64, '0')));
  for (const absl::string_view hex : kSmallOrder) {
    EXPECT_THAT(Ed25519PublicKey::FromHex(hex), StatusIs(kInvalid, HasSubstr("refused"))) << hex;
    Ed25519PublicKey forced;
    forced.bytes = Digest::FromHex(hex)->bytes;
    for (const char* message : {"", "a", "b", "c", "d", "e", "f", "g"}) {
      EXPECT_FALSE(VerifyEd25519(forced, AsBytes(message), AsBytes(signature))) << hex;
    }
  }
  EXPECT_FALSE(VerifyEd25519(Ed25519PublicKey(), AsBytes("a"), AsBytes(signature)));
}

TEST(Ed25519, RefusesEveryYThatIsNotReduced) {
  for (const int sign : {0x7f, 0xff}) {
    for (int low = 0xe8; low <= 0xff; ++low) {
      std::string bytes(32, '\xff');
      bytes[0] = static_cast<char>(low);
      bytes[31] = static_cast<char>(sign);
      const auto key = Ed25519PublicKey::FromBytes(AsBytes(bytes));
      // 0xec is p - 1, of order 2.
      EXPECT_EQ(key.ok(), low < 0xec) << low;
    }
  }
}

TEST(Ed25519, TakesKeysAsTheyAreWritten) {
  const std::string hex(kVectors[0].key);
  EXPECT_THAT(Ed25519PublicKey::FromHex(hex.substr(1)), StatusIs(kInvalid));
  EXPECT_THAT(Ed25519PublicKey::FromHex(hex + "0"), StatusIs(kInvalid));
  EXPECT_THAT(Ed25519PublicKey::FromHex("D" + hex.substr(1)), StatusIs(kInvalid));
  EXPECT_THAT(Ed25519PublicKey::FromBytes(AsBytes(Bytes(hex).substr(1))), StatusIs(kInvalid));
  EXPECT_THAT(Ed25519PrivateKey::FromSeed(AsBytes("short")), StatusIs(kInvalid));
  EXPECT_EQ(Ed25519PublicKey::FromHex(hex)->Id(), Sha256(AsBytes(Bytes(hex))));
}

struct EdgeCase {
  int number;
  absl::string_view signature;
  absl::string_view message;
  bool valid;
};
// Of C2SP's CCTV, ed25519/ed25519vectors.json, with the one key there that has a part of small
// order and a large one. What verifies is what its README says of OpenSSL: all but a residue of
// small order (4, 6, 16, 28) and an R that is not canonical (16, 17).
constexpr EdgeCase kEdgeCases[] = {{4,
                                    "00000000000000000000000000000000000000000000000000000000000000"
                                    "005e176f12cfb0d4e6eb6929b19ae4c998"
                                    "ef05c1c2cf628a9b1fa1c21312627108",
                                    "ed25519vectors 7", false},
                                   {5,
                                    "00000000000000000000000000000000000000000000000000000000000000"
                                    "009472a69cd9a701a50d130ed52189e245"
                                    "5b23767db52cacb8716fb896ffeeac09",
                                    "ed25519vectors 3", true},
                                   {6,
                                    "36684ea91032ba5b1dbab2d02f4debc74c3327f2b3802e2e4d371aa42b12b5"
                                    "6bc02e2b9e63e385c058bf62b14b3a2b29"
                                    "ccefe8e38ddb536bc3f9865320a3d801",
                                    "ed25519vectors 10", false},
                                   {7,
                                    "36684ea91032ba5b1dbab2d02f4debc74c3327f2b3802e2e4d371aa42b12b5"
                                    "6bbbfd00bd9c259d8d222d15e67a3d8228"
                                    "585050dbb9b9585be20d8fadc721da03",
                                    "ed25519vectors", true},
                                   {16,
                                    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
                                    "7f1cb421dfbd92aa6c30d550bff53c81cf"
                                    "650ace6deb96a8ec22d2fef84dbbe20b",
                                    "ed25519vectors 6", false},
                                   {17,
                                    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
                                    "7fad7a355469b5c87e550469f6b2de409e"
                                    "e723acd584bf35f86b80c384e8ceb702",
                                    "ed25519vectors 3", false},
                                   {28,
                                    "b797b156efcd45a4e2454d2fd0b21438b3ccd80d4c7fd1d1b2c8e55bd4ed4a"
                                    "94639734cf989e314e9e049fc01a3864d1"
                                    "91fed8f231b12fee6fa50aaadba44b0e",
                                    "ed25519vectors 9", false},
                                   {29,
                                    "b797b156efcd45a4e2454d2fd0b21438b3ccd80d4c7fd1d1b2c8e55bd4ed4a"
                                    "94732d9e0279fe001d90327efa319816e3"
                                    "e4506b78432b8b4e1f2fdc4b960d700f",
                                    "ed25519vectors 2", true}};

TEST(Ed25519, DecidesEdgeCasesAsOpenSslDoes) {
  const auto key =
      Ed25519PublicKey::FromHex("10eb7c3acfb2bed3e0d6ab89bf5a3d6afddd1176ce4812e38d9fd485058fdb1f");
  ASSERT_THAT(key, IsOk());
  for (const EdgeCase& c : kEdgeCases) {
    EXPECT_EQ(VerifyEd25519(*key, AsBytes(c.message), AsBytes(Bytes(c.signature))), c.valid)
        << c.number;
  }
}

// Of Wycheproof (C2SP/wycheproof, testvectors_v1/ed25519_test.json), by their tcId; those whose
// signatures are made of others' parts or of a few special values are put together here.
constexpr absl::string_view kWycheproofKey =
    "7d4d0e7f6153a69b6242b522abbee685fda4420f8834b108c3bdae369ef549fa";
struct WycheproofCase {
  int number;
  absl::string_view message;
  absl::string_view signature;
};
constexpr WycheproofCase kWycheproofValid[] = {
    {1, "",
     "d4fbdb52bfa726b44d1786a8c0d171c3e62ca83c9e5bbe63de0bb2483f8fd6cc"
     "1429ab72cafc41ab56af02ff8fcc43b99bfe4c7ae940f60f38ebaa9d311c4007"},
    {2, "78",
     "d80737358ede548acb173ef7e0399f83392fe8125b2ce877de7975d8b726ef5b"
     "1e76632280ee38afad12125ea44b961bf92f1178c9fa819d020869975bcbe109"},
    {3, "54657374",
     "7c38e026f29e14aabd059a0f2db8b0cd783040609a8be684db12f82a27774ab0"
     "7a9155711ecfaf7f99f277bad0c6ae7e39d4eef676573336a5c51eb6f946b30d"},
    {4, "48656c6c6f",
     "1c1ad976cbaae3b31dee07971cf92c928ce2091a85f5899f5e11ecec90fc9f8e"
     "93df18c5037ec9b29c07195ad284e63d548cd0a6fe358cc775bd6c1608d2c905"},
    {5, "313233343030",
     "657c1492402ab5ce03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281c2b"
     "f0cf5b3a289976458a1be6277a5055545253b45b07dcc1abd96c8b989c00f301"}};
// R changed, and S such that the equation leads to the R from before: they fit if not every bit of
// R is compared.
constexpr WycheproofCase kWycheproofOtherR[] = {
    {42, "313233343030",
     "647c1492402ab5ce03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281c2b"
     "1d125e5538f38afbcc1c84e489521083041d24bc6240767029da063271a1ff0c"},
    {43, "313233343030",
     "677c1492402ab5ce03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281c2b"
     "c108ca4b87a49c9ed2cf383aecad8f54a962b2899da891e12004d7993a627e01"},
    {45, "313233343030",
     "e57c1492402ab5ce03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281c2b"
     "bb3eb51cd98dddb235a5f46f2bded6af184a58d09cce928bda43f41d69118a03"},
    {46, "313233343030",
     "657d1492402ab5ce03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281c2b"
     "cd237dda9a116501f67a5705a854b9adc304f34720803a91b324f2c13e0f5a09"},
    {48, "313233343030",
     "657c1412402ab5ce03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281c2b"
     "7fd2ac7da14afffcceeb13f2a0d6b887941cb1a5eb57a52f3cb131a16cce7b0e"},
    {49, "313233343030",
     "657c1492412ab5ce03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281c2b"
     "7373ba13ebbef99cd2a8ead55ce735c987d85a35320925a8e871702dc7c5c40d"},
    {50, "313233343030",
     "657c1492402ab54e03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281c2b"
     "d35bd331c03f0855504ca1cab87b83c36a028425a3cf007ede4f4254c261cb00"},
    {51, "313233343030",
     "657c1492402ab5ce02e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281c2b"
     "cb35101f73cf467deac8c1a03b6c3dc35af544132734b7e57ab20c89b2e4750d"},
    {53, "313233343030",
     "657c1492402ab5ce03e2c3a7f0384d851b9cf3570f1207fc78c1bcc98c281c2b"
     "b978c866187ffb1cc7b29a0b4045aefc08768df65717194ff0c6e63f4dea0d02"},
    {54, "313233343030",
     "657c1492402ab5ce03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281d2b"
     "0576ecf8eaf675f00f3dfbe19f75b83b7607a6c96414f6821af920a2498d0305"},
    {56, "313233343030",
     "657c1492402ab5ce03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281c2a"
     "63950c85cd6dc96364e768de50ff7732b538f8a0b1615d799190ab600849230e"},
    {57, "313233343030",
     "657c1492402ab5ce03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281c0b"
     "543bd3da0a56a8c9c152f59c9fec12f31fa66434d48b817b30d90cb4efa8b501"},
    {58, "313233343030",
     "657c1492402ab5ce03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281c6b"
     "8da07efd07a6dafb015ed6a32fe136319a972ffbc341f3a0beae97ccf8136505"},
    {59, "313233343030",
     "657c1492402ab5ce03e2c3a7f0384d051b9cf3570f1207fc78c1bcc98c281cab"
     "227aedf259f910f0f3a759a335062665217925d019173b88917eae294f75d40f"},
    {60, "313233343030",
     "0000000000000000000000000000000000000000000000000000000000000000"
     "e0b8e7770d51c7a36375d006c5bffd6af43ff54aaf47e4330dc118c71d61ec02"},
    {61, "313233343030",
     "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
     "463a1908382e7eb7693acef9884f7cf931a215e0791876be22c631a59881fd0e"},
    {62, "313233343030",
     "9a83eb6dbfd54a31fc1d3c580fc7b2fae4630ca8f0edf803873e433673d7e3d4"
     "0e94254586cb6188c5386c3febed477cb9a6cb29e3979adc4cb27cf5278fb70a"}};
// S of number 3 plus L, 2L, 4L, 8L, 2^253, 2^254, 2^255 and 2^255 - 19.
constexpr absl::string_view kWycheproofOtherS[] = {
    "67654bce3832c2d76f8f6f5dafc08d9339d4eef676573336a5c51eb6f946b31d",
    "5439412b5395d42f462c67008eba6ca839d4eef676573336a5c51eb6f946b32d",
    "2ee12ce5875bf9dff26556464bae2ad239d4eef676573336a5c51eb6f946b34d",
    "e2300459f1e742404cd934d2c595a6253ad4eef676573336a5c51eb6f946b38d",
    "7a9155711ecfaf7f99f277bad0c6ae7e39d4eef676573336a5c51eb6f946b32d",
    "7a9155711ecfaf7f99f277bad0c6ae7e39d4eef676573336a5c51eb6f946b34d",
    "7a9155711ecfaf7f99f277bad0c6ae7e39d4eef676573336a5c51eb6f946b38d",
    "679155711ecfaf7f99f277bad0c6ae7e39d4eef676573336a5c51eb6f946b38d"};

TEST(Ed25519, DecidesAsWycheproofSays) {
  const auto key = Ed25519PublicKey::FromHex(kWycheproofKey);
  ASSERT_THAT(key, IsOk());
  const auto verify = [&](absl::string_view message, absl::string_view signature) {
    return VerifyEd25519(*key, AsBytes(Bytes(message)), AsBytes(Bytes(signature)));
  };
  for (const WycheproofCase& c : kWycheproofValid) {
    EXPECT_TRUE(verify(c.message, c.signature)) << c.number;
  }
  // 10 to 29.
  const std::string zero(64, '0');
  const std::string one = absl::StrCat("01", std::string(62, '0'));
  const std::string order = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
  const std::string order_less_one = absl::StrCat("ec", order.substr(2));
  const std::string prime = absl::StrCat("ed", std::string(60, 'f'), "7f");
  for (const std::string& r : {zero, one, order, prime}) {
    for (const std::string& s : {zero, one, order_less_one, order, prime}) {
      EXPECT_FALSE(verify("3f", r + s)) << r << s;
    }
  }
  // 30 to 37: cut off, or with something more.
  const std::string good(kWycheproofValid[2].signature);
  const std::string r = good.substr(0, 64);
  const std::string s = good.substr(64);
  for (const std::string& other :
       {std::string(), r, good.substr(0, 124), good + "2020", absl::StrCat(good, kWycheproofKey),
        "00" + good, absl::StrCat(r, "00", s), good + "00"}) {
    EXPECT_FALSE(verify(kWycheproofValid[2].message, other)) << other;
  }
  for (const WycheproofCase& c : kWycheproofOtherR) {
    EXPECT_FALSE(verify(c.message, c.signature)) << c.number;
  }
  // 63 to 70.
  for (const absl::string_view other : kWycheproofOtherS) {
    EXPECT_FALSE(verify(kWycheproofValid[2].message, absl::StrCat(r, other))) << other;
  }
  // 84: S just below the bound.
  EXPECT_TRUE(VerifyEd25519(
      Ed25519PublicKey::FromHex("100fdf47fb94f1536a4f7c3fda27383fa03375a8f527c537e6f1703c47f94f86")
          .value(),
      AsBytes(Bytes("124e583f8b8eca58bb29c271b41d36986bbc45541f8e51f9cb0133eca447601e")),
      AsBytes(Bytes("dac119d6ca87fc59ae611c157048f4d4fc932a149dbe20ec6effd1436abf83ea"
                    "05c7df0fef06147241259113909bc71bd3c53ba4464ffcad3c0968f2ffffff0f"))));
}

TEST(Ed25519, GeneratesDifferentKeys) {
  const auto a = Ed25519PrivateKey::Generate();
  const auto b = Ed25519PrivateKey::Generate();
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  EXPECT_NE(a->public_key(), b->public_key());
  const Ed25519Signature signature = a->Sign(AsBytes("x"));
  EXPECT_TRUE(VerifyEd25519(a->public_key(), AsBytes("x"), signature));
  EXPECT_FALSE(VerifyEd25519(b->public_key(), AsBytes("x"), signature));
}

std::string Path(absl::string_view name) {
  return absl::StrCat(::testing::TempDir(), "/ed25519_test.", getpid(), ".", name);
}

TEST(Ed25519KeyFile, IsMadeOnceAndReadBack) {
  const std::string path = Path("made");
  const auto made = Ed25519PrivateKey::Create(path);
  ASSERT_THAT(made, IsOk());
  struct stat status = {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto loaded = Ed25519PrivateKey::Load(path);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->public_key(), made->public_key());
  EXPECT_EQ(loaded->Sign(AsBytes("m")), made->Sign(AsBytes("m")));
  EXPECT_THAT(Ed25519PrivateKey::Create(path), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(ReadFile(path, 4096), IsOkAndHolds(HasSubstr("BEGIN PRIVATE KEY")));
  unlink(path.c_str());
}

TEST(Ed25519KeyFile, IsTheOwnersOnly) {
  const std::string path = Path("open");
  ASSERT_THAT(Ed25519PrivateKey::Create(path), IsOk());
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0601}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_THAT(Ed25519PrivateKey::Load(path),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("chmod 600")));
  }
  unlink(path.c_str());
}

TEST(Ed25519KeyFile, HoldsOneKeyOfThisKind) {
  const std::string path = Path("other");
  EXPECT_THAT(Ed25519PrivateKey::Load(path), StatusIs(absl::StatusCode::kNotFound));
  const std::string texts[] = {
      "", "secret words",
      // An X25519 key (RFC 8410 gives the form; the bytes are 32 times 0x01).
      absl::StrCat("-----BEGIN PRIVATE KEY-----\n",
                   Base64Encode(AsBytes(Bytes("302e020100300506032b656e04220420") +
                                        std::string(32, '\x01'))),
                   "\n-----END PRIVATE KEY-----\n")};
  for (const std::string& text : texts) {
    ASSERT_THAT(WriteFileDurably(path, AsBytes(text), 0600), IsOk());
    EXPECT_THAT(Ed25519PrivateKey::Load(path),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("Ed25519"), Not(HasSubstr("secret")))));
  }
  // RFC 8410 section 10.3.
  ASSERT_THAT(
      WriteFileDurably(path,
                       AsBytes("-----BEGIN PRIVATE KEY-----\n"
                               "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
                               "-----END PRIVATE KEY-----\n"),
                       0600),
      IsOk());
  const auto key = Ed25519PrivateKey::Load(path);
  ASSERT_THAT(key, IsOk());
  EXPECT_EQ(Base64Encode(key->public_key().bytes), "Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=");
  unlink(path.c_str());
}

}  // namespace
}  // namespace lockstep
