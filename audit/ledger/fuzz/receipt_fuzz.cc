// SPDX-License-Identifier: Apache-2.0
//
// Receipts and trust lists: what is accepted comes back as it was.
#include <cstddef>
#include <cstdint>

#include "audit/ledger/receipt.h"
#include "audit/ledger/trust_list.h"
#include "base/bytes.h"
#include "base/logging.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const absl::string_view text = AsChars(ByteSpan(data, size));
  if (const auto receipt = audit::ParseReceipt(text); receipt.ok()) {
    const auto again = audit::EncodeReceipt(*receipt);
    LOCKSTEP_CHECK(again.ok() && *again == text);
  }
  if (const auto list = audit::ParseTrustList(text); list.ok()) {
    LOCKSTEP_CHECK(!list->empty());
  }
  return 0;
}
