// SPDX-License-Identifier: Apache-2.0
//
// Ingested documents of one source: what `lockstep corpus ingest` writes, and what tokenizer
// training and shard building read. A folder of parts, each whole or absent, and a manifest that
// names them by digest. Format: docs/corpus_format.md.
#ifndef LOCKSTEP_ENGINE_CORPUS_DOCUMENT_STORE_H_
#define LOCKSTEP_ENGINE_CORPUS_DOCUMENT_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"

namespace lockstep::engine {

struct Document {
  // Where it came from, unique within its source: "path" for a file, "path#line" for a line or row,
  // then "/k" for the k-th piece of a split document, then " id" where the source has ids.
  std::string name;
  std::string text;  // valid UTF-8, not empty
};

// What the manifest says of a part.
struct StorePart {
  std::string file;
  int64_t documents = 0;
  int64_t bytes = 0;       // of the file
  int64_t text_bytes = 0;  // of its documents' texts
  Digest digest;           // SHA-256 of the file
};

// One source's documents in their fixed order.
class DocumentStore {
 public:
  // Reads and checks the manifest, not the parts. Any defect is an error that names the file and
  // what was expected.
  static absl::StatusOr<DocumentStore> Open(const std::string& folder);

  const std::string& source() const { return source_; }    // name, as in corpus.toml
  const std::string& licence() const { return licence_; }  // as in corpus.toml
  int64_t documents() const { return documents_; }
  int64_t text_bytes() const { return text_bytes_; }
  const Digest& digest() const { return digest_; }  // of the manifest's bytes

  // Parts may be read at the same time by several threads; documents of part p come before those of
  // part p + 1.
  int64_t parts() const { return static_cast<int64_t>(parts_.size()); }

  // All documents of one part, checked against its digest before any is returned.
  absl::StatusOr<std::vector<Document>> ReadPart(int64_t part) const;

 private:
  std::string folder_;
  std::string source_;
  std::string licence_;
  int64_t documents_ = 0;
  int64_t text_bytes_ = 0;
  Digest digest_;
  std::vector<StorePart> parts_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_DOCUMENT_STORE_H_
