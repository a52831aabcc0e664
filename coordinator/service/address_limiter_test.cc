// SPDX-License-Identifier: Apache-2.0
//
// Whose call it is, and whether it is one too many.

#include "coordinator/service/address_limiter.h"

#include "absl/strings/str_cat.h"
#include "base/testing/fake_clock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

TEST(AddressOfPeer, TakesThePortAwayAndNetworksTogether) {
  EXPECT_EQ(AddressOfPeer("ipv4:192.0.2.1:5000"), "192.0.2.1");
  EXPECT_EQ(AddressOfPeer("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:5000"), "2001:db8:1:2::/64");
  EXPECT_EQ(AddressOfPeer("ipv6:[2001:db8:1:2:ffff::1]:5000"), "2001:db8:1:2::/64");
  EXPECT_EQ(AddressOfPeer("ipv6:%5B::ffff:192.0.2.1%5D:1"), "192.0.2.1");
  EXPECT_EQ(AddressOfPeer("ipv6:%5B::1%5D:1"), "::1");
  EXPECT_EQ(AddressOfPeer("unix:/run/x"), "unix:/run/x");
  EXPECT_TRUE(IsLoopback(AddressOfPeer("ipv6:%5B::ffff:127.0.0.1%5D:1")));
  EXPECT_FALSE(IsLoopback("128.0.0.1"));
}

TEST(AddressLimiter, GivesEachAddressItsOwn) {
  FakeClock clock;
  AddressLimiter limiter({.calls_per_second = 2, .calls_at_once = 3}, clock);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.Take("192.0.2.1"));
  EXPECT_FALSE(limiter.Take("192.0.2.1"));
  EXPECT_TRUE(limiter.Take("192.0.2.2"));
  clock.Advance(absl::Milliseconds(500));
  EXPECT_TRUE(limiter.Take("192.0.2.1"));
  EXPECT_FALSE(limiter.Take("192.0.2.1"));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(limiter.Take("127.0.0.1"));
}

TEST(AddressLimiter, RemembersOnlySoMany) {
  FakeClock clock;
  AddressLimiter limiter({.calls_per_second = 1, .calls_at_once = 1, .addresses_max = 4}, clock);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(limiter.Take(absl::StrCat("192.0.2.", i)));
  EXPECT_TRUE(limiter.Take("198.51.100.1")) << "the first of those who share";
  EXPECT_FALSE(limiter.Take("198.51.100.2"));
  clock.Advance(absl::Seconds(10));
  EXPECT_TRUE(limiter.Take("198.51.100.2")) << "the others are forgotten";
  EXPECT_TRUE(limiter.Take("198.51.100.3"));
}

}  // namespace
}  // namespace lockstep::coordinator
