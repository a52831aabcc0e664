// SPDX-License-Identifier: Apache-2.0
//
// Mirrors: base URLs below which artifacts are, as trainers name them, and strangers. What a name
// leads to when somebody asks for it is not known here.

#ifndef LOCKSTEP_COORDINATOR_CORE_MIRROR_H_
#define LOCKSTEP_COORDINATOR_CORE_MIRROR_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace lockstep::coordinator {

inline constexpr size_t kMirrorsMax = 8;  // of one artifact: by one source, and served in a lease

// An http or https URL of printable ASCII, of at most 1,024 bytes.
bool IsMirror(absl::string_view url);

// One that volunteers' machines may be sent to by a stranger: besides, no query, fragment or user;
// and the host is a name with a dot of no local domain, or an address, written in full, that is
// neither loopback nor private nor of a link.
bool IsPublicMirror(absl::string_view url);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_CORE_MIRROR_H_
