// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: the files of a document store. Parts, manifests, reports and progress files are
// decoded or refused as damaged; what is decoded encodes to the very same bytes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/coding.h"
#include "base/logging.h"
#include "engine/corpus/document_store_format.h"
#include "engine/corpus/ingest_state.h"

namespace lockstep::engine {
namespace {

StorePart APart(int64_t index) {
  return {.file = PartFileName(index),
          .documents = 2,
          .bytes = 50,
          .text_bytes = 20,
          .digest = Sha256({})};
}

std::string AManifest() {
  StoreManifest manifest;
  manifest.source = "web";
  manifest.licence = "MIT";
  manifest.documents = 4;
  manifest.text_bytes = 40;
  manifest.parts = {APart(0), APart(1)};
  return EncodeManifest(manifest);
}

std::string AState() {
  IngestState state;
  state.report.source = "web";
  state.report.complaints = {"a.jsonl#3: no JSON"};
  state.parts = {APart(0)};
  return EncodeIngestState(state);
}

std::string APartFile() {
  std::string part(kPartMagic);
  AppendDocument("a#1", "Hi!\n", &part);
  AppendDocument("a#2", "\xC3\xA9", &part);
  return part;
}

// `bytes` with some replaced by the input.
std::string Altered(std::string bytes, ByteReader& reader) {
  const size_t at = reader.ReadU16("offset").value_or(0) % (bytes.size() + 1);
  const size_t gone = reader.ReadU8("gone").value_or(0);
  return bytes.replace(
      at, gone, ToString(reader.ReadFixed("bytes", reader.remaining()).value_or(ByteSpan())));
}

void CheckPart(const std::string& bytes) {
  const absl::StatusOr<std::vector<Document>> documents = DecodePart(bytes);
  if (!documents.ok()) {
    LOCKSTEP_CHECK(absl::IsDataLoss(documents.status()));
    return;
  }
  std::string again(kPartMagic);
  for (const Document& document : *documents) AppendDocument(document.name, document.text, &again);
  LOCKSTEP_CHECK(again == bytes);
}

void CheckManifest(const std::string& bytes) {
  const absl::StatusOr<StoreManifest> manifest = ParseStoreManifest(bytes);
  LOCKSTEP_CHECK(manifest.ok() ? EncodeManifest(*manifest) == bytes
                               : absl::IsDataLoss(manifest.status()));
}

void CheckState(const std::string& bytes) {
  const absl::StatusOr<IngestState> state = ParseIngestState(bytes);
  LOCKSTEP_CHECK(state.ok() ? EncodeIngestState(*state) == bytes
                            : absl::IsDataLoss(state.status()));
}

}  // namespace
}  // namespace lockstep::engine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::engine;
  ByteReader reader(ByteSpan(data, size));
  const uint8_t kind = reader.ReadU8("kind").value_or(0) % 6;
  const std::string valid = kind % 3 == 0 ? APartFile() : kind % 3 == 1 ? AManifest() : AState();
  const std::string bytes =
      kind < 3 ? Altered(valid, reader)
               : ToString(reader.ReadFixed("bytes", reader.remaining()).value_or(ByteSpan()));
  if (kind % 3 == 0) {
    CheckPart(bytes);
  } else if (kind % 3 == 1) {
    CheckManifest(bytes);
  } else {
    CheckState(bytes);
  }
  return 0;
}
