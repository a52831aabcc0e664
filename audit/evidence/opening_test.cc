// SPDX-License-Identifier: Apache-2.0
//
// Commitment, challenge and opening: what an honest worker can show and a copyist cannot.
#include "audit/evidence/opening.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "audit/testing/digests.h"
#include "audit/testing/json_changes.h"
#include "audit/testing/small_log.h"
#include "base/merkle.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct Fixture {
  Digest nonce = Filled(0x11);
  Ed25519PublicKey worker = TestPublicKey(5);
  std::vector<TranscriptLeaf> leaves = TestTranscript(3);
  Digest attestation = Filled(0x22);
  Ed25519Signature challenge = MakeChallenge(TestKey(kLogKey), attestation);
  OpeningClaim claim = {.transcript = TranscriptRoot(leaves),
                        .openings_digest = OpeningsDigest(nonce, worker, leaves),
                        .nonce = nonce,
                        .worker = worker,
                        .leaves = leaves.size()};
  Opening Make(uint64_t index) const {
    return MakeOpening(attestation, challenge, nonce, worker, leaves, index).value();
  }
};

TEST(Opening, ShowsEachLeaf) {
  const Fixture f;
  for (uint64_t i = 0; i < f.leaves.size(); ++i) {
    EXPECT_THAT(VerifyOpening(f.Make(i), f.claim), IsOk());
  }
}

TEST(Opening, OfALeafThatThereIs) {
  const Fixture f;
  EXPECT_THAT(MakeOpening(f.attestation, f.challenge, f.nonce, f.worker, f.leaves, 8),
              StatusIs(kInvalid, HasSubstr("leaf 8")));
}

TEST(Opening, CommitmentIsAsDocumented) {
  const Fixture f;
  std::vector<Digest> hashes;
  for (const TranscriptLeaf& leaf : f.leaves) {
    const std::string data =
        ToString(f.nonce.bytes) + ToString(f.worker.bytes) + EncodeTranscriptLeaf(leaf);
    hashes.push_back(MerkleLeafHash(AsBytes(data)));
  }
  EXPECT_EQ(f.claim.openings_digest, MerkleRoot(hashes));
}

TEST(Opening, ShowsNothingElse) {
  const Fixture f;
  const Opening good = f.Make(2);
  Opening bad = good;
  bad.index = 3;
  EXPECT_THAT(VerifyOpening(bad, f.claim), StatusIs(kInvalid, HasSubstr("published")));
  bad = good;
  bad.leaf = EncodeTranscriptLeaf(f.leaves[3]);
  EXPECT_THAT(VerifyOpening(bad, f.claim), StatusIs(kInvalid, HasSubstr("published")));
  for (size_t i = 0; i < good.proof.size(); ++i) {
    bad = good;
    bad.proof[i].bytes[0] ^= 1;
    EXPECT_THAT(VerifyOpening(bad, f.claim), StatusIs(kInvalid, HasSubstr("published")));
    bad = good;
    bad.commitment_proof[i].bytes[0] ^= 1;
    EXPECT_THAT(VerifyOpening(bad, f.claim), StatusIs(kInvalid, HasSubstr("commitment")));
  }
  // Another's opening, copied: the published part fits, the commitment does not.
  OpeningClaim other = f.claim;
  other.worker = TestPublicKey(6);
  EXPECT_THAT(VerifyOpening(good, other), StatusIs(kInvalid, HasSubstr("commitment")));
  other = f.claim;
  other.nonce = Filled(0x12);
  EXPECT_THAT(VerifyOpening(good, other), StatusIs(kInvalid, HasSubstr("commitment")));
  other = f.claim;
  other.leaves = 9;
  EXPECT_THAT(VerifyOpening(good, other), StatusIs(kInvalid));
  other.leaves = 0;
  EXPECT_THAT(VerifyOpening(good, other), StatusIs(kInvalid));
}

TEST(Opening, TheChallengeIsTheLogs) {
  const Fixture f;
  EXPECT_EQ(f.challenge, MakeChallenge(TestKey(kLogKey), f.attestation));
  EXPECT_TRUE(VerifyChallenge(TestPublicKey(kLogKey), f.attestation, f.challenge));
  EXPECT_FALSE(VerifyChallenge(TestPublicKey(5), f.attestation, f.challenge));
  EXPECT_FALSE(VerifyChallenge(TestPublicKey(kLogKey), Filled(0x23), f.challenge));
}

TEST(Opening, TheChallengePicksDistinctLeavesEvenly) {
  std::vector<int> picked(8);
  for (uint64_t n = 0; n < 400; ++n) {
    const Ed25519Signature challenge = MakeChallenge(TestKey(kLogKey), TestDigest("a", n));
    const std::vector<uint64_t> indices = ChallengedIndices(challenge, 8, 3);
    ASSERT_EQ(indices.size(), 3u);
    EXPECT_EQ(std::set<uint64_t>(indices.begin(), indices.end()).size(), 3u);
    for (const uint64_t index : indices) ++picked.at(index);
    // One more leaf is one more, and the first ones stay.
    const std::vector<uint64_t> four = ChallengedIndices(challenge, 8, 4);
    EXPECT_TRUE(std::equal(indices.begin(), indices.end(), four.begin()));
  }
  for (const int count : picked) {  // 150 expected, of a deviation of about 10
    EXPECT_GT(count, 100);
    EXPECT_LT(count, 200);
  }
  const Ed25519Signature challenge{};
  EXPECT_EQ(ChallengedIndices(challenge, 3, 8).size(), 3u);
  EXPECT_EQ(ChallengedIndices(challenge, 0, 8).size(), 0u);
  EXPECT_EQ(ChallengedIndices(challenge, 8, 0).size(), 0u);
  EXPECT_EQ(ChallengedIndices(challenge, 8, -1).size(), 0u);
}

TEST(Opening, LeavesFollowFromTheBatchSchedule) {
  RunManifest manifest = Preset("golden").value();
  manifest.topology.micro_batch = 2;
  manifest.batch = {{.windows_per_step = 16, .until_tokens = 1000},
                    {.windows_per_step = 24, .until_tokens = 2000}};
  EXPECT_EQ(TranscriptLeavesOf(manifest, 0), 8u);
  EXPECT_EQ(TranscriptLeavesOf(manifest, 999), 8u);
  EXPECT_EQ(TranscriptLeavesOf(manifest, 1000), 12u);
  EXPECT_EQ(TranscriptLeavesOf(manifest, 2000), 0u);
  EXPECT_EQ(TranscriptLeavesOf(manifest, UINT64_MAX), 0u);
}

TEST(Opening, IsWrittenBackAsItWasRead) {
  const Opening opening = Fixture().Make(5);
  const std::string text = EncodeOpening(opening);
  EXPECT_THAT(ParseOpening(text), IsOkAndHolds(opening));
  for (const auto& [what, changed] : JsonChanges(text)) {
    const bool empty_proof = absl::StrContains(what, "roof becomes []");
    if (empty_proof) continue;  // of a transcript of one leaf
    EXPECT_THAT(ParseOpening(changed), StatusIs(kDataLoss)) << what;
  }
  Opening bad = opening;
  bad.leaf.pop_back();
  EXPECT_THAT(ParseOpening(EncodeOpening(bad)), StatusIs(kDataLoss, HasSubstr("leaf")));
  bad = opening;
  bad.proof.assign(65, Filled(1));
  EXPECT_THAT(ParseOpening(EncodeOpening(bad)), StatusIs(kDataLoss, HasSubstr("proof")));
}

}  // namespace
}  // namespace lockstep::audit
