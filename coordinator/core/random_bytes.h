// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that nobody foresees: lease ids, nonces, canaries.

#ifndef LOCKSTEP_COORDINATOR_CORE_RANDOM_BYTES_H_
#define LOCKSTEP_COORDINATOR_CORE_RANDOM_BYTES_H_

#include <openssl/rand.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "base/logging.h"

namespace lockstep::coordinator {

template <size_t kBytes>
std::array<uint8_t, kBytes> RandomBytes() {
  std::array<uint8_t, kBytes> bytes;
  LOCKSTEP_CHECK(RAND_bytes(bytes.data(), kBytes) == 1, "the system gives no random numbers");
  return bytes;
}

// In [0, 1), of 53 bits.
inline double RandomUniform() {
  const std::array<uint8_t, 8> bytes = RandomBytes<8>();
  uint64_t bits;
  std::memcpy(&bits, bytes.data(), sizeof bits);
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_CORE_RANDOM_BYTES_H_
