// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 over OpenSSL's EVP interface. The algorithm is fetched once and contexts are used again,
// for a fetch costs more than hashing a Merkle node does. See sha256.h.

#include "base/sha256.h"

#include <openssl/evp.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/logging.h"
#include "base/status.h"

namespace lockstep {
namespace {

const EVP_MD* Algorithm() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  LOCKSTEP_CHECK(algorithm != nullptr, "this OpenSSL has no SHA-256");
  return algorithm;
}

Sha256Hasher& ThreadHasher() {
  static thread_local Sha256Hasher hasher;
  return hasher;
}

}  // namespace

std::string Digest::ToHex() const { return HexEncode(bytes); }

absl::StatusOr<Digest> Digest::FromHex(absl::string_view text) {
  if (text.size() != 64) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a SHA-256 digest has 64 hexadecimal digits, found ", text.size(), " characters"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, HexDecode(text), "SHA-256 digest");
  return FromBytes(AsBytes(bytes));
}

absl::StatusOr<Digest> Digest::FromBytes(ByteSpan bytes) {
  Digest digest;
  if (bytes.size() != digest.bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a SHA-256 digest has 32 bytes, found ", bytes.size()));
  }
  std::copy(bytes.begin(), bytes.end(), digest.bytes.begin());
  return digest;
}

Sha256Hasher::Sha256Hasher() : context_(EVP_MD_CTX_new()) {
  LOCKSTEP_CHECK(context_ != nullptr && EVP_DigestInit_ex2(context_.get(), Algorithm(), nullptr));
}

Sha256Hasher::~Sha256Hasher() = default;
Sha256Hasher::Sha256Hasher(Sha256Hasher&&) noexcept = default;
Sha256Hasher& Sha256Hasher::operator=(Sha256Hasher&&) noexcept = default;

void Sha256Hasher::Update(ByteSpan bytes) {
  LOCKSTEP_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

Digest Sha256Hasher::Finish() {
  Digest digest;
  LOCKSTEP_CHECK(EVP_DigestFinal_ex(context_.get(), digest.bytes.data(), nullptr));
  LOCKSTEP_CHECK(EVP_DigestInit_ex2(context_.get(), Algorithm(), nullptr));
  return digest;
}

void Sha256Hasher::Free::operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }

Digest Sha256(ByteSpan bytes) {
  Sha256Hasher& hasher = ThreadHasher();
  hasher.Update(bytes);
  return hasher.Finish();
}

Digest Sha256(std::initializer_list<ByteSpan> parts) {
  Sha256Hasher& hasher = ThreadHasher();
  for (const ByteSpan part : parts) hasher.Update(part);
  return hasher.Finish();
}

}  // namespace lockstep
