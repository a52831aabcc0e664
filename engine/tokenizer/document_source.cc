// SPDX-License-Identifier: Apache-2.0
//
// Ingested documents as training text.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/corpus/document_store.h"
#include "engine/tokenizer/text_source.h"

namespace lockstep::engine {
namespace {

class DocumentSource : public TextSource {
 public:
  explicit DocumentSource(DocumentStore store) : store_(std::move(store)) {}
  int64_t parts() const override { return store_.parts(); }
  int64_t bytes() const override { return store_.text_bytes(); }
  absl::Status Read(int64_t part, absl::FunctionRef<void(absl::string_view)> fn) const override {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Document> documents, store_.ReadPart(part));
    for (const Document& document : documents) fn(document.text);
    return absl::OkStatus();
  }

 private:
  const DocumentStore store_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextSource>> OpenDocuments(const std::string& folder) {
  LOCKSTEP_ASSIGN_OR_RETURN(DocumentStore store, DocumentStore::Open(folder));
  return std::unique_ptr<TextSource>(new DocumentSource(std::move(store)));
}

}  // namespace lockstep::engine
