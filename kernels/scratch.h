// SPDX-License-Identifier: Apache-2.0
//
// Working memory of kernels: a stack of buffers per thread that grows to the largest use and stays,
// so that a training step allocates nothing after its first. Kernels take it instead of allocating.
#ifndef LOCKSTEP_KERNELS_SCRATCH_H_
#define LOCKSTEP_KERNELS_SCRATCH_H_

#include <cstddef>
#include <cstdint>

namespace lockstep::kernels {

// `bytes` of this thread's scratch, 64-byte aligned, uninitialised; for ScratchFrame's use.
void* ScratchPush(size_t bytes) noexcept;
// What this thread's stack holds now, and cutting it back to that.
size_t ScratchMark() noexcept;
void ScratchRelease(size_t mark) noexcept;

namespace {  // local to each file: see the note on linkage in kernels/simd/scalar.h

// Buffers that live as long as the frame. Frames nest as scopes do; a frame belongs to the thread
// that made it, though other threads may use its memory meanwhile.
class ScratchFrame {
 public:
  ScratchFrame() : mark_(ScratchMark()) {}
  ~ScratchFrame() { ScratchRelease(mark_); }
  ScratchFrame(const ScratchFrame&) = delete;
  ScratchFrame& operator=(const ScratchFrame&) = delete;

  // count elements, uninitialised, 64-byte aligned, followed by 64 readable bytes.
  template <class T>
  T* Get(int64_t count) {
    return static_cast<T*>(ScratchPush(static_cast<size_t>(count) * sizeof(T)));
  }

 private:
  size_t mark_;
};

}  // namespace

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_SCRATCH_H_
