// A queue of at most N items, in an array. Not for more than one thread.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

template <typename T, std::size_t N>
class BoundedQueue {
 public:
  bool Push(T item) {
    if (size_ == N) return false;
    items_[(first_ + size_++) % N] = std::move(item);
    return true;
  }

  std::optional<T> Pop() {
    if (size_ == 0) return std::nullopt;
    T item = std::move(items_[first_]);
    first_ = (first_ + 1) % N;
    --size_;
    return item;
  }

  std::size_t size() const { return size_; }

 private:
  std::array<T, N> items_{};
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};
