// SPDX-License-Identifier: Apache-2.0
//
// Digests that can be told apart at a glance. For tests.
#ifndef LOCKSTEP_AUDIT_TESTING_DIGESTS_H_
#define LOCKSTEP_AUDIT_TESTING_DIGESTS_H_

#include <cstdint>

#include "base/sha256.h"

namespace lockstep::audit {

// 32 times the byte.
inline Digest Filled(uint8_t byte) {
  Digest digest;
  digest.bytes.fill(byte);
  return digest;
}

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_TESTING_DIGESTS_H_
