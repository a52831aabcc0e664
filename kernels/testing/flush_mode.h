// SPDX-License-Identifier: Apache-2.0
//
// Hardware flush-to-zero, switched for a test: FTZ and DAZ in x86's MXCSR, FZ in ARM's FPCR.
#ifndef LOCKSTEP_KERNELS_TESTING_FLUSH_MODE_H_
#define LOCKSTEP_KERNELS_TESTING_FLUSH_MODE_H_

#include <cstdint>

namespace lockstep::kernels {

// Sets the calling thread's mode and restores the old one at the end of the scope.
class FlushMode {
 public:
  explicit FlushMode(bool flush);
  ~FlushMode();
  FlushMode(const FlushMode&) = delete;
  FlushMode& operator=(const FlushMode&) = delete;

 private:
  uint64_t saved_;
};

// Whether subnormal results are flushed on this thread, found by making one.
bool FlushesToZero();

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_TESTING_FLUSH_MODE_H_
