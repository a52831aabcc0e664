// SPDX-License-Identifier: Apache-2.0
//
// Per-thread stacks of blocks. A block never moves while a frame holds memory in it; when the stack
// is empty again and had needed several, they are replaced by one that is large enough for all.
#include "kernels/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/logging.h"

namespace lockstep::kernels {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kPadding =
    64;  // readable past the end, so that a whole vector may be loaded at the last element
constexpr size_t kFirstBlock = size_t{1} << 20;

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};

struct Block {
  std::unique_ptr<std::byte[], Free> bytes;
  size_t size;
  size_t base;  // what the blocks before it hold
};

class Stack {
 public:
  void* Push(size_t bytes) {
    const size_t need = (bytes + kPadding + kAlignment - 1) / kAlignment * kAlignment;
    if (blocks_.empty() || top_ + need > blocks_.back().base + blocks_.back().size) Grow(need);
    std::byte* at = blocks_.back().bytes.get() + (top_ - blocks_.back().base);
    top_ += need;
    return at;
  }
  size_t top() const { return top_; }
  void Release(size_t mark) {
    top_ = mark;
    while (blocks_.size() > 1 && blocks_.back().base >= mark) {
      spare_ += blocks_.back().size;
      blocks_.pop_back();
    }
    if (top_ == 0 && spare_ > 0) {
      const size_t whole = blocks_.back().size + spare_;
      blocks_.clear();
      spare_ = 0;
      Grow(whole);
    }
  }

 private:
  void Grow(size_t need) {
    const size_t size = std::max(need, blocks_.empty() ? kFirstBlock : blocks_.back().size);
    auto* bytes = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
    LOCKSTEP_CHECK(bytes != nullptr, "out of memory: a kernel asked for {} bytes of scratch", size);
    // Frames above the cut live in the new block from here on.
    blocks_.push_back(Block{std::unique_ptr<std::byte[], Free>(bytes), size, top_});
  }

  std::vector<Block> blocks_;
  size_t top_ = 0;
  size_t spare_ = 0;  // bytes of blocks given back since the stack was last empty
};

thread_local Stack stack;

}  // namespace

void* ScratchPush(size_t bytes) noexcept { return stack.Push(bytes); }
size_t ScratchMark() noexcept { return stack.top(); }
void ScratchRelease(size_t mark) noexcept { stack.Release(mark); }

}  // namespace lockstep::kernels
