// SPDX-License-Identifier: Apache-2.0
//
// Ed25519 signatures (RFC 8032) by OpenSSL, with the check that OpenSSL leaves out: public keys
// that are small-order points or not encoded canonically are refused, since with some of them one
// signature fits every message. Keys with a small-order part beside a large one stay: their owner
// could sign what others cannot, and nothing else.
#ifndef LOCKSTEP_BASE_ED25519_H_
#define LOCKSTEP_BASE_ED25519_H_

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/bytes.h"
#include "base/sha256.h"

struct evp_pkey_st;

namespace lockstep {

// As FromBytes and FromHex give it, one of the keys that are taken. (A default one verifies
// nothing.)
struct Ed25519PublicKey {
  std::array<uint8_t, 32> bytes{};

  // Exactly 32 bytes. InvalidArgument for other lengths, the 14 encodings of the eight small-order
  // points, and a y that is not below 2^255 - 19. Whether the point is on the curve shows when a
  // signature is verified.
  static absl::StatusOr<Ed25519PublicKey> FromBytes(ByteSpan bytes);
  // 64 lower-case digits of such a key, and nothing else.
  static absl::StatusOr<Ed25519PublicKey> FromHex(absl::string_view text);

  std::string ToHex() const;
  // SHA-256 of the bytes: what a key goes by where a short name is wanted.
  Digest Id() const;

  bool operator==(const Ed25519PublicKey&) const = default;
  auto operator<=>(const Ed25519PublicKey&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const Ed25519PublicKey& key) {
    return H::combine(std::move(state), key.bytes);
  }
};

inline constexpr size_t kEd25519SignatureBytes = 64;
using Ed25519Signature = std::array<uint8_t, kEd25519SignatureBytes>;

// Whether `signature`, of any length, is the key's over `message`. False for a key that FromBytes
// refuses, for S not below the group's order and for R not canonical. Without the cofactor, as
// RFC 8032 section 5.1.7 allows. From any thread.
bool VerifyEd25519(const Ed25519PublicKey& key, ByteSpan message, ByteSpan signature);

// Move-only. Sign from any thread.
class Ed25519PrivateKey {
 public:
  // From the system's random numbers. Internal if it has none.
  static absl::StatusOr<Ed25519PrivateKey> Generate();
  // From RFC 8032's 32-byte private key. InvalidArgument for other lengths.
  static absl::StatusOr<Ed25519PrivateKey> FromSeed(ByteSpan seed);

  // A new key in a new file that only its owner may read: PEM, PKCS #8 (RFC 8410), as `openssl
  // pkey` takes it. AlreadyExists if there is anything of that name.
  static absl::StatusOr<Ed25519PrivateKey> Create(const std::string& path);
  // FailedPrecondition if others than the owner may read or write the file; DataLoss if it holds
  // anything but one key of this kind. Messages never quote the file.
  static absl::StatusOr<Ed25519PrivateKey> Load(const std::string& path);

  const Ed25519PublicKey& public_key() const { return public_key_; }

  Ed25519Signature Sign(ByteSpan message) const;

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };
  using Handle = std::unique_ptr<evp_pkey_st, Free>;
  explicit Ed25519PrivateKey(Handle key);
  static absl::StatusOr<Ed25519PrivateKey> FromHandle(Handle key);

  Handle key_;
  Ed25519PublicKey public_key_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_ED25519_H_
