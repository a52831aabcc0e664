// SPDX-License-Identifier: Apache-2.0
//
// OpenSSL's Ed25519, the keys that it should not be given, and the file of a private one.
#include "base/ed25519.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/logging.h"
#include "base/status.h"

namespace lockstep {
namespace {

constexpr size_t kKeyFileBytesMax = 4096;

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

// y of the points of small order below, without the sign of x: little-endian, all of them
// canonical. 0 has order 4, 1 order 1, p - 1 order 2, and the last two order 8.
constexpr absl::string_view kSmallOrderY[] = {
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"};

using Coordinate = std::array<uint8_t, 32>;

// Those and p itself, which stands for 0 if somebody reduces it: y >= p is refused apart.
const std::array<Coordinate, std::size(kSmallOrderY)>& SmallOrderY() {
  static const auto values = [] {
    std::array<Coordinate, std::size(kSmallOrderY)> result;
    for (size_t i = 0; i < result.size(); ++i) {
      result[i] = Digest::FromHex(kSmallOrderY[i]).value().bytes;
    }
    return result;
  }();
  return values;
}

// Why a key of these bytes is refused; empty if it is not. Not secret, so it may take its time.
absl::string_view WhyRefused(const Coordinate& bytes) {
  Coordinate y = bytes;
  y[31] &= 0x7f;
  // p = 2^255 - 19 is ed ff .. ff 7f.
  const bool high = y[31] == 0x7f && std::all_of(y.begin() + 1, y.begin() + 31,
                                                 [](uint8_t byte) { return byte == 0xff; });
  if (high && y[0] >= 0xed) return "its y is not below 2^255 - 19";
  if (std::find(SmallOrderY().begin(), SmallOrderY().end(), y) != SmallOrderY().end()) {
    return "it is a point of small order";
  }
  return "";
}

// No prompt on a terminal for a key that is encrypted.
int NoPassword(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

absl::StatusOr<std::string> EncodePem(EVP_PKEY* key) {
  BIO* const bio = BIO_new(BIO_s_secmem());
  const absl::Cleanup free_bio = [bio] { BIO_free(bio); };
  char* text = nullptr;
  if (bio == nullptr ||
      PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    ERR_clear_error();
    return absl::InternalError("OpenSSL cannot write a key as PEM");
  }
  const long size = BIO_get_mem_data(bio, &text);
  return std::string(text, static_cast<size_t>(size));
}

}  // namespace

absl::StatusOr<Ed25519PublicKey> Ed25519PublicKey::FromBytes(ByteSpan bytes) {
  Ed25519PublicKey key;
  if (bytes.size() != key.bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an Ed25519 public key has 32 bytes; found ", bytes.size()));
  }
  std::copy(bytes.begin(), bytes.end(), key.bytes.begin());
  if (const absl::string_view why = WhyRefused(key.bytes); !why.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the Ed25519 public key ", key.ToHex(), " is refused: ", why));
  }
  return key;
}

absl::StatusOr<Ed25519PublicKey> Ed25519PublicKey::FromHex(absl::string_view text) {
  const absl::StatusOr<Digest> bytes = Digest::FromHex(text);
  if (!bytes.ok() || bytes->ToHex() != text) {
    return absl::InvalidArgumentError(
        "expected 64 lower-case hexadecimal digits of an Ed25519 public key; found something else");
  }
  return FromBytes(bytes->bytes);
}

std::string Ed25519PublicKey::ToHex() const { return HexEncode(bytes); }

Digest Ed25519PublicKey::Id() const { return Sha256(bytes); }

bool VerifyEd25519(const Ed25519PublicKey& key, ByteSpan message, ByteSpan signature) {
  if (signature.size() != kEd25519SignatureBytes || !WhyRefused(key.bytes).empty()) return false;
  EVP_PKEY* const handle =
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.bytes.data(), key.bytes.size());
  const absl::Cleanup free_handle = [handle] { EVP_PKEY_free(handle); };
  const Context context(EVP_MD_CTX_new());
  const bool valid = handle != nullptr && context != nullptr &&
                     EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, handle) == 1 &&
                     EVP_DigestVerify(context.get(), signature.data(), signature.size(),
                                      message.data(), message.size()) == 1;
  // What OpenSSL noted about a wrong signature is nobody else's error.
  if (!valid) ERR_clear_error();
  return valid;
}

void Ed25519PrivateKey::Free::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }

Ed25519PrivateKey::Ed25519PrivateKey(Handle key) : key_(std::move(key)) {}

absl::StatusOr<Ed25519PrivateKey> Ed25519PrivateKey::FromHandle(Handle handle) {
  Ed25519PrivateKey key(std::move(handle));
  size_t size = key.public_key_.bytes.size();
  if (key.key_ == nullptr || EVP_PKEY_get_id(key.key_.get()) != EVP_PKEY_ED25519 ||
      EVP_PKEY_get_raw_public_key(key.key_.get(), key.public_key_.bytes.data(), &size) != 1) {
    ERR_clear_error();
    return absl::InternalError("OpenSSL made no Ed25519 key");
  }
  return key;
}

absl::StatusOr<Ed25519PrivateKey> Ed25519PrivateKey::Generate() {
  return FromHandle(Handle(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")));
}

absl::StatusOr<Ed25519PrivateKey> Ed25519PrivateKey::FromSeed(ByteSpan seed) {
  if (seed.size() != 32) {
    return absl::InvalidArgumentError(
        absl::StrCat("an Ed25519 private key has 32 bytes; found ", seed.size()));
  }
  return FromHandle(
      Handle(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size())));
}

absl::StatusOr<Ed25519PrivateKey> Ed25519PrivateKey::Create(const std::string& path) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) == 0) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists: a key is never written over"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Ed25519PrivateKey key, Generate());
  LOCKSTEP_ASSIGN_OR_RETURN(std::string text, EncodePem(key.key_.get()));
  const absl::Cleanup wipe = [&text] { OPENSSL_cleanse(text.data(), text.size()); };
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(path, AsBytes(text), 0600));
  return key;
}

absl::StatusOr<Ed25519PrivateKey> Ed25519PrivateKey::Load(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("look at key file ", path));
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("key file ", path,
                     ": others than its owner have access to it; chmod 600 it, and replace "
                     "the key if they may have used that"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kKeyFileBytesMax));
  const absl::Cleanup wipe = [&text] { OPENSSL_cleanse(text.data(), text.size()); };
  BIO* const bio = BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
  const absl::Cleanup free_bio = [bio] { BIO_free(bio); };
  Handle handle(PEM_read_bio_PrivateKey(bio, nullptr, NoPassword, nullptr));
  ERR_clear_error();
  absl::StatusOr<Ed25519PrivateKey> key = FromHandle(std::move(handle));
  if (key.ok()) return key;
  return absl::DataLossError(
      absl::StrCat("key file ", path, ": expected an Ed25519 private key as PEM, not encrypted"));
}

Ed25519Signature Ed25519PrivateKey::Sign(ByteSpan message) const {
  Ed25519Signature signature;
  size_t size = signature.size();
  const Context context(EVP_MD_CTX_new());
  const bool signed_it =
      context != nullptr &&
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
      EVP_DigestSign(context.get(), signature.data(), &size, message.data(), message.size()) == 1;
  LOCKSTEP_CHECK(signed_it && size == signature.size(), "OpenSSL cannot sign");
  return signature;
}

}  // namespace lockstep
