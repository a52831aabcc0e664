// SPDX-License-Identifier: Apache-2.0
//
// From the outbox to the log: attestations, the coordinator's challenges, and the openings that
// answer them.
#ifndef LOCKSTEP_WORKER_OUTBOX_SENDER_H_
#define LOCKSTEP_WORKER_OUTBOX_SENDER_H_

#include <functional>

#include "absl/status/status.h"
#include "base/ed25519.h"
#include "worker/coordinator.h"
#include "worker/outbox.h"

namespace lockstep::worker {

struct SendReport {
  int finished = 0;  // attestations in the log, with what was asked of them
  int refused = 0;
  int tests = 0;  // about records that the coordinator had made up
};

// Sends what is there for this coordinator's log, in order, and stops at the first that has to
// wait: Unavailable, Cancelled (`stop` says so), or DataLoss, for an answer that is not what it
// must be: a receipt whose proof does not hold or that is of another entry, none at
// all for a record of the trainer, a challenge that is not
// the log key's. Then the item stays. What the coordinator refuses for good is put away with its
// reason. Each step of it may be done again after a kill.
absl::Status SendOutbox(Outbox& outbox, Coordinator& coordinator, const ServerInfo& server,
                        const Ed25519PrivateKey& key, const std::function<bool()>& stop,
                        SendReport* report);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_OUTBOX_SENDER_H_
