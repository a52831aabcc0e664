// SPDX-License-Identifier: Apache-2.0
//
// An entry that a log has promised to hold, and its promise, as a file: what workers and trainers
// keep of what they have said, and `lockstep verify --receipt` reads. Format: docs/log.md.
#ifndef LOCKSTEP_AUDIT_LEDGER_RECEIPT_H_
#define LOCKSTEP_AUDIT_LEDGER_RECEIPT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/log/log_proof.h"

namespace lockstep::audit {

struct Receipt {
  std::string entry;
  LogProof proof;
  bool operator==(const Receipt&) const = default;
};

inline constexpr size_t kReceiptBytesMax = 262144;

// Canonical JSON: {"entry": BASE64, "proof": the tlog-proof's text}. InvalidArgument for a proof
// whose checkpoint is not UTF-8.
absl::StatusOr<std::string> EncodeReceipt(const Receipt& receipt);

// Accepts exactly what EncodeReceipt writes. Untrusted input; DataLoss. Nothing is verified.
absl::StatusOr<Receipt> ParseReceipt(absl::string_view text);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LEDGER_RECEIPT_H_
