// SPDX-License-Identifier: Apache-2.0
//
// Where a tokenizer's training text comes from: texts in parts that several threads read at once.
// Files are cut where the cut changes no piece, so that a file of any size is one text.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_TEXT_SOURCE_H_
#define LOCKSTEP_ENGINE_TOKENIZER_TEXT_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::engine {

class TextSource {
 public:
  virtual ~TextSource() = default;
  virtual int64_t parts() const = 0;
  // Of all parts; for progress.
  virtual int64_t bytes() const = 0;
  // Calls fn with each text of a part, in order. From any thread.
  virtual absl::Status Read(int64_t part, absl::FunctionRef<void(absl::string_view)> fn) const = 0;
};

// Texts in memory, one a part.
class MemorySource : public TextSource {
 public:
  explicit MemorySource(std::vector<std::string> texts);
  int64_t parts() const override { return static_cast<int64_t>(texts_.size()); }
  int64_t bytes() const override { return bytes_; }
  absl::Status Read(int64_t part, absl::FunctionRef<void(absl::string_view)> fn) const override;

 private:
  std::vector<std::string> texts_;
  int64_t bytes_ = 0;
};

// A regular file as one text, in parts of about part_bytes: each ends after a line end that a
// visible ASCII character follows, where no piece goes across. Without such a place the part goes
// on to the next one, or to the end.
absl::StatusOr<std::unique_ptr<TextSource>> OpenTextFile(const std::string& path,
                                                         int64_t part_bytes = int64_t{4} << 20);

// The documents of what `lockstep corpus ingest` writes, each a text.
absl::StatusOr<std::unique_ptr<TextSource>> OpenDocuments(const std::string& folder);

// Several sources, one after another.
std::unique_ptr<TextSource> JoinSources(std::vector<std::unique_ptr<TextSource>> sources);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TOKENIZER_TEXT_SOURCE_H_
