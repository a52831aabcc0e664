// SPDX-License-Identifier: Apache-2.0
//
// An HTTP request signed with an Ed25519 key, so that it is its sender's through any proxy
// (docs/artifacts.md). The signature is over a text of lines; it travels in the Authorization
// header. Who holds a key, and making and checking signatures, is the callers' business.
#ifndef LOCKSTEP_NET_SIGNED_REQUEST_H_
#define LOCKSTEP_NET_SIGNED_REQUEST_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/bytes.h"

namespace lockstep::net {

// What is signed. No field holds a line feed.
struct RequestClaim {
  std::string method;         // "PUT"
  std::string path;           // as in the request line: "/artifact/<sha256>"
  std::string audience;       // which server: the origin of its log
  std::string content_range;  // the request's Content-Range: which bytes, of how many
  int64_t time = 0;           // seconds since 1970, by the sender's clock
  std::array<uint8_t, 16> nonce{};
};

// "lockstep-request-v1", then the fields in the order above, each on a line that ends in "\n".
// InvalidArgument if a field holds a line feed.
absl::StatusOr<std::string> SigningText(const RequestClaim& claim);

// What the header carries besides the request.
struct RequestSignature {
  std::array<uint8_t, 32> key{};
  int64_t time = 0;
  std::array<uint8_t, 16> nonce{};
  std::array<uint8_t, 64> signature{};
  bool operator==(const RequestSignature&) const = default;
};

// "lockstep-ed25519 key=HEX,time=DECIMAL,nonce=HEX,signature=HEX"; digits are lower-case.
std::string FormatAuthorization(const RequestSignature& signature);
// Exactly that text, or InvalidArgument. Untrusted input.
absl::StatusOr<RequestSignature> ParseAuthorization(absl::string_view text);

// A key that signs. `sign` may be called by any thread.
struct RequestSigner {
  std::array<uint8_t, 32> key{};
  std::function<absl::StatusOr<std::array<uint8_t, 64>>(ByteSpan text)> sign;
};

}  // namespace lockstep::net

#endif  // LOCKSTEP_NET_SIGNED_REQUEST_H_
