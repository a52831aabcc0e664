// SPDX-License-Identifier: Apache-2.0
//
// Range and Content-Range against RFC 9110 section 14, its examples among them.
#include "net/http_range.h"

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::net {
namespace {

constexpr uint64_t kMax = UINT64_MAX;

RangeRequest Part(uint64_t begin, uint64_t size) {
  return {.kind = RangeRequest::kPart, .begin = begin, .size = size};
}

TEST(HttpRangeTest, ExamplesOfTheStandard) {
  // RFC 9110 section 14.1.2, for a representation of 10,000 bytes.
  EXPECT_EQ(ParseRange("bytes=0-499", 10000), Part(0, 500));
  EXPECT_EQ(ParseRange("bytes=500-999", 10000), Part(500, 500));
  EXPECT_EQ(ParseRange("bytes=-500", 10000), Part(9500, 500));
  EXPECT_EQ(ParseRange("bytes=9500-", 10000), Part(9500, 500));
}

TEST(HttpRangeTest, EndsAreClamped) {
  EXPECT_EQ(ParseRange("bytes=0-", 1), Part(0, 1));
  EXPECT_EQ(ParseRange("bytes=0-18446744073709551615", 10), Part(0, 10));
  EXPECT_EQ(ParseRange("bytes=9-9", 10), Part(9, 1));
  EXPECT_EQ(ParseRange("bytes=-20", 10), Part(0, 10));
  EXPECT_EQ(ParseRange("bytes=1-18446744073709551615", kMax), Part(1, kMax - 1));
  EXPECT_EQ(ParseRange("  BYTES= 1-2 ", 10), Part(1, 2));
}

TEST(HttpRangeTest, RangesWithoutAByteAreUnsatisfiable) {
  const RangeRequest none = {.kind = RangeRequest::kUnsatisfiable};
  EXPECT_EQ(ParseRange("bytes=10-", 10), none);
  EXPECT_EQ(ParseRange("bytes=0-0", 0), none);
  EXPECT_EQ(ParseRange("bytes=-0", 10), none);
  EXPECT_EQ(ParseRange("bytes=-1", 0), none);
}

TEST(HttpRangeTest, WhatIsNoSingleRangeIsIgnored) {
  for (const char* text :
       {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=2-1", "bytes=0-1,4-5",
        "bytes=+1-2", "bytes=1 -2", "bytes=--1", "bytes=0x1-2", "lines=0-1", "bytes=1-2-3",
        "bytes=18446744073709551616-", "bytes=1-18446744073709551616"}) {
    EXPECT_EQ(ParseRange(text, 10), RangeRequest{}) << text;
  }
}

TEST(HttpRangeTest, ContentRangeBothWays) {
  for (const auto& [text, range] : std::initializer_list<std::pair<const char*, ContentRange>>{
           {"bytes 0-99/1000", {.first = 0, .last = 99, .total = 1000}},
           {"bytes 999-999/1000", {.first = 999, .last = 999, .total = 1000}},
           {"bytes 5-6/*", {.first = 5, .last = 6}},
           {"bytes */0", {.total = 0}}}) {
    EXPECT_THAT(ParseContentRange(text), IsOkAndHolds(range));
    EXPECT_EQ(FormatContentRange(range), text);
  }
}

TEST(HttpRangeTest, OtherContentRangesAreRefused) {
  for (const char* text : {"", "bytes", "bytes 0-99", "bytes */*", "bytes 1-0/10", "bytes 0-10/10",
                           "bytes 0-9/10 ", "bytes=0-9/10", "bytes -/10", "bytes 0-/10",
                           "bytes 0-9/18446744073709551616", "items 0-9/10", "bytes  0-9/10"}) {
    EXPECT_THAT(ParseContentRange(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

}  // namespace
}  // namespace lockstep::net
