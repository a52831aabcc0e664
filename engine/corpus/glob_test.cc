// SPDX-License-Identifier: Apache-2.0
//
// Patterns of paths.
#include "engine/corpus/glob.h"

#include <string>

#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

TEST(GlobTest, Names) {
  EXPECT_TRUE(GlobMatches("a.txt", "a.txt"));
  EXPECT_FALSE(GlobMatches("a.txt", "a_txt"));
  EXPECT_FALSE(GlobMatches("a.txt", "A.txt"));
  EXPECT_TRUE(GlobMatches("*.txt", "a.txt"));
  EXPECT_TRUE(GlobMatches("*.txt", ".txt"));
  EXPECT_FALSE(GlobMatches("*.txt", "a.txt.gz"));
  EXPECT_FALSE(GlobMatches("*.txt", "b/a.txt"));
  EXPECT_TRUE(GlobMatches("a?c", "abc"));
  EXPECT_FALSE(GlobMatches("a?c", "ac"));
  EXPECT_FALSE(GlobMatches("a?c", "a/c"));
  EXPECT_TRUE(GlobMatches("a*b*c", "a1b2bb3c"));
  EXPECT_FALSE(GlobMatches("a*b*c", "a1b2bb3"));
  EXPECT_TRUE(GlobMatches("**b", "aab"));
}

TEST(GlobTest, Sets) {
  EXPECT_TRUE(GlobMatches("[a-c]x", "bx"));
  EXPECT_FALSE(GlobMatches("[a-c]x", "dx"));
  EXPECT_TRUE(GlobMatches("[!a-c]x", "dx"));
  EXPECT_TRUE(GlobMatches("[^a-c]x", "dx"));
  EXPECT_TRUE(GlobMatches("[]x]", "]"));
  EXPECT_TRUE(GlobMatches("[a-]", "-"));
  EXPECT_TRUE(GlobMatches("[open", "[open"));
  EXPECT_FALSE(GlobMatches("[open", "o"));
  EXPECT_TRUE(GlobMatches("[\x80-\xFF]", "\xE9"));
}

TEST(GlobTest, Folders) {
  EXPECT_TRUE(GlobMatches("**/*.py", "a.py"));
  EXPECT_TRUE(GlobMatches("**/*.py", "x/y/a.py"));
  EXPECT_TRUE(GlobMatches("x/**/a.py", "x/a.py"));
  EXPECT_TRUE(GlobMatches("x/**/y/**/a", "x/1/y/2/y/a"));
  EXPECT_FALSE(GlobMatches("x/**/y/a", "x/y/b"));
  EXPECT_TRUE(GlobMatches("x/**", "x/y/z"));
  EXPECT_TRUE(GlobMatches("**/vendor/**", "a/vendor/b/c"));
  EXPECT_FALSE(GlobMatches("**/vendor/**", "a/vendors/b/c"));
}

TEST(GlobTest, HostilePatternsEnd) {
  const std::string stars = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(GlobMatches(stars, std::string(20000, 'a')));
  std::string folders;
  std::string path;
  for (int i = 0; i < 40; ++i) folders += "**/a/";
  for (int i = 0; i < 2000; ++i) path += "a/";
  EXPECT_FALSE(GlobMatches(folders + "b", path + "c"));
}

TEST(GlobTest, Prefix) {
  EXPECT_EQ(GlobPrefix("a/b/*.txt"), "a/b");
  EXPECT_EQ(GlobPrefix("a/b?/c"), "a");
  EXPECT_EQ(GlobPrefix("*.txt"), "");
  EXPECT_EQ(GlobPrefix("a/b"), "a/b");
}

}  // namespace
}  // namespace lockstep::engine
