// SPDX-License-Identifier: Apache-2.0
//
// The writing end of an ingest: takes filtered blocks in their order, looks for duplicates, counts,
// and writes parts. After each part it notes where the next run may go on. In a folder there is one
// writer at a time.
#ifndef LOCKSTEP_ENGINE_CORPUS_INGEST_WRITER_H_
#define LOCKSTEP_ENGINE_CORPUS_INGEST_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/sha256.h"
#include "engine/corpus/document_filter.h"
#include "engine/corpus/ingest.h"
#include "engine/corpus/ingest_state.h"

namespace lockstep::engine {

class IngestWriter {
 public:
  // Makes the folder, or goes on in it. `source`, `inputs` and `hooks` outlive the writer. Errors
  // as for IngestSource.
  static absl::StatusOr<std::unique_ptr<IngestWriter>> Open(const SourceConfig& source,
                                                            const InputFiles& inputs,
                                                            const std::string& folder,
                                                            const IngestOptions& options,
                                                            const IngestHooks& hooks);
  ~IngestWriter();

  // The folder was finished before: report() is its report, and there is nothing to write.
  bool finished() const { return finished_; }
  // Where reading goes on.
  const InputPosition& position() const { return state_.position; }
  const IngestReport& report() const { return state_.report; }
  int64_t parts() const { return static_cast<int64_t>(state_.parts.size()); }

  absl::Status Write(const FilteredBlock& block);
  // After the last block: the last part, the report, and the manifest, which makes the store one.
  absl::Status Finish();

 private:
  IngestWriter(const SourceConfig& source, const InputFiles& inputs, std::string folder,
               const IngestOptions& options, const IngestHooks& hooks);

  absl::Status LockFolder();
  absl::Status RemoveLeftovers() const;
  absl::StatusOr<bool> LoadFinished();
  absl::Status LoadProgress();
  absl::Status CheckParts();
  absl::Status WriteDocument(const FilteredDocument& document, absl::string_view coded);
  absl::Status BeginPart();
  absl::Status Append(absl::string_view bytes);
  absl::Status FlushPart();
  absl::Status EndPart();
  absl::Status CheckSameRequest(const Digest& config, const Digest& listing) const;
  std::string PathOf(absl::string_view file) const;
  void SayDurable(const char* what) const;

  const SourceConfig& source_;
  const InputFiles& inputs_;
  const std::string folder_;
  const int64_t part_bytes_;
  const IngestHooks& hooks_;
  int lock_fd_ = -1;
  bool finished_ = false;
  IngestState state_;  // its position and counts run ahead of the finished parts
  absl::flat_hash_set<DocumentKey> seen_;

  // The part in the making.
  std::optional<DurableFile> file_;
  StorePart part_;
  Sha256Hasher hasher_;
  std::string buffer_;  // of it, not written yet
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_INGEST_WRITER_H_
