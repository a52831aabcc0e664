// SPDX-License-Identifier: Apache-2.0
//
// See signed_request.h.
#include "net/signed_request.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/encoding.h"
#include "net/http_range.h"

namespace lockstep::net {
namespace {

constexpr absl::string_view kScheme = "lockstep-ed25519 ";

// "NAME=" and twice `out`'s size of lower-case digits, off the front of `text`.
template <size_t size>
bool TakeHex(absl::string_view* text, absl::string_view name, std::array<uint8_t, size>* out) {
  if (!absl::ConsumePrefix(text, name) || text->size() < 2 * size) return false;
  const absl::string_view digits = text->substr(0, 2 * size);
  text->remove_prefix(2 * size);
  const absl::StatusOr<std::string> bytes = HexDecode(digits);
  if (!bytes.ok() || HexEncode(AsBytes(*bytes)) != digits) return false;
  std::copy(bytes->begin(), bytes->end(), out->begin());
  return true;
}

bool TakeTime(absl::string_view* text, int64_t* out) {
  if (!absl::ConsumePrefix(text, ",time=")) return false;
  const absl::string_view digits = text->substr(0, text->find(','));
  if (digits.size() > 1 && digits.front() == '0') return false;
  const std::optional<uint64_t> value = ParseDecimal(digits);
  if (!value || *value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
  *out = static_cast<int64_t>(*value);
  text->remove_prefix(digits.size());
  return true;
}

}  // namespace

absl::StatusOr<std::string> SigningText(const RequestClaim& claim) {
  for (const std::string* field :
       {&claim.method, &claim.path, &claim.audience, &claim.content_range}) {
    if (field->find('\n') != std::string::npos) {
      return absl::InvalidArgumentError("a field of a signed request holds a line feed");
    }
  }
  return absl::StrCat("lockstep-request-v1\n", claim.method, "\n", claim.path, "\n", claim.audience,
                      "\n", claim.content_range, "\n", claim.time, "\n", HexEncode(claim.nonce),
                      "\n");
}

std::string FormatAuthorization(const RequestSignature& signature) {
  return absl::StrCat(kScheme, "key=", HexEncode(signature.key), ",time=", signature.time,
                      ",nonce=", HexEncode(signature.nonce),
                      ",signature=", HexEncode(signature.signature));
}

absl::StatusOr<RequestSignature> ParseAuthorization(absl::string_view text) {
  RequestSignature signature;
  if (absl::ConsumePrefix(&text, kScheme) && TakeHex(&text, "key=", &signature.key) &&
      TakeTime(&text, &signature.time) && TakeHex(&text, ",nonce=", &signature.nonce) &&
      TakeHex(&text, ",signature=", &signature.signature) && text.empty()) {
    return signature;
  }
  return absl::InvalidArgumentError(
      "expected an authorization of \"lockstep-ed25519 key=HEX,time=SECONDS,nonce=HEX,"
      "signature=HEX\"");
}

}  // namespace lockstep::net
