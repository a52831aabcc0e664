// SPDX-License-Identifier: Apache-2.0
//
// Scratch memory: alignment, nesting, no overlap, reuse.
#include "kernels/scratch.h"

#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"

namespace lockstep::kernels {
namespace {

TEST(Scratch, BuffersAreAlignedAndDoNotOverlap) {
  ScratchFrame outer;
  auto* a = outer.Get<uint8_t>(1000);
  std::memset(a, 1, 1000);
  for (int64_t bytes : {1, 63, 64, 65, 1 << 20, 3 << 20}) {
    ScratchFrame inner;
    auto* b = inner.Get<uint8_t>(bytes);
    auto* c = inner.Get<uint8_t>(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(c) % 64, 0u);
    std::memset(b, 2, bytes);
    std::memset(c, 3, bytes);
    EXPECT_EQ(b[0], 2);
    EXPECT_EQ(b[bytes - 1], 2);
  }
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(a[i], 1);
}

TEST(Scratch, MemoryIsReusedAcrossFrames) {
  void* first = nullptr;
  for (int round = 0; round < 3; ++round) {
    ScratchFrame frame;
    frame.Get<float>(100);
    frame.Get<float>(8 << 20);
    void* at = frame.Get<float>(5);
    if (round == 1) first = at;
    if (round == 2) {
      EXPECT_EQ(at, first);
    }
  }
}

// A driver that holds a large buffer while kernels below it take and give back theirs, part after
// part, takes no more memory for many parts than for one.
TEST(Scratch, FramesBelowAHeldOneReuseTheirMemory) {
  ScratchFrame outer;
  auto* held = outer.Get<uint8_t>(3 << 20);
  std::memset(held, 7, 3 << 20);
  void* first = nullptr;
  for (int part = 0; part < 1'000'000; ++part) {
    ScratchFrame inner;
    auto* at = inner.Get<uint8_t>(5 << 20);
    if (part == 0) first = at;
    ASSERT_EQ(at, first) << part;
    ScratchFrame innermost;
    auto* deeper = innermost.Get<uint8_t>(1 << 10);
    ASSERT_TRUE(deeper < at || deeper >= at + (5 << 20));
    *deeper = 8;
  }
  // A larger one after that, and the small one again.
  {
    ScratchFrame inner;
    std::memset(inner.Get<uint8_t>(40 << 20), 9, 40 << 20);
  }
  {
    ScratchFrame inner;
    std::memset(inner.Get<uint8_t>(5 << 20), 9, 5 << 20);
  }
  for (int i = 0; i < 3 << 20; ++i) ASSERT_EQ(held[i], 7);
}

}  // namespace
}  // namespace lockstep::kernels
