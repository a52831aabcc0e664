// SPDX-License-Identifier: Apache-2.0
//
// LOCKSTEP_REQUIRE_ISA and the report of what is missing.
#include "kernels/testing/isas.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace lockstep::kernels {

std::vector<Isa> TestedIsas() {
#if defined(__x86_64__)
  const std::vector<Isa> built = {Isa::kAvx2, Isa::kAvx512};
#else
  const std::vector<Isa> built = {Isa::kNeon};
#endif
  const std::vector<Isa> available = AvailableIsas();
  const char* required = std::getenv("LOCKSTEP_REQUIRE_ISA");
  const std::vector<std::string> must =
      absl::StrSplit(required == nullptr ? "" : required, ',', absl::SkipEmpty());
  for (const std::string& name : must) {
    EXPECT_TRUE(absl::c_any_of(available, [&](Isa isa) { return IsaName(isa) == name; }))
        << "LOCKSTEP_REQUIRE_ISA names " << name << ", which this machine or build has not";
  }
  std::vector<Isa> tested;
  for (Isa isa : built) {
    if (absl::c_linear_search(available, isa)) {
      tested.push_back(isa);
    } else {
      std::printf("not covered here: %s (this processor cannot run it)\n",
                  std::string(IsaName(isa)).c_str());
    }
  }
  return tested;
}

}  // namespace lockstep::kernels
