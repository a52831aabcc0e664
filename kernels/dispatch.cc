// SPDX-License-Identifier: Apache-2.0
//
// The tables behind KernelsFor(). Compiled for the baseline of its architecture.
#include "kernels/dispatch.h"

#include <string>

#include "base/logging.h"

namespace lockstep::kernels {

// Declarations of every kernel in every instruction set of this build.
#define LOCKSTEP_KERNEL(Name)                     \
  void Name##Reference(const Name##Args&, Range); \
  LOCKSTEP_INNER(Name)
#if defined(__x86_64__)
#define LOCKSTEP_INNER(Name)                 \
  void Name##Avx2(const Name##Args&, Range); \
  void Name##Avx512(const Name##Args&, Range);
#elif defined(__aarch64__)
#define LOCKSTEP_INNER(Name) void Name##Neon(const Name##Args&, Range);
#endif
#include "kernels/kernel_list.inc"
#undef LOCKSTEP_KERNEL
#undef LOCKSTEP_INNER

namespace {

constexpr KernelTable kReferenceTable = {
    Isa::kReference,
#define LOCKSTEP_KERNEL(Name) Name##Reference,
#define LOCKSTEP_INNER(Name) nullptr,
#include "kernels/kernel_list.inc"
#undef LOCKSTEP_KERNEL
#undef LOCKSTEP_INNER
};

#define LOCKSTEP_INNER(Name) LOCKSTEP_KERNEL(Name)
#if defined(__x86_64__)
#define LOCKSTEP_KERNEL(Name) Name##Avx2,
constexpr KernelTable kAvx2Table = {
    Isa::kAvx2,
#include "kernels/kernel_list.inc"
};
#undef LOCKSTEP_KERNEL
#define LOCKSTEP_KERNEL(Name) Name##Avx512,
constexpr KernelTable kAvx512Table = {
    Isa::kAvx512,
#include "kernels/kernel_list.inc"
};
#undef LOCKSTEP_KERNEL
#elif defined(__aarch64__)
#define LOCKSTEP_KERNEL(Name) Name##Neon,
constexpr KernelTable kNeonTable = {
    Isa::kNeon,
#include "kernels/kernel_list.inc"
};
#undef LOCKSTEP_KERNEL
#endif
#undef LOCKSTEP_INNER

}  // namespace

const KernelTable& KernelsFor(Isa isa) {
  switch (isa) {
    case Isa::kReference:
      return kReferenceTable;
#if defined(__x86_64__)
    case Isa::kAvx2:
      return kAvx2Table;
    case Isa::kAvx512:
      return kAvx512Table;
#elif defined(__aarch64__)
    case Isa::kNeon:
      return kNeonTable;
#endif
    default:
      LOCKSTEP_CHECK(false, "no kernels for {} in this build", std::string(IsaName(isa)));
      return kReferenceTable;
  }
}

}  // namespace lockstep::kernels
