// SPDX-License-Identifier: Apache-2.0
//
// Kernels by instruction set: one table of function pointers each, made from kernel_list.inc.
#ifndef LOCKSTEP_KERNELS_DISPATCH_H_
#define LOCKSTEP_KERNELS_DISPATCH_H_

#include "kernels/isa.h"
#include "kernels/range.h"

namespace lockstep::kernels {

#define LOCKSTEP_KERNEL(Name) struct Name##Args;
#define LOCKSTEP_INNER(Name) struct Name##Args;
#include "kernels/kernel_list.inc"
#undef LOCKSTEP_KERNEL
#undef LOCKSTEP_INNER

struct KernelTable {
  Isa isa;
#define LOCKSTEP_KERNEL(Name) void (*Name)(const Name##Args&, Range);
#define LOCKSTEP_INNER(Name) \
  void (*Name)(const Name##Args&, Range);  // null in the reference's table
#include "kernels/kernel_list.inc"
#undef LOCKSTEP_KERNEL
#undef LOCKSTEP_INNER
};

// The table of one of AvailableIsas(); any other is a bug of the caller.
const KernelTable& KernelsFor(Isa isa);

// The entry of `table` that takes Args.
template <class Args>
void (*KernelOf(const KernelTable& table))(const Args&, Range);
#define LOCKSTEP_KERNEL(Name)                                                               \
  template <>                                                                               \
  inline void (*KernelOf<Name##Args>(const KernelTable& table))(const Name##Args&, Range) { \
    return table.Name;                                                                      \
  }
#define LOCKSTEP_INNER(Name) LOCKSTEP_KERNEL(Name)
#include "kernels/kernel_list.inc"
#undef LOCKSTEP_KERNEL
#undef LOCKSTEP_INNER

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_DISPATCH_H_
