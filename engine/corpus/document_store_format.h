// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a document store: parts and manifest, for those who write stores (ingest, tests).
// Readers want document_store.h. Specification: docs/corpus_format.md.
#ifndef LOCKSTEP_ENGINE_CORPUS_DOCUMENT_STORE_FORMAT_H_
#define LOCKSTEP_ENGINE_CORPUS_DOCUMENT_STORE_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/canonical_json.h"
#include "base/sha256.h"
#include "engine/corpus/document_store.h"

namespace lockstep::engine {

// A part begins with these bytes; its documents follow.
inline constexpr absl::string_view kPartMagic = "LSDOCS1\n";
inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kReportFile[] = "report.json";
inline constexpr size_t kManifestBytesMax = size_t{256} << 20;
inline constexpr int64_t kDocumentNameBytesMax = 1 << 16;
inline constexpr int64_t kDocumentTextBytesMax = UINT32_MAX;

struct StoreManifest {
  std::string source;
  std::string licence;
  int64_t documents = 0;
  int64_t text_bytes = 0;
  Digest config;            // SourceConfig::Fingerprint, with the part size
  int64_t input_files = 0;  // what was read
  int64_t input_bytes = 0;
  Digest input_listing;  // InputFiles::listing
  Digest input_digest;   // the chain over every file's name, size and digest
  Digest report;         // SHA-256 of report.json
  std::vector<StorePart> parts;
};

// "part-000042.docs"
std::string PartFileName(int64_t part);

// 1 to kDocumentNameBytesMax and 1 to kDocumentTextBytesMax bytes of UTF-8 (the caller's duty).
void AppendDocument(absl::string_view name, absl::string_view text, std::string* part);

// All documents of a part's bytes. DataLoss, with the offset, for what is not of the format.
absl::StatusOr<std::vector<Document>> DecodePart(absl::string_view bytes);

// The documents of one part in `folder`, checked against all that `part` says of it.
absl::StatusOr<std::vector<Document>> ReadPartFile(const std::string& folder,
                                                   const StorePart& part);

std::string EncodeManifest(const StoreManifest& manifest);
// DataLoss for everything that EncodeManifest would not write, sums that do not add up among them.
absl::StatusOr<StoreManifest> ParseStoreManifest(absl::string_view bytes);

// The array of parts, as manifest and progress file hold it: numbered without gaps, none empty.
nlohmann::json EncodeParts(const std::vector<StorePart>& parts);
absl::StatusOr<std::vector<StorePart>> ParseParts(const nlohmann::json& array);

// Writes a whole store of `documents` into `folder` (which is made if need be), without the ingest:
// for tests and tools that have documents already. As durable as an ingest, and with a new part
// after each documents_per_part.
absl::Status WriteDocumentStore(const std::string& folder, const std::string& source,
                                const std::string& licence, const std::vector<Document>& documents,
                                int64_t documents_per_part);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_DOCUMENT_STORE_FORMAT_H_
