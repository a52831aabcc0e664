// SPDX-License-Identifier: Apache-2.0
//
// The operators that a verifier listens to, as a file that people write: a key and a name a line.
// Format: docs/verify.md.
#ifndef LOCKSTEP_AUDIT_LEDGER_TRUST_LIST_H_
#define LOCKSTEP_AUDIT_LEDGER_TRUST_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/ed25519.h"

namespace lockstep::audit {

struct TrustedOperator {
  Ed25519PublicKey key;  // any that the operator has had
  std::string name;      // the verifier's own for it; may be empty
  bool operator==(const TrustedOperator&) const = default;
};

inline constexpr size_t kTrustListBytesMax = size_t{1} << 20;

// Lines of 64 lower-case hexadecimal digits and, after spaces or tabs, a name up to the line's end;
// empty lines and those that begin with '#' are passed over. InvalidArgument names the line: a key
// that is none, one that comes twice, control characters, or no key in the whole file.
absl::StatusOr<std::vector<TrustedOperator>> ParseTrustList(absl::string_view text);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LEDGER_TRUST_LIST_H_
