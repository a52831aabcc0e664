// SPDX-License-Identifier: Apache-2.0
//
// The control bits behind FlushMode.
#include "kernels/testing/flush_mode.h"

#include "base/fp_control.h"

namespace lockstep::kernels {
namespace {

#if defined(__x86_64__)
constexpr uint64_t kFlushBits = 0x8040;  // FTZ (bit 15), DAZ (bit 6) of MXCSR
#elif defined(__aarch64__)
constexpr uint64_t kFlushBits = 1u << 24;  // FZ of FPCR
#endif

}  // namespace

FlushMode::FlushMode(bool flush) : saved_(FpControl()) {
  SetFpControl(flush ? saved_ | kFlushBits : saved_ & ~kFlushBits);
}
FlushMode::~FlushMode() { SetFpControl(saved_); }

bool FlushesToZero() {
  volatile float smallest_normal = 0x1p-126f;
  volatile float half = smallest_normal * 0.5f;
  return half == 0.0f;
}

}  // namespace lockstep::kernels
