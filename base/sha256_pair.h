// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 of two messages at once. A message is a chain in which each round waits for the one
// before, so the SHA instructions of x86 stand idle half the time; two chains side by side fill
// that.

#ifndef LOCKSTEP_BASE_SHA256_PAIR_H_
#define LOCKSTEP_BASE_SHA256_PAIR_H_

#include <array>

#include "base/bytes.h"
#include "base/sha256.h"

namespace lockstep {

// Hashed as one byte string, head first.
struct SplitMessage {
  ByteSpan head;
  ByteSpan body;
};

// The digests of both, whatever they are. Faster than one after another where the machine has SHA
// instructions, the parts of both have the same lengths, and heads have fewer than 64 bytes. From
// any thread.
std::array<Digest, 2> Sha256Pair(const SplitMessage& a, const SplitMessage& b);

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_SHA256_PAIR_H_
