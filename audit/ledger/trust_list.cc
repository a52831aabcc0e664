// SPDX-License-Identifier: Apache-2.0
//
// Line by line.
#include "audit/ledger/trust_list.h"

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep::audit {

absl::StatusOr<std::vector<TrustedOperator>> ParseTrustList(absl::string_view text) {
  if (text.size() > kTrustListBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at most ", kTrustListBytesMax, " bytes; found ", text.size()));
  }
  std::vector<TrustedOperator> operators;
  absl::flat_hash_set<Ed25519PublicKey> seen;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    const size_t end = line.find_first_of(" \t");
    const absl::StatusOr<Ed25519PublicKey> key = Ed25519PublicKey::FromHex(line.substr(0, end));
    if (!key.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", number, ": expected an operator's key and a name: ", key.status().message()));
    }
    if (!seen.insert(*key).second) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": this key came before"));
    }
    TrustedOperator trusted{.key = *key, .name = ""};
    if (end != absl::string_view::npos) {
      trusted.name = std::string(absl::StripAsciiWhitespace(line.substr(end)));
    }
    for (const char c : trusted.name) {
      if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", number, ": expected a name without control characters"));
      }
    }
    operators.push_back(trusted);
  }
  if (operators.empty()) {
    return absl::InvalidArgumentError(
        "expected at least one line with an operator's key; with none, nobody's word would count");
  }
  return operators;
}

}  // namespace lockstep::audit
