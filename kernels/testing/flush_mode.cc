// SPDX-License-Identifier: Apache-2.0
//
// The control registers behind FlushMode.
#include "kernels/testing/flush_mode.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace lockstep::kernels {
namespace {

#if defined(__x86_64__)
constexpr uint64_t kFlushBits = 0x8040;  // FTZ (bit 15), DAZ (bit 6)
uint64_t Read() { return _mm_getcsr(); }
void Write(uint64_t control) { _mm_setcsr(static_cast<unsigned>(control)); }
#elif defined(__aarch64__)
constexpr uint64_t kFlushBits = 1u << 24;  // FZ
uint64_t Read() {
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
void Write(uint64_t control) { __asm__ volatile("msr fpcr, %0" : : "r"(control)); }
#endif

}  // namespace

FlushMode::FlushMode(bool flush) : saved_(Read()) {
  Write(flush ? saved_ | kFlushBits : saved_ & ~kFlushBits);
}
FlushMode::~FlushMode() { Write(saved_); }

bool FlushesToZero() {
  volatile float smallest_normal = 0x1p-126f;
  volatile float half = smallest_normal * 0.5f;
  return half == 0.0f;
}

}  // namespace lockstep::kernels
