// SPDX-License-Identifier: Apache-2.0
//
// Where a damaged checkpoint is damaged, as far as its run kept the leaves of the step that made
// it. That a checkpoint is damaged at all, VerifyCheckpoint says (state/checkpoint.h).
#ifndef LOCKSTEP_ENGINE_STATE_LOCATE_DAMAGE_H_
#define LOCKSTEP_ENGINE_STATE_LOCATE_DAMAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/run/run_folder.h"

namespace lockstep::engine {

// The first chunk in the order of files and tensors whose bytes have another hash than its leaf:
// "FILE: tensor "NAME", chunk N". NotFound if the run has no leaves that the checkpoint's record
// commits to, or if they find no difference; else the errors of reading the files.
absl::StatusOr<std::string> LocateDamage(const RunFolder& run, const std::string& checkpoint);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_STATE_LOCATE_DAMAGE_H_
