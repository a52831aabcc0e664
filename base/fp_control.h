// SPDX-License-Identifier: Apache-2.0
//
// The floating-point control word of the calling thread: rounding mode, flush-to-zero, trap masks
// (MXCSR on x86-64, FPCR on AArch64). The thread pool copies it to its workers, so that a caller's
// mode holds wherever its work runs. Not a way to choose a mode: no result here may depend on it.

#ifndef LOCKSTEP_BASE_FP_CONTROL_H_
#define LOCKSTEP_BASE_FP_CONTROL_H_

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep {

// The control bits, without the sticky exception flags, which are results and stay with the thread
// that raised them.
inline uint64_t FpControl() {
#if defined(__x86_64__)
  return _mm_getcsr() & ~uint32_t{0x3f};
#elif defined(__aarch64__)
  uint64_t word;
  asm volatile("mrs %0, fpcr" : "=r"(word));
  return word;
#else
  return 0;
#endif
}

// Sets the control bits to a value that FpControl() gave, possibly on another thread.
inline void SetFpControl(uint64_t word) {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<uint32_t>(word) | (_mm_getcsr() & 0x3f));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(word) : "memory");
#else
  static_cast<void>(word);
#endif
}

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_FP_CONTROL_H_
