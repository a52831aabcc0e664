// SPDX-License-Identifier: Apache-2.0
//
// What every operation runs on, and the one way to run a kernel of the list: Run(context,
// Args{...}).
#ifndef LOCKSTEP_KERNELS_CONTEXT_H_
#define LOCKSTEP_KERNELS_CONTEXT_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/dispatch.h"

namespace lockstep::kernels {

// Threads and an instruction set. Neither changes a result.
struct Context {
  ThreadPool& pool;
  const KernelTable& kernels;
  // Upper bound on the items a thread takes at once; tests set 1 to cut the work as finely as it
  // goes.
  int64_t grain_max = std::numeric_limits<int64_t>::max();

  // pool.ParallelFor with the bound applied.
  void ParallelFor(int64_t items, int64_t grain,
                   absl::FunctionRef<void(int64_t, int64_t)> fn) const {
    pool.ParallelFor(items, std::min(grain, grain_max), fn);
  }
};

// Runs the kernel that takes Args over all its items. Args has
//   int64_t items() const: how many independent pieces of work there are;
//   int64_t grain() const: how many of them are worth a thread's wake-up.
template <class Args>
void Run(const Context& context, const Args& args) {
  context.ParallelFor(args.items(), args.grain(), [&](int64_t begin, int64_t end) {
    KernelOf<Args>(context.kernels)(args, Range{begin, end});
  });
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_CONTEXT_H_
