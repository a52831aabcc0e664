// SPDX-License-Identifier: Apache-2.0
//
// Which instruction sets a test covers.
#ifndef LOCKSTEP_KERNELS_TESTING_ISAS_H_
#define LOCKSTEP_KERNELS_TESTING_ISAS_H_

#include <vector>

#include "kernels/isa.h"

namespace lockstep::kernels {

// The vector instruction sets that this machine can run. One that this build has but the machine
// has not is reported on standard output; named in LOCKSTEP_REQUIRE_ISA (a comma-separated list)
// its absence fails the calling test.
std::vector<Isa> TestedIsas();

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_TESTING_ISAS_H_
