// SPDX-License-Identifier: Apache-2.0
//
// From a block of input to documents: parsing, mending of UTF-8, filters, splitting. What happens
// to a record depends on that record and the configuration alone; duplicates are the writer's
// business (ingest_writer.h). Rules: docs/corpus_format.md.
#ifndef LOCKSTEP_ENGINE_CORPUS_DOCUMENT_FILTER_H_
#define LOCKSTEP_ENGINE_CORPUS_DOCUMENT_FILTER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/corpus/corpus_config.h"
#include "engine/corpus/record_reader.h"

namespace simdjson::dom {
class parser;
}

namespace lockstep::engine {

// What became of a document, in the order in which it is asked.
enum class Outcome {
  kKept,
  kTooLarge,     // a line or file of more than record_bytes_max
  kInvalidUtf8,  // where invalid_utf8 = "drop"
  kMalformed,    // no JSON, no text field, ...; a text file with a NUL byte
  kEmpty,        // nothing but white space
  kScore,        // below score_min, or without a score
  kLicence,      // not on the allow-list, or without a licence
  kTooLong,      // more than bytes_max
  kDuplicate,    // the text of a document before
};
inline constexpr int kOutcomes = 9;
// "kept", "too_large", ...
absl::string_view OutcomeName(Outcome outcome);

// What duplicates are found by: the first half of the SHA-256 of a text.
using DocumentKey = std::array<uint8_t, 16>;
DocumentKey DuplicateKey(absl::string_view text);

// One document of a record; most records have one, a split one has several.
struct FilteredDocument {
  Outcome outcome = Outcome::kKept;
  bool mended = false;      // its record's UTF-8 was not valid, and was mended
  bool ends_record = true;  // the last of its record
  bool split = false;       // one of several
  int64_t bytes = 0;        // of text; of the record where there is no text
  InputPosition end;        // after its record
  size_t coded_begin = 0;   // kept: where FilteredBlock::coded holds it, as a part of a store does
  size_t coded_end = 0;
  DocumentKey key{};      // kept, and duplicates are looked for
  std::string complaint;  // malformed: what is wrong
};

struct FilteredBlock {
  std::vector<FilteredDocument> documents;
  std::string coded;
  InputPosition end;
  bool ends_file = false;
  int64_t file_bytes = 0;
  Digest file_digest;
};

// One a thread. Keeps the JSON parser's buffers between blocks.
class DocumentFilter {
 public:
  // `source` and `inputs` outlive the filter.
  DocumentFilter(const SourceConfig& source, const InputFiles& inputs);
  ~DocumentFilter();

  FilteredBlock Filter(const Block& block);

 private:
  struct Fields;

  void FilterLines(const Block& block);
  void FilterLine(absl::string_view line, bool mended);
  void FilterFile(absl::string_view file);
  void FilterRow(const Row& row);
  void FilterText(absl::string_view text, const Fields& fields, bool mended);
  void Keep(absl::string_view name, absl::string_view text, bool mended);
  void Drop(Outcome outcome, int64_t bytes, bool mended, std::string complaint);
  bool LicenceAllowed(const std::vector<std::string>& licences) const;
  std::string Mended(absl::string_view bytes) const;
  const std::string* FieldName(int field) const;
  std::string RecordName() const;

  const SourceConfig& source_;
  const InputFiles& inputs_;
  std::vector<std::vector<std::string>> paths_;  // of the text, id, score and licence fields
  std::unique_ptr<simdjson::dom::parser> parser_;
  FilteredBlock out_;
  InputPosition begin_;  // of the record at hand
  InputPosition end_;
};

// The pieces that a text of more than bytes_max is cut into, each at most so long; joined they are
// the text. bytes_max is at least 4, and `text` valid UTF-8.
std::vector<absl::string_view> SplitText(absl::string_view text, int64_t bytes_max);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_DOCUMENT_FILTER_H_
