// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator's refusal means for the owner of this machine, and when to ask again.
#ifndef LOCKSTEP_WORKER_ADVICE_H_
#define LOCKSTEP_WORKER_ADVICE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep::worker {

// One or two sentences: what has happened and what to do, of a reason that the owner can do
// something about (proto/lockstep/v1/audit.proto names them). Empty for all others.
std::string AdviceOn(const absl::Status& status);

// An error as the log has it: code or, if it has one, reason, and message.
std::string Words(const absl::Status& status);

// When the coordinator wants to be asked again (KEY_IN_USE, RATE_LIMITED, ...); nullopt: it does
// not say. A stranger's number: an hour at most.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ADVICE_H_
