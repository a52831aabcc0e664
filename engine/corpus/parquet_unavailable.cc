// SPDX-License-Identifier: Apache-2.0
//
// Stands in for parquet_reader.cc where Apache Arrow is not installed.
#include "absl/strings/str_cat.h"
#include "engine/corpus/parquet_reader.h"

namespace lockstep::engine {

absl::StatusOr<std::unique_ptr<RowReader>> OpenRowReader(const std::string& path,
                                                         const SourceConfig& source,
                                                         int64_t /*skip*/) {
  return absl::UnimplementedError(
      absl::StrCat(path, ": source ", source.name,
                   " has format parquet, but this build was made without Apache Arrow; convert the "
                   "files to JSONL (docs/corpus_format.md, "
                   "\"Parquet\", has the commands) or build where CMake finds Arrow and Parquet"));
}

}  // namespace lockstep::engine
