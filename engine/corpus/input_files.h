// SPDX-License-Identifier: Apache-2.0
//
// The files that a source's patterns stand for, in the order in which they are read.
#ifndef LOCKSTEP_ENGINE_CORPUS_INPUT_FILES_H_
#define LOCKSTEP_ENGINE_CORPUS_INPUT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"
#include "engine/corpus/corpus_config.h"

namespace lockstep::engine {

struct InputFile {
  std::string name;  // path below the source's root, as documents carry it (EscapedPath)
  std::string path;  // to open it by
  int64_t bytes = 0;
  int64_t modified_ns = 0;  // since 1970, as the file system says
};

struct InputFiles {
  std::vector<InputFile> files;  // ascending by the bytes of their path below the root, each once
  int64_t bytes = 0;             // of all
  Digest listing;                // SHA-256 of "NAME\0BYTES\n" for each file in order
  Digest times;                  // SHA-256 of "NAME\0MODIFIED_NS\n" for each file in order
};

// Regular files only. Below folders and patterns, names that begin with a dot are passed over and
// symbolic links to folders are not followed. A path or pattern that stands for no file is
// NotFound.
absl::StatusOr<InputFiles> ListInputFiles(const SourceConfig& source);

// FailedPrecondition if the file is no longer what was listed, by its size and time.
absl::Status CheckUnchanged(const InputFile& file);

// Bytes below 0x20, 0x7F, '%' and invalid UTF-8 as %XX: one line of valid UTF-8, and no two paths
// the same.
std::string EscapedPath(absl::string_view path);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_INPUT_FILES_H_
