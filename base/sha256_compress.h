// SPDX-License-Identifier: Apache-2.0
//
// The compression function of SHA-256 for two messages in step. Plain types only: the file that has
// it is compiled for instructions that not every machine has, and must not leave code of anyone
// else's templates behind.

#ifndef LOCKSTEP_BASE_SHA256_COMPRESS_H_
#define LOCKSTEP_BASE_SHA256_COMPRESS_H_

#include <cstddef>
#include <cstdint>

namespace lockstep::sha256_internal {

// Whether this machine can run the other.
bool CanCompressPair() noexcept;

// `blocks` blocks of 64 bytes, from data[m] on, into states[m], which has eight words.
void CompressPair(uint32_t* const states[2], const uint8_t* const data[2], size_t blocks) noexcept;

}  // namespace lockstep::sha256_internal

#endif  // LOCKSTEP_BASE_SHA256_COMPRESS_H_
