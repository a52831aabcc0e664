// SPDX-License-Identifier: Apache-2.0
//
// A leaf's bytes against docs/step_record.md, every way that they can be wrong, and the root.
#include "audit/transcript.h"

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "audit/testing/digests.h"
#include "base/bytes.h"
#include "base/merkle.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

TranscriptLeaf Sample(uint32_t rank, uint32_t micro_batch) {
  return {.rank = rank,
          .micro_batch = micro_batch,
          .losses = Filled(0xb1),
          .z_losses = Filled(0xb2),
          .residual = {Filled(0xc0), Filled(0xc1)},
          .dresidual = {Filled(0xd0), Filled(0xd1)}};
}

std::string SampleBytes() {
  std::string bytes(8, '\0');
  bytes[0] = 3;
  bytes[4] = 5;
  for (const char fill : {'\xb1', '\xb2'}) bytes += std::string(32, fill);
  bytes += std::string("\x02\0\0\0", 4);
  for (const char fill : {'\xc0', '\xc1', '\xd0', '\xd1'}) bytes += std::string(32, fill);
  return bytes;
}

TEST(TranscriptLeaf, LiesAsDocumented) {
  EXPECT_EQ(EncodeTranscriptLeaf(Sample(3, 5)), SampleBytes());
  EXPECT_THAT(DecodeTranscriptLeaf(AsBytes(SampleBytes())), IsOkAndHolds(Sample(3, 5)));
}

TEST(TranscriptLeaf, RefusesOtherLengths) {
  const std::string bytes = SampleBytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(DecodeTranscriptLeaf(AsBytes(bytes.substr(0, size))), StatusIs(kDataLoss)) << size;
  }
  EXPECT_THAT(DecodeTranscriptLeaf(AsBytes(bytes + "x")), StatusIs(kDataLoss));
}

TEST(TranscriptLeaf, RefusesCountsThatCannotBe) {
  for (const uint32_t boundaries : {0u, 1u, 3u, 4098u, 0x80000000u, 0xffffffffu}) {
    std::string bytes = SampleBytes();
    for (int i = 0; i < 4; ++i) bytes[72 + i] = static_cast<char>(boundaries >> (8 * i));
    EXPECT_THAT(DecodeTranscriptLeaf(AsBytes(bytes)), StatusIs(kDataLoss)) << boundaries;
  }
  std::string bytes = SampleBytes();
  bytes[72] = 0;
  EXPECT_THAT(DecodeTranscriptLeaf(AsBytes(bytes)),
              StatusIs(kDataLoss, AllOf(HasSubstr("offset 72"), HasSubstr("found 0"))));
}

TEST(TranscriptLeaf, TakesAsManyLayersAsAModelMayHave) {
  TranscriptLeaf leaf = Sample(0, 0);
  leaf.residual.assign(kTranscriptLayersMax + 1, Filled(1));
  leaf.dresidual.assign(kTranscriptLayersMax + 1, Filled(2));
  EXPECT_THAT(DecodeTranscriptLeaf(AsBytes(EncodeTranscriptLeaf(leaf))), IsOkAndHolds(leaf));
}

// What is accepted is what would be written.
TEST(TranscriptLeaf, OneEncodingForEachLeaf) {
  std::mt19937_64 random(1);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = SampleBytes();
    for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const auto leaf = DecodeTranscriptLeaf(AsBytes(bytes));
    if (!leaf.ok()) continue;
    ++accepted;
    ASSERT_EQ(EncodeTranscriptLeaf(*leaf), bytes);
  }
  EXPECT_GT(accepted, 1000);
}

// Three leaves of the sample's form, hashed with Python's hashlib.
TEST(TranscriptRoot, IsThatOfRfc6962) {
  EXPECT_EQ(TranscriptRoot({Sample(0, 0), Sample(0, 1), Sample(1, 0)}).ToHex(),
            "f4428015ba9cf225fdef72799dd6c4525b3f604bae88d25277ead98028500d44");
  EXPECT_EQ(MerkleLeafHash(AsBytes(EncodeTranscriptLeaf(Sample(0, 0)))).ToHex(),
            "e1f8730e15b51e924c37db939c0f3fc704f75fe2e238b60e5dd0258e24ce5a92");
  EXPECT_NE(TranscriptRoot({Sample(0, 0), Sample(1, 0), Sample(0, 1)}),
            TranscriptRoot({Sample(0, 0), Sample(0, 1), Sample(1, 0)}));
}

}  // namespace
}  // namespace lockstep::audit
