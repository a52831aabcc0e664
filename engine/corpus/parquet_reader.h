// SPDX-License-Identifier: Apache-2.0
//
// Rows of Parquet files, by Apache Arrow where it is installed. Elsewhere OpenRowReader says how to
// convert (docs/corpus_format.md).
#ifndef LOCKSTEP_ENGINE_CORPUS_PARQUET_READER_H_
#define LOCKSTEP_ENGINE_CORPUS_PARQUET_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/corpus/corpus_config.h"
#include "engine/corpus/record_reader.h"

namespace lockstep::engine {

// Rows of one file in their order, read front to end.
class RowReader {
 public:
  virtual ~RowReader() = default;
  // Up to some hundred rows, none at the end.
  virtual absl::StatusOr<std::vector<Row>> Next() = 0;
};

// Begins after the first `skip` rows. InvalidArgument if the columns that `source` names are
// missing or of another type: text and id are strings, score is a number, licence a string or a
// list of strings. Unimplemented without Arrow.
absl::StatusOr<std::unique_ptr<RowReader>> OpenRowReader(const std::string& path,
                                                         const SourceConfig& source, int64_t skip);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_PARQUET_READER_H_
