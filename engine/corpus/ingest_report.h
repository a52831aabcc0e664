// SPDX-License-Identifier: Apache-2.0
//
// What an ingest kept and dropped, and why: counted document by document in their order, so that
// the report is the same for every run over the same files.
#ifndef LOCKSTEP_ENGINE_CORPUS_INGEST_REPORT_H_
#define LOCKSTEP_ENGINE_CORPUS_INGEST_REPORT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/corpus/document_filter.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {

struct OutcomeCount {
  int64_t documents = 0;
  int64_t bytes = 0;  // of text; of the line or file where no text was found
  bool operator==(const OutcomeCount&) const = default;
};

struct IngestReport {
  std::string source;
  int64_t records = 0;  // lines that are not blank, rows, or files
  int64_t mended = 0;   // records whose invalid UTF-8 was replaced or read as Latin-1, whatever
                        // became of them then
  int64_t split = 0;    // records that were cut
  int64_t pieces = 0;   // into so many
  // By outcome. Their documents sum up to records - split + pieces.
  std::array<OutcomeCount, kOutcomes> outcomes{};
  // The first kComplaintsMax malformed records: "path#line: what is wrong".
  std::vector<std::string> complaints;

  static constexpr size_t kComplaintsMax = 10;

  const OutcomeCount& Of(Outcome outcome) const { return outcomes[static_cast<size_t>(outcome)]; }
  // Counts one document; `duplicate` is what the writer found of one that the filter kept. `place`
  // names its record.
  void Count(const FilteredDocument& document, bool duplicate, absl::string_view place);

  nlohmann::json ToJson() const;
  static absl::StatusOr<IngestReport> FromJson(const nlohmann::json& json);
  // For people: one line an outcome that occurred.
  std::string ToTable() const;

  bool operator==(const IngestReport&) const = default;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_INGEST_REPORT_H_
