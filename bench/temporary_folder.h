// SPDX-License-Identifier: Apache-2.0
//
// A folder for a benchmark's files, below TMPDIR, removed at the end.
#ifndef LOCKSTEP_BENCH_TEMPORARY_FOLDER_H_
#define LOCKSTEP_BENCH_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/logging.h"

namespace lockstep::bench {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / "lockstep-bench-XXXXXX") {
    LOCKSTEP_CHECK(mkdtemp(path_.data()) != nullptr, "no folder {}", path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace lockstep::bench

#endif  // LOCKSTEP_BENCH_TEMPORARY_FOLDER_H_
