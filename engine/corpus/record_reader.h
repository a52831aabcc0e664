// SPDX-License-Identifier: Apache-2.0
//
// Cuts a source's input files into blocks of whole records: some lines of a JSONL file, or a whole
// file. One reader walks over all files in order; what is in a block is then parsed anywhere.
#ifndef LOCKSTEP_ENGINE_CORPUS_RECORD_READER_H_
#define LOCKSTEP_ENGINE_CORPUS_RECORD_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/sha256.h"
#include "engine/corpus/byte_source.h"
#include "engine/corpus/corpus_config.h"
#include "engine/corpus/input_files.h"

namespace lockstep::engine {

// A place between two records.
struct InputPosition {
  int64_t file = 0;  // index of the input file
  int64_t records =
      0;  // lines, blank ones too, or rows of it before this place; 1 after a whole file
  int64_t bytes = 0;  // of it, decompressed, before this place

  bool operator==(const InputPosition&) const = default;
};

// A row of a columnar file: what the fields hold. A null is an absent value.
struct Row {
  bool has_text = false;
  bool has_score = false;
  std::string text;
  std::string id;
  double score = 0;
  std::vector<std::string> licences;
};

struct Block {
  enum class Kind {
    kLines,     // `bytes` are whole lines, the last of which may lack its line feed
    kFile,      // `bytes` are a file
    kRows,      // `rows`
    kTooLarge,  // one record of more than record_bytes_max, which was read over: `too_large` bytes
    kNothing,   // only the end of a file
  };
  Kind kind = Kind::kNothing;
  InputPosition begin;
  InputPosition end;
  std::string bytes;  // with room for kBlockPadding more behind
  std::vector<Row> rows;
  int64_t too_large = 0;
  // The last block of a file has what the file was.
  bool ends_file = false;
  int64_t file_bytes = 0;
  Digest file_digest;
};

// What a parser may read past the end of Block::bytes.
inline constexpr size_t kBlockPadding = 64;

class RowReader;  // parquet_reader.h

// Not for several threads at once; the caller takes turns.
class RecordReader {
 public:
  // `source` and `inputs` outlive the reader. Blocks of lines are about block_bytes long, more only
  // for a longer line. Starts at `start`, which a block of an earlier reader ended at or had
  // inside: the file is read from its front again, for its digest, and what is before `start`
  // passed over.
  RecordReader(const SourceConfig& source, const InputFiles& inputs, int64_t block_bytes,
               const InputPosition& start);
  ~RecordReader();

  // The next block; false when there is none left. Errors name the file.
  absl::StatusOr<bool> Next(Block* block);

  // Bytes of the files as they lie that were read since the start.
  int64_t file_bytes_read() const;

 private:
  absl::Status OpenFile();
  absl::Status NextLines(Block* block);
  absl::Status NextWholeFile(Block* block);
  absl::Status NextRows(Block* block);
  absl::Status PassOverLine(Block* block, size_t had);
  void TakeLines(std::string bytes, Block* block);
  absl::Status PassOver(int64_t bytes);
  absl::StatusOr<int64_t> ReadToEnd();
  absl::Status FinishFile(Block* block);

  const SourceConfig& source_;
  const InputFiles& inputs_;
  const int64_t block_bytes_;
  InputPosition at_;
  std::unique_ptr<ByteSource> file_;  // open while at_.file is being read
  std::unique_ptr<RowReader> rows_;
  std::string carry_;  // read, and after the last whole line
  int64_t finished_bytes_ = 0;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_RECORD_READER_H_
