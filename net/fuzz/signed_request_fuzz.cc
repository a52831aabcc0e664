// SPDX-License-Identifier: Apache-2.0
//
// Any text as an Authorization header: one content has one text.
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/logging.h"
#include "net/signed_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace net = lockstep::net;
  const absl::string_view text = lockstep::AsChars({data, size});
  const absl::StatusOr<net::RequestSignature> signature = net::ParseAuthorization(text);
  if (signature.ok()) LOCKSTEP_CHECK(net::FormatAuthorization(*signature) == text);
  return 0;
}
