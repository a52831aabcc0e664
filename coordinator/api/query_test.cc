// SPDX-License-Identifier: Apache-2.0

#include "coordinator/api/query.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc_error.h"

namespace lockstep::coordinator {
namespace {

using ::testing::HasSubstr;

TEST(QueryTest, Reads) {
  const std::string key(64, 'a');
  Query query(absl::StrCat("n=12&key=", key, "&state=confirmed&flag=1&text=a%20%3Cb%3E+c"),
              {"n", "key", "state", "flag", "text", "absent"});
  EXPECT_EQ(query.Number("n"), 12u);
  EXPECT_EQ(query.Key("key")->ToHex(), key);
  EXPECT_EQ(query.State("state"), audit::StepState::kConfirmed);
  EXPECT_TRUE(query.Flag("flag"));
  EXPECT_EQ(query.Text("text"), "a <b> c");
  EXPECT_EQ(query.Number("absent"), std::nullopt);
  EXPECT_EQ(query.Key("absent"), std::nullopt);
  EXPECT_FALSE(query.Flag("absent"));
  EXPECT_TRUE(query.status().ok());
  EXPECT_TRUE(Query("", {}).status().ok());
}

TEST(QueryTest, RefusesWhatItDoesNotKnow) {
  for (const absl::string_view text :
       {"x=1", "n=1&n=2", "n=1&", "=1", "n=%4", "n=%zz", "n=%00", "n=%ff", "n=1&x"}) {
    const Query query(text, {"n"});
    EXPECT_EQ(rpc::ReasonOf(query.status()), "REQUEST_INVALID") << text;
  }
}

TEST(QueryTest, Numbers) {
  for (const absl::string_view text :
       {"", "-1", "+1", "1.5", "01", "1e3", "0x1", " 1", "9007199254740992", "18446744073709551616",
        "99999999999999999999999999"}) {
    Query query(absl::StrCat("n=", text == "+1" ? "%2B1" : text == " 1" ? "%201" : text), {"n"});
    EXPECT_EQ(query.Number("n"), std::nullopt) << text;
    EXPECT_EQ(rpc::ReasonOf(query.status()), "REQUEST_INVALID") << text;
    EXPECT_THAT(query.status().message(), HasSubstr("n: expected")) << text;
  }
  Query most("n=9007199254740991", {"n"});
  EXPECT_EQ(most.Number("n"), kApiNumberMax);
  for (const absl::string_view text : {"n=0", "n=1001"}) {
    Query query(text, {"n"});
    EXPECT_EQ(query.Number("n", 1, 1000), std::nullopt);
    EXPECT_THAT(query.status().message(), HasSubstr("from 1 to 1000"));
  }
}

TEST(QueryTest, KeysAndChoices) {
  for (const std::string& text : {std::string(63, 'a'), std::string(64, 'A'), std::string(64, 'g'),
                                  std::string(65, 'a'), std::string()}) {
    Query query("k=" + text, {"k"});
    EXPECT_EQ(query.Key("k"), std::nullopt);
    EXPECT_FALSE(query.status().ok()) << text;
  }
  Query state("s=done", {"s"});
  EXPECT_EQ(state.State("s"), std::nullopt);
  EXPECT_THAT(state.status().message(), HasSubstr("unaudited, claimed"));
  Query flag("f=yes", {"f"});
  EXPECT_FALSE(flag.Flag("f"));
  EXPECT_FALSE(flag.status().ok());
}

}  // namespace
}  // namespace lockstep::coordinator
