// SPDX-License-Identifier: Apache-2.0
//
// Per-thread stacks of blocks. A block never moves while a frame holds memory in it, and stays for
// the next frame after that; when the stack is empty again and had needed several, they are
// replaced by one that is large enough for what was held at most.
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
  size_t base;  // what the blocks before it held when it was entered
};

class Stack {
 public:
  void* Push(size_t bytes) {
    const size_t need = (bytes + kPadding + kAlignment - 1) / kAlignment * kAlignment;
    if (blocks_.empty() || top_ + need > current().base + current().size) Advance(need);
    std::byte* at = current().bytes.get() + (top_ - current().base);
    top_ += need;
    most_ = std::max(most_, top_);
    return at;
  }
  size_t top() const { return top_; }
  void Release(size_t mark) {
    top_ = mark;
    while (current_ > 0 && current().base >= mark) --current_;
    if (top_ == 0 && blocks_.size() > 1) {
      blocks_.clear();
      Append(most_);
    }
  }

 private:
  Block& current() { return blocks_[current_]; }

  // To the next block, which nobody holds anything in; a new one if that is too small.
  void Advance(size_t need) {
    const size_t next = blocks_.empty() ? 0 : current_ + 1;
    if (next < blocks_.size() && blocks_[next].size < need) {
      blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(next), blocks_.end());
    }
    if (next == blocks_.size()) Append(std::max(need, kFirstBlock));
    current_ = next;
    current().base = top_;
  }

  void Append(size_t size) {
    auto* bytes = static_cast<std::byte*>(
        std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment));
    LOCKSTEP_CHECK(bytes != nullptr, "out of memory: a kernel asked for {} bytes of scratch", size);
    blocks_.push_back(Block{std::unique_ptr<std::byte[], Free>(bytes), size, 0});
  }

  std::vector<Block> blocks_;
  size_t current_ = 0;  // the block that the last frame's memory is in
  size_t top_ = 0;
  size_t most_ = 0;  // of top_, ever
};

thread_local Stack stack;

}  // namespace

void* ScratchPush(size_t bytes) noexcept { return stack.Push(bytes); }
size_t ScratchMark() noexcept { return stack.top(); }
void ScratchRelease(size_t mark) noexcept { stack.Release(mark); }

}  // namespace lockstep::kernels
