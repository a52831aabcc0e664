// SPDX-License-Identifier: Apache-2.0
//
// The statement's text as docs/attestation.md gives it, and what a reader refuses.
#include "audit/evidence/attestation.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "audit/testing/digests.h"
#include "audit/testing/json_changes.h"
#include "audit/testing/small_log.h"
#include "base/encoding.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

Attestation Match() {
  Attestation a;
  a.run_id = Filled(0x01);
  a.step = 7;
  a.record = Filled(0x02);
  a.from_chain = Filled(0x03);
  a.computed_chain = Filled(0x04);
  a.roots = {.parameters = Filled(0xa1),
             .first_moment = Filled(0xa2),
             .second_moment = Filled(0xa3),
             .gradient = Filled(0xa4),
             .windows = Filled(0xa5),
             .transcript = Filled(0xa6),
             .cursor = Filled(0xa7)};
  a.lease_id = "lease-9";
  a.nonce = Filled(0x05);
  a.openings_digest = Filled(0x06);
  a.engine = {.name = "lockstep",
              .version = "1.0.0",
              .build = Filled(0x07),
              .numerics = "lockstep-numerics-1"};
  a.backend = {.backend_class = "x86-avx512", .isa = "avx512", .cpu = "a CPU", .threads = 16};
  a.replayed_at = absl::FromUnixSeconds(1'700'000'000);
  return a;
}

std::string Hex(uint8_t byte) { return Filled(byte).ToHex(); }

TEST(Attestation, LiesAsDocumented) {
  EXPECT_EQ(
      EncodeAttestation(Match()),
      absl::StrCat(
          R"({"_type":"https://in-toto.io/Statement/v1","predicate":{"backend":{"class":"x86-avx512",)",
          R"("cpu":"a CPU","isa":"avx512","threads":16},"computedChain":")", Hex(0x04),
          R"(","engine":{"buildDigest":")", Hex(0x07),
          R"(","name":"lockstep","numerics":"lockstep-numerics-1","version":"1.0.0"},"fromChain":")",
          Hex(0x03), R"(","leaseId":"lease-9","nonce":")", Hex(0x05), R"(","openingsDigest":")",
          Hex(0x06), R"(","replayedAt":"2023-11-14T22:13:20Z","roots":{"cursor":")", Hex(0xa7),
          R"(","firstMoment":")", Hex(0xa2), R"(","gradient":")", Hex(0xa4), R"(","parameters":")",
          Hex(0xa1), R"(","secondMoment":")", Hex(0xa3), R"(","transcript":")", Hex(0xa6),
          R"(","windows":")", Hex(0xa5), R"("},"runId":")", Hex(0x01),
          R"(","step":7,"verdict":"match"},"predicateType":)",
          R"("https://lockstep.dev/lockstep/step-audit/v1","subject":[{"digest":{"sha256":")",
          Hex(0x02), R"("},"name":"step-7.record"}]})"));
}

Attestation Mismatch() {
  StepRecord published = TestRecord(TestRegistration(), nullptr);
  StepRecord found = published;
  found.windows = Filled(0x77);
  return TestAttestation(Filled(0x01), published, TestPublicKey(5), &found);
}

TEST(Attestation, IsWrittenBackAsItWasRead) {
  for (const Attestation& a : {Match(), Mismatch()}) {
    const std::string text = EncodeAttestation(a);
    const auto parsed = ParseAttestation(text);
    ASSERT_THAT(parsed, IsOk());
    EXPECT_EQ(EncodeAttestation(*parsed), text);
    EXPECT_EQ(parsed->verdict, a.verdict);
    EXPECT_EQ(parsed->replayed_at, a.replayed_at);
    EXPECT_EQ(parsed->computed_record, a.computed_record);
    EXPECT_EQ(parsed->difference.place, a.difference.place);
  }
}

TEST(Attestation, RefusesEveryChangeOfForm) {
  for (const Attestation& a : {Match(), Mismatch()}) {
    for (const auto& [what, text] : JsonChanges(EncodeAttestation(a))) {
      if (what == "/predicate/firstDifference/place is gone") continue;  // may be absent
      if (absl::StrContains(what, "becomes \"x\"") &&
          (absl::StrContains(what, "/engine/") || absl::StrContains(what, "/backend/") ||
           absl::StrContains(what, "/leaseId") || absl::StrContains(what, "/firstDifference/")) &&
          !absl::StrContains(what, "/class") && !absl::StrContains(what, "/buildDigest") &&
          !absl::StrContains(what, "/threads")) {
        continue;  // free text
      }
      EXPECT_THAT(ParseAttestation(text), StatusIs(kDataLoss)) << what;
    }
  }
}

TEST(Attestation, RefusesWhatDoesNotHang) {
  const std::string match = EncodeAttestation(Match());
  const auto refuses = [](const std::string& text, const std::string& from, const std::string& to,
                          const char* message) {
    const std::string changed = absl::StrReplaceAll(text, {{from, to}});
    ASSERT_NE(changed, text) << from;
    EXPECT_THAT(ParseAttestation(changed), StatusIs(kDataLoss, HasSubstr(message))) << to;
  };
  refuses(match, "\"match\"", "\"inconclusive\"", "verdict");
  refuses(match, "\"match\"", "\"mismatch\"", "firstDifference");
  refuses(match, "step-7.record", "step-8.record", "subject");
  refuses(match, "\"step\":7", "\"step\":8", "subject");
  refuses(match, "x86-avx512", "x86-avx1024", "class");
  refuses(match, "\"threads\":16", "\"threads\":0", "threads");
  refuses(match, "lease-9", "lease 9", "leaseId");
  refuses(match, "lease-9", "", "leaseId");
  refuses(match, "a CPU", "a\\nCPU", "cpu");
  refuses(match, "step-audit/v1", "step-audit/v2", "predicateType");
  for (const char* time :
       {"2023-11-14T22:13:20+00:00", "2023-11-14T22:13:20.5Z", "2023-11-14 22:13:20Z",
        "2023-02-30T00:00:00Z", "2023-11-14T25:13:20Z", "2023-11-14T22:13:60Z",
        "infinite-future-----Z", "0x23-11-14T22:13:20Z"}) {
    refuses(match, "2023-11-14T22:13:20Z", time, "replayedAt");
  }
  // White space, or another order.
  EXPECT_THAT(ParseAttestation(match + " "), StatusIs(kDataLoss));
}

TEST(Attestation, AMismatchHoldsTogether) {
  const Attestation good = Mismatch();
  for (int part = 0; part < 5; ++part) {
    Attestation bad = good;
    if (part == 0) bad.from_chain = Filled(0x99);
    if (part == 1) bad.computed_chain = Filled(0x99);
    if (part == 2) bad.roots.gradient = Filled(0x99);
    if (part == 3) bad.step += 1;
    if (part == 4) bad.record = Sha256(AsBytes(EncodeStepRecord(*bad.computed_record)));
    EXPECT_THAT(ParseAttestation(EncodeAttestation(bad)),
                StatusIs(kDataLoss, HasSubstr("computedRecord")))
        << part;
  }
  std::string text = EncodeAttestation(good);
  const std::string record = Base64Encode(AsBytes(EncodeStepRecord(*good.computed_record)));
  EXPECT_THAT(ParseAttestation(absl::StrReplaceAll(text, {{record, "AAAA"}})),
              StatusIs(kDataLoss, HasSubstr("computedRecord")));
}

TEST(Attestation, ClassesOfBackendsAreAFixedSet) {
  for (const char* name : {"reference", "x86-avx2", "x86-avx512", "arm-neon", "cuda-sm80",
                           "cuda-sm90", "cuda-sm100"}) {
    EXPECT_TRUE(IsBackendClass(name)) << name;
  }
  for (const char* name : {"", "x86", "X86-AVX2", "x86-avx2 ", "cuda-sm", "cuda-sm9", "cuda-sm9a",
                           "cuda-sm1000", "cuda-sm09", "cuda-90", "mine"}) {
    EXPECT_FALSE(IsBackendClass(name)) << name;
  }
}

}  // namespace
}  // namespace lockstep::audit
