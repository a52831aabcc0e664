// SPDX-License-Identifier: Apache-2.0
//
// The ledger's refusals as errors of the wire: with the reasons that proto/lockstep/v1 names.

#ifndef LOCKSTEP_COORDINATOR_CORE_REASONS_H_
#define LOCKSTEP_COORDINATOR_CORE_REASONS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "audit/evidence/log_entry.h"

namespace lockstep::coordinator {

// A refusal (audit/ledger/refusal.h) of an entry of this kind, with its reason. Other statuses are
// returned as they are.
absl::Status WithWireReason(const absl::Status& refusal, audit::EntryKind kind);

// An error of a code with a reason.
absl::Status Refused(absl::StatusCode code, absl::string_view reason, absl::string_view message);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_CORE_REASONS_H_
