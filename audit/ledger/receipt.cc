// SPDX-License-Identifier: Apache-2.0
//
// Receipts to and from canonical JSON.
#include "audit/ledger/receipt.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "audit/evidence/log_entry.h"
#include "base/bytes.h"
#include "base/canonical_json.h"
#include "base/encoding.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

constexpr size_t kEntryBase64BytesMax = (kLogEntryBytesMax + 2) / 3 * 4;

}  // namespace

absl::StatusOr<std::string> EncodeReceipt(const Receipt& receipt) {
  return CanonicalJson(
      {{"entry", Base64Encode(AsBytes(receipt.entry))}, {"proof", EncodeLogProof(receipt.proof)}});
}

absl::StatusOr<Receipt> ParseReceipt(absl::string_view text) {
  if (text.size() > kReceiptBytesMax) {
    return absl::DataLossError(absl::StrCat("receipt: expected at most ", kReceiptBytesMax,
                                            " bytes; found ", text.size()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(text), "receipt");
  JsonReader reader(json, "receipt");
  const std::string entry = reader.String("entry", kEntryBase64BytesMax);
  const std::string proof = reader.String("proof", kLogProofBytesMax);
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  Receipt receipt;
  const absl::StatusOr<std::string> bytes = Base64Decode(entry);
  if (!bytes.ok() || Base64Encode(AsBytes(*bytes)) != entry) {
    return absl::DataLossError("receipt: entry: expected padded base64 in the standard alphabet");
  }
  receipt.entry = *bytes;
  LOCKSTEP_ASSIGN_OR_RETURN(receipt.proof, ParseLogProof(proof), "receipt: proof");
  if (EncodeLogProof(receipt.proof) != proof) {
    return absl::DataLossError("receipt: proof: expected a tlog-proof as this program writes it");
  }
  return receipt;
}

}  // namespace lockstep::audit
