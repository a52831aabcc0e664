// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 against the examples of FIPS 180-4 (NIST's published messages and digests), every way of
// cutting a message, several threads, and the digest type.

#include "base/sha256.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/sha256_pair.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(Sha256, PublishedExamples) {
  EXPECT_EQ(Sha256(AsBytes("")).ToHex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256(AsBytes("abc")).ToHex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256(AsBytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")).ToHex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256(AsBytes(std::string(1000000, 'a'))).ToHex(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnTheCut) {
  std::string message;
  for (int i = 0; i < 200; ++i) message += static_cast<char>(i * 7);
  const Digest expected = Sha256(AsBytes(message));
  Sha256Hasher hasher;
  for (size_t a = 0; a <= message.size(); a += 3) {
    for (size_t b = a; b <= message.size(); b += 5) {
      const ByteSpan bytes = AsBytes(message);
      hasher.Update(bytes.first(a));
      hasher.Update(bytes.subspan(a, b - a));
      hasher.Update(bytes.subspan(b));
      ASSERT_EQ(hasher.Finish(), expected);
      ASSERT_EQ(Sha256({bytes.first(a), bytes.subspan(a, b - a), bytes.subspan(b)}), expected);
    }
  }
}

TEST(Sha256, FinishStartsANewMessage) {
  Sha256Hasher hasher;
  hasher.Update(AsBytes("abc"));
  EXPECT_EQ(hasher.Finish(), Sha256(AsBytes("abc")));
  EXPECT_EQ(hasher.Finish(), Sha256(AsBytes("")));
  Sha256Hasher moved = std::move(hasher);
  moved.Update(AsBytes("abc"));
  EXPECT_EQ(moved.Finish(), Sha256(AsBytes("abc")));
}

TEST(Sha256, HashersDoNotDisturbEachOther) {
  Sha256Hasher hasher;
  hasher.Update(AsBytes("a"));
  Sha256(AsBytes("something else"));
  hasher.Update(AsBytes("bc"));
  EXPECT_EQ(hasher.Finish(), Sha256(AsBytes("abc")));
}

TEST(Sha256, AnyThread) {
  std::vector<Digest> digests(4);
  std::vector<std::thread> threads;
  for (Digest& digest : digests) {
    threads.emplace_back([&digest] {
      for (int i = 0; i < 1000; ++i) digest = Sha256(AsBytes("abc"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(digests, Each(Sha256(AsBytes("abc"))));
}

TEST(Digest, TextAndBytes) {
  const Digest digest = Sha256(AsBytes("abc"));
  EXPECT_THAT(Digest::FromHex(digest.ToHex()), IsOkAndHolds(digest));
  EXPECT_THAT(Digest::FromHex("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"),
              IsOkAndHolds(digest));
  EXPECT_THAT(Digest::FromBytes(digest.bytes), IsOkAndHolds(digest));
  EXPECT_EQ(Digest().ToHex(), std::string(64, '0'));
}

TEST(Digest, Refuses) {
  EXPECT_THAT(Digest::FromHex("ab"), StatusIs(kInvalid, HasSubstr("64 hexadecimal digits")));
  EXPECT_THAT(Digest::FromHex(std::string(66, 'a')), StatusIs(kInvalid, HasSubstr("found 66")));
  EXPECT_THAT(Digest::FromHex(std::string(63, 'a') + "g"),
              StatusIs(kInvalid, HasSubstr("position 63")));
  EXPECT_THAT(Digest::FromBytes(AsBytes("short")), StatusIs(kInvalid, HasSubstr("32 bytes")));
}

TEST(Digest, ComparesAsByteStrings) {
  Digest low;
  Digest high;
  low.bytes[0] = 0x7f;
  high.bytes[0] = 0x80;
  low.bytes[31] = 0xff;
  EXPECT_LT(low, high);
  EXPECT_NE(low, high);
  EXPECT_EQ(low, Digest(low));
}

TEST(Digest, IsAKey) {
  absl::flat_hash_map<Digest, int> numbers;
  for (int i = 0; i < 100; ++i) numbers[Sha256(AsBytes(std::to_string(i)))] = i;
  EXPECT_EQ(numbers.size(), 100);
  EXPECT_EQ(numbers[Sha256(AsBytes("42"))], 42);
}

// Against one after the other: every length around the blocks, heads that fill one and more, and
// parts of which only one message has so much.
TEST(Sha256Pair, IsBothDigests) {
  std::string a, b;
  for (int i = 0; i < 400; ++i) {
    a += static_cast<char>(i * 7);
    b += static_cast<char>(i * 13 + 1);
  }
  const auto split = [](const std::string& text, size_t head, size_t body) {
    return SplitMessage{.head = AsBytes(text).first(head),
                        .body = AsBytes(text).subspan(head, body)};
  };
  for (size_t head = 0; head <= 66; ++head) {
    for (size_t body = 0; body <= 200; ++body) {
      const auto both = Sha256Pair(split(a, head, body), split(b, head, body));
      ASSERT_EQ(both[0], Sha256(AsBytes(a).first(head + body))) << head << " + " << body;
      ASSERT_EQ(both[1], Sha256(AsBytes(b).first(head + body))) << head << " + " << body;
    }
  }
  const auto other = Sha256Pair(split(a, 3, 100), split(b, 4, 99));
  EXPECT_EQ(other[0], Sha256(AsBytes(a).first(103)));
  EXPECT_EQ(other[1], Sha256(AsBytes(b).first(103)));
}

// FIPS 180-4's example of a million letters, beside another message of its length.
TEST(Sha256Pair, PublishedExample) {
  const std::string a(1000000, 'a');
  const std::string b(1000000, 'b');
  const auto both = Sha256Pair({.head = {}, .body = AsBytes(a)}, {.head = {}, .body = AsBytes(b)});
  EXPECT_EQ(both[0].ToHex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(both[1], Sha256(AsBytes(b)));
}

}  // namespace
}  // namespace lockstep
