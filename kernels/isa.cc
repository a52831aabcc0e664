// SPDX-License-Identifier: Apache-2.0
//
// Processor detection. This file is compiled for the baseline of its architecture, so that it can
// say what is missing.
#include "kernels/isa.h"

#include <cstdlib>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace lockstep::kernels {
namespace {

#if defined(__x86_64__)
bool CanRun(Isa isa) {
  switch (isa) {
    case Isa::kReference:
      return __builtin_cpu_supports("fma");
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::kAvx512:
      return CanRun(Isa::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
    case Isa::kNeon:
      return false;
  }
  return false;
}
#elif defined(__aarch64__)
bool CanRun(Isa isa) {
  constexpr unsigned long kHwcapAsimdDp = 1ul << 20;  // HWCAP_ASIMDDP of the Linux ABI
  if (isa == Isa::kNeon) return (getauxval(AT_HWCAP) & kHwcapAsimdDp) != 0;
  return isa == Isa::kReference;
}
#endif

std::string NamesOf(const std::vector<Isa>& isas) {
  return absl::StrJoin(isas, ", ",
                       [](std::string* out, Isa isa) { absl::StrAppend(out, IsaName(isa)); });
}

}  // namespace

absl::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kReference:
      return "reference";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kNeon:
      return "neon";
  }
  return "unknown";
}

std::vector<Isa> AvailableIsas() {
  std::vector<Isa> available;
  for (Isa isa : {Isa::kReference, Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
    if (CanRun(isa)) available.push_back(isa);
  }
  return available;
}

absl::StatusOr<Isa> ChooseIsa() {
  const std::vector<Isa> available = AvailableIsas();
  if (available.empty()) {
    return absl::FailedPreconditionError(
        "this processor has no fused multiply-add instruction, which lockstep's kernels require; "
        "use an x86-64 processor "
        "from 2013 or later (Haswell, Zen), or a 64-bit ARM one");
  }
  const char* wanted = std::getenv("LOCKSTEP_ISA");
  if (wanted == nullptr || *wanted == '\0') return available.back();
  const auto found = absl::c_find_if(available, [&](Isa isa) { return IsaName(isa) == wanted; });
  if (found != available.end()) return *found;
  return absl::InvalidArgumentError(absl::StrCat("LOCKSTEP_ISA is \"", wanted,
                                                 "\"; this machine can run: ", NamesOf(available),
                                                 ". Unset it to take the fastest"));
}

}  // namespace lockstep::kernels
