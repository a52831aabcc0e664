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

}  // namespace
}  // namespace lockstep::kernels
