// SPDX-License-Identifier: Apache-2.0
//
// The tables of the coordinator's database, version by version.

#ifndef LOCKSTEP_COORDINATOR_STORE_MIGRATIONS_H_
#define LOCKSTEP_COORDINATOR_STORE_MIGRATIONS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep::coordinator {

inline constexpr int32_t kStoreApplicationId = 0x4c6b5374;  // "LkSt"

// The i-th leads from version i to i + 1. One that was released is never changed: add another.
absl::Span<const char* const> StoreMigrations();

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_STORE_MIGRATIONS_H_
