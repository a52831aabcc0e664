// SPDX-License-Identifier: Apache-2.0
//
// The key that makes records a trainer's own.
#ifndef LOCKSTEP_TRAINER_TRAINER_KEY_H_
#define LOCKSTEP_TRAINER_TRAINER_KEY_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/ed25519.h"

namespace lockstep::trainer {

// $XDG_CONFIG_HOME/lockstep/trainer.key, below ~/.config without it. Not in a run's folder, which
// people copy. FailedPrecondition without a home.
absl::StatusOr<std::string> DefaultTrainerKeyPath();

// The key of the file, which is made, with the folders above it, at the first use. Errors of
// Ed25519PrivateKey::Load.
absl::StatusOr<Ed25519PrivateKey> LoadOrCreateTrainerKey(const std::string& path);

}  // namespace lockstep::trainer

#endif  // LOCKSTEP_TRAINER_TRAINER_KEY_H_
