// SPDX-License-Identifier: Apache-2.0
#include "audit/ledger/receipt.h"

#include <string>

#include "audit/testing/small_log.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::audit {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

Receipt ReceiptAt(const SmallLog& log, uint64_t index) {
  const uint64_t size = log.entries().size();
  return {.entry = log.entries()[index],
          .proof = {.extra = std::nullopt,
                    .index = index,
                    .hashes = log.tree().InclusionProof(index, size).value(),
                    .checkpoint = log.Checkpoint()}};
}

TEST(Receipt, ComesBackAsItWas) {
  SmallLog log;
  log.AddOperator(0);
  log.AddRun(5);
  for (uint64_t index = 0; index < log.entries().size(); ++index) {
    const Receipt receipt = ReceiptAt(log, index);
    const auto text = EncodeReceipt(receipt);
    ASSERT_THAT(text, IsOk());
    EXPECT_THAT(ParseReceipt(*text), IsOkAndHolds(receipt));
  }
}

TEST(Receipt, HoldsTheLargestEntry) {
  SmallLog log;
  log.AddRun(1);
  Receipt receipt = ReceiptAt(log, 0);
  receipt.entry = std::string(kLogEntryBytesMax, '\xff');
  receipt.proof.checkpoint.assign(kNoteBytesMax, 'x');
  const auto text = EncodeReceipt(receipt);
  ASSERT_THAT(text, IsOk());
  EXPECT_THAT(ParseReceipt(*text), IsOkAndHolds(receipt));
}

TEST(Receipt, AcceptsNothingElse) {
  SmallLog log;
  log.AddRun(2);
  const std::string text = EncodeReceipt(ReceiptAt(log, 1)).value();
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_THAT(ParseReceipt(text.substr(0, size)), StatusIs(kDataLoss)) << size;
  }
  for (const std::string& other :
       {std::string("{}"), std::string("[]"), text + " ", " " + text,
        std::string(R"({"entry":"AA=","proof":""})"), std::string(R"({"entry":"AA==","proof":""})"),
        std::string(R"({"entry":1,"proof":2})"), std::string(kReceiptBytesMax + 1, ' ')}) {
    EXPECT_THAT(ParseReceipt(other), StatusIs(kDataLoss)) << other.substr(0, 100);
  }
}

TEST(Receipt, WhatIsNoTextIsNotWritten) {
  Receipt receipt;
  receipt.proof.checkpoint = "\xff";
  EXPECT_THAT(EncodeReceipt(receipt), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lockstep::audit
