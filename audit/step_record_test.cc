// SPDX-License-Identifier: Apache-2.0
//
// The record's bytes against the offsets of docs/step_record.md, and the chain against its formula.
#include "audit/step_record.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "audit/testing/digests.h"
#include "base/bytes.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

StepRecord Sample() {
  StepRecord r;
  r.step = 0x0102030405060708;
  r.tokens_before = 0x1112131415161718;
  r.tokens = 0x2122232425262728;
  r.updates = 0x3132333435363738;
  r.parameters = Filled(0xa1);
  r.first_moment = Filled(0xa2);
  r.second_moment = Filled(0xa3);
  r.gradient = Filled(0xa4);
  r.windows = Filled(0xa5);
  r.transcript = Filled(0xa6);
  r.cursor = Filled(0xa7);
  r.loss = 1.0f;
  r.z_loss = -2.0f;
  r.gradient_norm = std::numeric_limits<float>::infinity();
  r.learning_rate = 0.5f;
  r.outcome = StepOutcome::kSkippedSpike;
  r.spike = {.skips_left = 0x41424344, .events = 0x51525354, .events_since = 0x6162636465666768};
  r.previous_chain = Filled(0xa8);
  return r;
}

// What the table of docs/step_record.md says of the sample, byte by byte.
std::string SampleBytes() {
  std::string bytes;
  const auto little_endian = [&](uint64_t value, int width) {
    for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i));
  };
  bytes += "LKSR";                       //   0
  little_endian(1, 4);                   //   4
  little_endian(0x0102030405060708, 8);  //   8
  little_endian(0x1112131415161718, 8);  //  16
  little_endian(0x2122232425262728, 8);  //  24
  little_endian(0x3132333435363738, 8);  //  32
  for (int fill = 0xa1; fill <= 0xa7; ++fill) bytes += std::string(32, static_cast<char>(fill));
  little_endian(0x3f800000, 4);          // 264
  little_endian(0xc0000000, 4);          // 268
  little_endian(0x7f800000, 4);          // 272
  little_endian(0x3f000000, 4);          // 276
  little_endian(2, 4);                   // 280
  little_endian(0x41424344, 4);          // 284
  little_endian(0x51525354, 4);          // 288
  little_endian(0, 4);                   // 292
  little_endian(0x6162636465666768, 8);  // 296
  bytes += std::string(32, '\xa8');      // 304
  return bytes;
}

TEST(StepRecord, LiesAsDocumented) {
  EXPECT_EQ(EncodeStepRecord(Sample()), SampleBytes());
  EXPECT_EQ(SampleBytes().size(), kStepRecordBytes);
}

TEST(StepRecord, DecodesToItself) {
  EXPECT_THAT(DecodeStepRecord(AsBytes(SampleBytes())), IsOkAndHolds(Sample()));
}

TEST(StepRecord, KeepsEveryBitOfItsFloats) {
  for (const uint32_t bits : {0x7fc00000u, 0x7f800001u, 0xffffffffu, 0x80000000u, 0x00000001u}) {
    StepRecord r = Sample();
    r.loss = std::bit_cast<float>(bits);
    const auto decoded = DecodeStepRecord(AsBytes(EncodeStepRecord(r)));
    ASSERT_THAT(decoded, IsOk());
    EXPECT_EQ(std::bit_cast<uint32_t>(decoded->loss), bits);
    EXPECT_EQ(*decoded, r) << "a NaN equals itself";
  }
  StepRecord zero = Sample();
  zero.loss = 0.0f;
  StepRecord minus_zero = Sample();
  minus_zero.loss = -0.0f;
  EXPECT_FALSE(zero == minus_zero);
}

TEST(StepRecord, RefusesOtherLengths) {
  const std::string bytes = SampleBytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(DecodeStepRecord(AsBytes(bytes.substr(0, size))),
                StatusIs(kDataLoss, HasSubstr(absl::StrCat("found ", size))));
  }
  EXPECT_THAT(DecodeStepRecord(AsBytes(bytes + "x")), StatusIs(kDataLoss, HasSubstr("found 337")));
}

// Every byte is either refused or part of what is read, so that one record has one encoding.
TEST(StepRecord, EveryByteCounts) {
  const std::string bytes = SampleBytes();
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 1);
    const auto decoded = DecodeStepRecord(AsBytes(other));
    if (decoded.ok()) {
      EXPECT_FALSE(*decoded == Sample()) << at;
      EXPECT_EQ(EncodeStepRecord(*decoded), other) << at;
      continue;
    }
    EXPECT_TRUE(at < 8 || (at >= 281 && at < 284) || (at >= 292 && at < 296)) << at;
  }
}

TEST(StepRecord, SaysWhereItIsWrong) {
  const auto with = [](size_t at, char value) {
    std::string bytes = SampleBytes();
    bytes[at] = value;
    return DecodeStepRecord(AsBytes(bytes)).status();
  };
  EXPECT_THAT(with(3, 'r'), StatusIs(kDataLoss, HasSubstr("offset 0")));
  EXPECT_THAT(with(4, 2), StatusIs(kDataLoss, AllOf(HasSubstr("offset 4"), HasSubstr("found 2"))));
  EXPECT_THAT(with(280, 4),
              StatusIs(kDataLoss, AllOf(HasSubstr("offset 280"), HasSubstr("found 4"))));
  EXPECT_THAT(with(292, 1),
              StatusIs(kDataLoss, AllOf(HasSubstr("offset 292"), HasSubstr("found 1"))));
}

TEST(Chain, FollowsItsFormula) {
  const Digest record = Sha256(AsBytes(SampleBytes()));
  EXPECT_EQ(ChainAfter(Sample()), Sha256({AsBytes("lockstep chain 1"), ByteSpan(Filled(0xa8).bytes),
                                          ByteSpan(record.bytes)}));
  const Digest genesis = GenesisChain(Filled(1), Filled(2), Filled(3), Filled(4), Filled(5));
  std::string message = "lockstep chain genesis 1";
  for (char fill = 1; fill <= 5; ++fill) message += std::string(32, fill);
  EXPECT_EQ(genesis, Sha256(AsBytes(message)));
}

// The worked example of docs/step_record.md, computed with Python's hashlib.
TEST(Chain, GivesTheWorkedExample) {
  EXPECT_EQ(Sha256(AsBytes(SampleBytes())).ToHex(),
            "bdabc35eb61ccfceb08cb46f63463785a13cc18b08d6a9ab41f1be5f23bed40d");
  EXPECT_EQ(ChainAfter(Sample()).ToHex(),
            "c2cfdb6e9b2b19a19036081dcce43f5731ab12fcc3f40bf532962b5883642ff9");
}

}  // namespace
}  // namespace lockstep::audit
