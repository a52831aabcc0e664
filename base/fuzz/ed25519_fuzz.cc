// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: public keys and signatures. What a key is made of is what it gives back; of
// arbitrary bytes nothing verifies; and a signature that a changed input still fits would be a
// forgery.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/ed25519.h"
#include "base/logging.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const ByteSpan input(data, size);
  if (const auto key = Ed25519PublicKey::FromBytes(input.first(std::min<size_t>(size, 32)));
      key.ok()) {
    LOCKSTEP_CHECK(Ed25519PublicKey::FromHex(key->ToHex()).value() == *key);
    if (size >= 96) {
      LOCKSTEP_CHECK(!VerifyEd25519(*key, input.subspan(96), input.subspan(32, 64)));
    }
  }
  static const auto* const signer = new Ed25519PrivateKey(
      Ed25519PrivateKey::FromSeed(AsBytes("a seed of exactly 32 bytes, yes.")).value());
  Ed25519Signature signature = signer->Sign(input);
  LOCKSTEP_CHECK(VerifyEd25519(signer->public_key(), input, signature));
  if (size >= 2 && data[1] != 0) {
    signature[data[0] % signature.size()] ^= data[1];
    LOCKSTEP_CHECK(!VerifyEd25519(signer->public_key(), input, signature));
  }
  return 0;
}
