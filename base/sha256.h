// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4) by OpenSSL, which uses the machine's SHA instructions, and the digest type
// that the whole project names things by.

#ifndef LOCKSTEP_BASE_SHA256_H_
#define LOCKSTEP_BASE_SHA256_H_

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/bytes.h"

struct evp_md_ctx_st;

namespace lockstep {

struct Digest {
  std::array<uint8_t, 32> bytes{};

  // 64 lower-case digits.
  std::string ToHex() const;
  // 64 digits of either case, and nothing else; InvalidArgument otherwise.
  static absl::StatusOr<Digest> FromHex(absl::string_view text);
  // Exactly 32 bytes; InvalidArgument otherwise.
  static absl::StatusOr<Digest> FromBytes(ByteSpan bytes);

  bool operator==(const Digest&) const = default;
  // As byte strings.
  auto operator<=>(const Digest&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const Digest& digest) {
    return H::combine(std::move(state), digest.bytes);
  }
};

// Hashes one message after another. Not for several threads at once.
class Sha256Hasher {
 public:
  Sha256Hasher();
  ~Sha256Hasher();
  Sha256Hasher(Sha256Hasher&&) noexcept;
  Sha256Hasher& operator=(Sha256Hasher&&) noexcept;

  void Update(ByteSpan bytes);
  // The digest of all bytes since construction or the last Finish; starts a new message.
  Digest Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// The digest of `bytes`, or of `parts` one after another. From any thread, without allocation
// after a thread's first call.
Digest Sha256(ByteSpan bytes);
Digest Sha256(std::initializer_list<ByteSpan> parts);

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_SHA256_H_
