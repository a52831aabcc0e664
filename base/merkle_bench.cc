// SPDX-License-Identifier: Apache-2.0
//
// The Merkle root of a tensor's worth of bytes against OpenSSL's SHA-256 over the same bytes, raw:
// one message, one thread, its rate times the threads of ours.

#include <openssl/evp.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/logging.h"
#include "base/merkle.h"
#include "bench/harness.h"

namespace lockstep {
namespace {

constexpr size_t kDataBytes = size_t{64} << 20;
constexpr size_t kLeafBytes = size_t{64} << 10;

std::vector<uint8_t> Data() {
  std::vector<uint8_t> data(kDataBytes);
  uint32_t state = 1;
  for (uint8_t& byte : data)
    byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return data;
}

LOCKSTEP_BENCH(merkle, "Merkle root over 64 KiB leaves, against raw SHA-256", b) {
  const std::vector<uint8_t> data = Data();
  for (int threads : {1, 2}) {
    ThreadPool& pool = b.Pool(threads);
    // A thread's share of the bytes: in the time this takes, that many threads would hash them all.
    const size_t share = kDataBytes / static_cast<size_t>(threads);
    b.Compare({.name = "64 KiB leaves " + std::to_string(threads) + "T",
               .unit = "GB/s",
               .work = static_cast<double>(kDataBytes),
               .ours = [&] { MerkleRoot(MerkleLeafHashes(data, kLeafBytes, pool), pool); },
               .peer = "OpenSSL x " + std::to_string(threads),
               .peer_call =
                   [&] {
                     uint8_t digest[EVP_MAX_MD_SIZE];
                     LOCKSTEP_CHECK(
                         EVP_Digest(data.data(), share, digest, nullptr, EVP_sha256(), nullptr));
                   }});
  }
}

}  // namespace
}  // namespace lockstep
