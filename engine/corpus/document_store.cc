// SPDX-License-Identifier: Apache-2.0
//
// Reading of document stores: the manifest first, then each part against what the manifest says of
// it.
#include "engine/corpus/document_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/corpus/document_store_format.h"

namespace lockstep::engine {

absl::StatusOr<DocumentStore> DocumentStore::Open(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kManifestFile);
  absl::StatusOr<std::string> bytes = ReadFile(path, kManifestBytesMax);
  if (absl::IsNotFound(bytes.status())) {
    return absl::NotFoundError(
        absl::StrCat(path,
                     ": expected a document store, as `lockstep corpus ingest` writes it; the "
                     "file does not exist (an ingest that was stopped goes on when run again)"));
  }
  LOCKSTEP_RETURN_IF_ERROR(bytes.status());
  LOCKSTEP_ASSIGN_OR_RETURN(StoreManifest manifest, ParseStoreManifest(*bytes), path);
  DocumentStore store;
  store.folder_ = folder;
  store.source_ = std::move(manifest.source);
  store.licence_ = std::move(manifest.licence);
  store.documents_ = manifest.documents;
  store.text_bytes_ = manifest.text_bytes;
  store.digest_ = Sha256(AsBytes(*bytes));
  store.parts_ = std::move(manifest.parts);
  return store;
}

absl::StatusOr<std::vector<Document>> DocumentStore::ReadPart(int64_t index) const {
  if (index < 0 || index >= parts()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder_, ": expected a part from 0 to ", parts() - 1, "; found ", index));
  }
  return ReadPartFile(folder_, parts_[static_cast<size_t>(index)]);
}

}  // namespace lockstep::engine
