// SPDX-License-Identifier: Apache-2.0
//
// What a worker says of a step that it has replayed, and in whose name: the attestation and what is
// needed to open it later, as an item of the outbox.
#ifndef LOCKSTEP_WORKER_ATTESTER_H_
#define LOCKSTEP_WORKER_ATTESTER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "audit/evidence/attestation.h"
#include "base/ed25519.h"
#include "engine/train_step.h"
#include "kernels/isa.h"
#include "worker/lease.h"
#include "worker/outbox.h"

namespace lockstep::worker {

// Which program and which machine.
struct Witness {
  audit::AttestingEngine engine;
  audit::AttestingBackend backend;
};

// "x86-avx2", ...: the class that diversity is counted in.
std::string BackendClass(kernels::Isa isa);

// This program (its file is hashed) on this processor.
absl::StatusOr<Witness> ThisWitness(int threads);

// result: of a step in [lease.begin, lease.end). difference: null for a match. replayed_at is cut
// to whole seconds. ResourceExhausted if the entry is too large for a log.
absl::StatusOr<OutboxItem> MakeAttestation(const WorkLease& lease, const std::string& origin,
                                           const Witness& witness, const Ed25519PrivateKey& key,
                                           const engine::StepResult& result,
                                           const audit::Difference* difference,
                                           absl::Time replayed_at);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ATTESTER_H_
