// SPDX-License-Identifier: Apache-2.0
//
// The fold's order, written out in symbols: for every count to 64 against the rule stated another
// way, and for some as they stand in the contract.
#include "engine/reduce/tree_fold.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

struct Concatenate {
  absl::StatusOr<std::string> operator()(std::string left, std::string right) const {
    return absl::StrCat("(", left, "+", right, ")");
  }
};

std::string FoldOf(int replicas) {
  TreeFold<std::string, Concatenate> fold({});
  for (int r = 0; r < replicas; ++r) EXPECT_TRUE(fold.Push(absl::StrCat("g", r)).ok());
  return *fold.Result();
}

// A balanced tree over 2^k replicas.
std::string Balanced(int first, int count) {
  if (count == 1) return absl::StrCat("g", first);
  return absl::StrCat("(", Balanced(first, count / 2), "+", Balanced(first + count / 2, count / 2),
                      ")");
}

// One balanced block for each one bit of the count, largest first, added from the left.
std::string Expected(int replicas) {
  std::string sum;
  int first = 0;
  for (int block = 64; block >= 1; block /= 2) {
    if ((replicas & block) == 0) continue;
    const std::string part = Balanced(first, block);
    sum = sum.empty() ? part : absl::StrCat("(", sum, "+", part, ")");
    first += block;
  }
  return sum;
}

TEST(TreeFold, OrderOfEveryCountTo64) {
  for (int replicas = 1; replicas <= 64; ++replicas) {
    EXPECT_EQ(FoldOf(replicas), Expected(replicas)) << replicas;
  }
}

TEST(TreeFold, SevenReplicasAsTheContractHasThem) {
  EXPECT_EQ(FoldOf(7), "((((g0+g1)+(g2+g3))+(g4+g5))+g6)");
  EXPECT_EQ(FoldOf(6), "(((g0+g1)+(g2+g3))+(g4+g5))");
  EXPECT_EQ(FoldOf(3), "((g0+g1)+g2)");
}

TEST(TreeFold, StartsAfreshAfterResultAndClear) {
  TreeFold<std::string, Concatenate> fold({});
  ASSERT_TRUE(fold.Push("a").ok());
  ASSERT_TRUE(fold.Push("b").ok());
  EXPECT_EQ(*fold.Result(), "(a+b)");
  ASSERT_TRUE(fold.Push("x").ok());
  fold.Clear();
  ASSERT_TRUE(fold.Push("c").ok());
  EXPECT_EQ(*fold.Result(), "c");
}

TEST(TreeFold, PassesErrorsOn) {
  const auto refuse = [](std::string, std::string) -> absl::StatusOr<std::string> {
    return absl::DataLossError("disk");
  };
  TreeFold<std::string, decltype(refuse)> fold(refuse);
  ASSERT_TRUE(fold.Push("a").ok());
  EXPECT_EQ(fold.Push("b").code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace lockstep::engine
