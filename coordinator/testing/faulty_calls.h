// SPDX-License-Identifier: Apache-2.0
//
// The system calls that change files, in place of the C library's for the whole test program
// (SQLite and base/ included), so that each in turn can fail, or be the last thing that the process
// does, or the last before the power goes. For tests only; call by call, from one process at a
// time.

#ifndef LOCKSTEP_COORDINATOR_TESTING_FAULTY_CALLS_H_
#define LOCKSTEP_COORDINATOR_TESTING_FAULTY_CALLS_H_

#include <cstdint>
#include <string>

namespace lockstep::coordinator {

enum class FaultEffect {
  kFail,         // the call does nothing and gives `error`
  kFailApplied,  // the call is done, and gives `error`
  kExit,         // _exit before the call
  kExitApplied,  // _exit after it
  kPowerCut      // before the call: what no fsync has brought to the disk is lost or kept, at
                 // random by `seed`; then _exit
};

inline constexpr int kFaultExitStatus = 86;

struct Fault {
  int64_t at = 0;  // which call, counted from 1; none if 0
  FaultEffect effect = FaultEffect::kFail;
  int error = 5;  // EIO
  uint64_t seed = 0;
  // Also every call after it fails, as on a disk that stays full.
  bool forever = false;
};

// From now on counts the calls on files beneath `directory` (an absolute path without links).
void ArmFault(const std::string& directory, const Fault& fault);
void DisarmFault();
// Since ArmFault.
int64_t CallsMade();

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_TESTING_FAULTY_CALLS_H_
