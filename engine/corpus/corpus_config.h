// SPDX-License-Identifier: Apache-2.0
//
// corpus.toml: what a corpus is made of. One [[source]] table a source, with its files, their
// format, the filters and the licence. Every key, its meaning and its default:
// docs/corpus_format.md.
#ifndef LOCKSTEP_ENGINE_CORPUS_CORPUS_CONFIG_H_
#define LOCKSTEP_ENGINE_CORPUS_CORPUS_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"

namespace lockstep::engine {

enum class DocumentFormat { kJsonl, kParquet, kText, kCode, kMarkdown, kHtml };
enum class InvalidUtf8 { kReplace, kLatin1, kDrop };
enum class OverLong { kDrop, kSplit };

struct SourceConfig {
  std::string name;     // [a-z0-9][a-z0-9._-]{0,63}: also the name of its folder
  std::string licence;  // of the source as a whole, an SPDX expression where there is one
  DocumentFormat format = DocumentFormat::kText;

  // Where the files are. `root` is absolute or relative to where the program runs; `paths` and
  // `exclude` are patterns below it (glob.h), and a path that is a folder stands for the files in
  // it that have one of the `extensions`.
  std::string root;
  std::vector<std::string> paths;
  std::vector<std::string> exclude;
  std::vector<std::string> extensions;  // with the dot; ".gz" or ".zst" may follow in a file's name

  // Names of the fields of a JSON object or a Parquet row; '.' goes into an object. Empty: none.
  std::string text_field = "text";
  std::string id_field;
  std::string score_field;
  std::string licence_field;

  // What is kept.
  std::optional<double> score_min;
  std::vector<std::string> licences;  // lower case; empty: any
  int64_t bytes_max = 0;              // of a document's text; 0: no limit but record_bytes_max
  OverLong over_long = OverLong::kDrop;
  bool deduplicate = false;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kReplace;

  // What is read at all.
  int64_t record_bytes_max = int64_t{16} << 20;  // of a line or a file, once decompressed
  int64_t compression_ratio_max = 256;
  int zstd_window_log_max = 27;

  // Of everything above that decides what comes out of given files: not of `root`.
  Digest Fingerprint() const;
};

struct CorpusConfig {
  std::vector<SourceConfig> sources;  // at least one; names differ
};

// `folder` is where relative roots start: the configuration file's own. Errors are InvalidArgument,
// and say the line, what was expected and what was found.
absl::StatusOr<CorpusConfig> ParseCorpusConfig(absl::string_view toml, const std::string& folder);
absl::StatusOr<CorpusConfig> LoadCorpusConfig(const std::string& path);

// "jsonl", ...
absl::string_view FormatName(DocumentFormat format);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_CORPUS_CONFIG_H_
