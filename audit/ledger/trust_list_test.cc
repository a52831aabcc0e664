// SPDX-License-Identifier: Apache-2.0
#include "audit/ledger/trust_list.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "audit/testing/small_log.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(TrustList, HasAKeyAndANameALine) {
  const std::string a = TestPublicKey(1).ToHex();
  const std::string b = TestPublicKey(2).ToHex();
  const std::string c = TestPublicKey(3).ToHex();
  EXPECT_THAT(ParseTrustList(
                  absl::StrCat("# mine\n\n  ", a, "  Ada's  lab \r\n", b, "\tBert\n#", c, "\n", c)),
              IsOkAndHolds(ElementsAre(TrustedOperator{TestPublicKey(1), "Ada's  lab"},
                                       TrustedOperator{TestPublicKey(2), "Bert"},
                                       TrustedOperator{TestPublicKey(3), ""})));
}

TEST(TrustList, NamesTheLineThatIsWrong) {
  const std::string a = TestPublicKey(1).ToHex();
  EXPECT_THAT(ParseTrustList(""), StatusIs(kInvalid, HasSubstr("at least one")));
  EXPECT_THAT(ParseTrustList("# a\n\n"), StatusIs(kInvalid, HasSubstr("at least one")));
  EXPECT_THAT(ParseTrustList(absl::StrCat("\n\n", a.substr(1), " x")),
              StatusIs(kInvalid, HasSubstr("line 3")));
  EXPECT_THAT(ParseTrustList(absl::StrCat(a, " x\n", a, " y\n")),
              StatusIs(kInvalid, HasSubstr("line 2")));
  EXPECT_THAT(ParseTrustList(absl::StrCat(a, " x\x01y")), StatusIs(kInvalid, HasSubstr("line 1")));
  // A key that any signature fits.
  EXPECT_THAT(ParseTrustList(absl::StrCat("01", std::string(62, '0'), " x")),
              StatusIs(kInvalid, HasSubstr("line 1")));
  EXPECT_THAT(ParseTrustList(std::string(kTrustListBytesMax + 1, '\n')), StatusIs(kInvalid));
}

}  // namespace
}  // namespace lockstep::audit
