// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: log entries. Inputs that begin with '{' are envelopes; others are payloads, each put
// into a well-formed envelope of the type that the first byte chooses.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "audit/evidence/dsse.h"
#include "audit/evidence/log_entry.h"
#include "audit/testing/small_log.h"
#include "base/logging.h"
#include "base/merkle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::audit;
  constexpr const char* kTypes[] = {kRunRegistrationPayloadType, kRecordPayloadType,
                                    kCheckpointPayloadType,      kKeyEventPayloadType,
                                    kAttestationPayloadType,     kOpeningPayloadType,
                                    kDisputePayloadType};
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (data[0] != '{') {
    const DsseEnvelope envelope = {
        .payload_type = kTypes[data[0] % std::size(kTypes)],
        .payload = bytes.substr(1),
        .signatures = {{.key_id = TestPublicKey(1).Id().ToHex(), .bytes = std::string(64, 's')}}};
    bytes = EncodeDsse(envelope);
  }
  auto entry = LogEntry::Parse(bytes);
  if (!entry.ok()) return 0;
  LOCKSTEP_CHECK(entry->leaf_hash() == MerkleLeafHash(AsBytes(bytes)));
  LOCKSTEP_CHECK(!entry->signer_ids().empty());
  LOCKSTEP_CHECK(!entry->IsSignedBy(TestPublicKey(1)));
  entry->MarkChallengedBy(TestPublicKey(1));
  LOCKSTEP_CHECK(!EntryKindName(entry->kind()).empty());
  return 0;
}
