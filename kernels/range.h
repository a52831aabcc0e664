// SPDX-License-Identifier: Apache-2.0
//
// A half-open range of a kernel's work items: rows, columns, tiles, whatever the kernel's header
// names.
#ifndef LOCKSTEP_KERNELS_RANGE_H_
#define LOCKSTEP_KERNELS_RANGE_H_

#include <cstdint>

namespace lockstep::kernels {

struct Range {
  int64_t begin;
  int64_t end;
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_RANGE_H_
