// SPDX-License-Identifier: Apache-2.0
//
// Which instruction set the kernels of this process use. All of them return the same bits; the
// choice is a matter of speed.
#ifndef LOCKSTEP_KERNELS_ISA_H_
#define LOCKSTEP_KERNELS_ISA_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::kernels {

enum class Isa {
  kReference,  // scalar: the definition of the bits
  kAvx2,       // x86-64 with AVX2 and FMA (x86-64-v3)
  kAvx512,     // x86-64 with AVX-512 F, BW, DQ, VL and VNNI
  kNeon,       // 64-bit ARM with the dot product extension (ARMv8.2-A)
};

// "reference", "avx2", "avx512", "neon": as written in receipts and in LOCKSTEP_ISA.
absl::string_view IsaName(Isa isa);

// The instruction sets that this build has kernels for and this processor can run, slowest first;
// the reference is always among them on a processor that lockstep supports.
std::vector<Isa> AvailableIsas();

// The fastest available one, or the one that the environment variable LOCKSTEP_ISA names. An
// unknown name, or one that this machine cannot run, is an error that lists the choices; so is a
// processor without fused multiply-add.
absl::StatusOr<Isa> ChooseIsa();

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_ISA_H_
