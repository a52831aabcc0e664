// SPDX-License-Identifier: Apache-2.0
//
// The processor as a backend: the kernels of the chosen instruction set on a pool of threads.
#ifndef LOCKSTEP_ENGINE_BACKEND_CPU_BACKEND_H_
#define LOCKSTEP_ENGINE_BACKEND_CPU_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/backend/backend.h"
#include "kernels/context.h"

namespace lockstep::engine {

// On the instruction set of kernels::ChooseIsa, whose errors it passes on. threads >= 1.
absl::StatusOr<std::unique_ptr<Backend>> CreateCpuBackend(int threads);

// On a given context, which must outlive it.
std::unique_ptr<Backend> CpuBackendOn(const kernels::Context& context);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_BACKEND_CPU_BACKEND_H_
