// SPDX-License-Identifier: Apache-2.0
//
// Between the messages of proto/lockstep/v1 and the coordinator's values. What comes from the wire
// is a stranger's; errors are InvalidArgument with the reason REQUEST_INVALID.

#ifndef LOCKSTEP_COORDINATOR_SERVICE_WIRE_H_
#define LOCKSTEP_COORDINATOR_SERVICE_WIRE_H_

#include <google/protobuf/repeated_field.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/core/coordinator.h"
#include "lockstep/v1/audit.pb.h"
#include "lockstep/v1/common.pb.h"
#include "lockstep/v1/public.pb.h"

namespace lockstep::coordinator {

absl::Status RequestInvalid(absl::string_view message);

std::string ToWire(const Digest& digest);
v1::StepState ToWire(audit::StepState state);
v1::Quorum ToWire(const audit::Quorum& quorum);
void CountsToWire(const std::array<uint64_t, audit::kStepStates>& by_state, v1::Counts* counts);

absl::StatusOr<Digest> DigestFromWire(absl::string_view bytes, absl::string_view field);
absl::StatusOr<std::vector<ArtifactSource>> ArtifactsFromWire(
    const google::protobuf::RepeatedPtrField<v1::Artifact>& artifacts);

// The receipt of an entry that is durable.
absl::StatusOr<v1::Receipt> MakeReceipt(const Coordinator& coordinator,
                                        const audit::EntryRef& entry);

// With what is in the store: the records, the run, the files and their mirrors.
absl::StatusOr<v1::Lease> LeaseToWire(const Coordinator& coordinator, const LeaseGrant& grant);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_SERVICE_WIRE_H_
