// SPDX-License-Identifier: Apache-2.0
//
// Counting, and the report as JSON and as a table.
#include "engine/corpus/ingest_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/canonical_json.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

constexpr int64_t kCountMax = int64_t{1} << 50;
constexpr size_t kComplaintBytesMax = 65536;

absl::string_view Explanation(Outcome outcome) {
  constexpr absl::string_view kExplanations[kOutcomes] = {"kept",
                                                          "dropped: record over record_bytes_max",
                                                          "dropped: not valid UTF-8",
                                                          "dropped: malformed",
                                                          "dropped: empty",
                                                          "dropped: score",
                                                          "dropped: licence",
                                                          "dropped: text over bytes_max",
                                                          "dropped: duplicate"};
  return kExplanations[static_cast<int>(outcome)];
}

}  // namespace

void IngestReport::Count(const FilteredDocument& document, bool duplicate,
                         absl::string_view place) {
  const Outcome outcome = duplicate ? Outcome::kDuplicate : document.outcome;
  OutcomeCount& count = outcomes[static_cast<size_t>(outcome)];
  ++count.documents;
  count.bytes += document.bytes;
  if (outcome == Outcome::kMalformed && complaints.size() < kComplaintsMax) {
    complaints.push_back(absl::StrCat(place, ": ", document.complaint));
  }
  if (document.split) ++pieces;
  if (!document.ends_record) return;
  ++records;
  if (document.split) ++split;
  if (document.mended) ++mended;
}

nlohmann::json IngestReport::ToJson() const {
  nlohmann::json counts = nlohmann::json::object();
  for (int i = 0; i < kOutcomes; ++i) {
    const OutcomeCount& count = outcomes[static_cast<size_t>(i)];
    counts[std::string(OutcomeName(static_cast<Outcome>(i)))] = {{"bytes", count.bytes},
                                                                 {"documents", count.documents}};
  }
  return {{"complaints", complaints}, {"mended", mended}, {"outcomes", counts}, {"pieces", pieces},
          {"records", records},       {"source", source}, {"split", split}};
}

absl::StatusOr<IngestReport> IngestReport::FromJson(const nlohmann::json& json) {
  JsonReader reader(json, "report");
  IngestReport report;
  report.source = reader.String("source", 64);
  report.records = reader.Integer("records", 0, kCountMax);
  report.mended = reader.Integer("mended", 0, kCountMax);
  report.split = reader.Integer("split", 0, kCountMax);
  report.pieces = reader.Integer("pieces", 0, kCountMax);
  JsonReader outcomes(reader.Object("outcomes"), "report.outcomes");
  for (int i = 0; i < kOutcomes; ++i) {
    const std::string name(OutcomeName(static_cast<Outcome>(i)));
    JsonReader count(outcomes.Object(name.c_str()), absl::StrCat("report.outcomes.", name));
    report.outcomes[static_cast<size_t>(i)] = {
        .documents = count.Integer("documents", 0, kCountMax),
        .bytes = count.Integer("bytes", 0, kCountMax)};
    outcomes.Join(count.Finish());
  }
  reader.Join(outcomes.Finish());
  for (const nlohmann::json& complaint : reader.Array("complaints", kComplaintsMax)) {
    if (!complaint.is_string() ||
        complaint.get_ref<const std::string&>().size() > kComplaintBytesMax) {
      reader.Fail("complaints", "strings", complaint.type_name());
      break;
    }
    report.complaints.push_back(complaint.get<std::string>());
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return report;
}

std::string IngestReport::ToTable() const {
  std::string table = absl::StrFormat(
      "%-40s %14s %12s\n", absl::StrCat(source, ": ", records, " records"), "documents", "MB");
  for (int i = 0; i < kOutcomes; ++i) {
    const OutcomeCount& count = outcomes[static_cast<size_t>(i)];
    if (i > 0 && count.documents == 0) continue;
    absl::StrAppendFormat(&table, "  %-38s %14d %12.3f\n", Explanation(static_cast<Outcome>(i)),
                          count.documents, static_cast<double>(count.bytes) / 1e6);
  }
  if (split > 0)
    absl::StrAppend(&table, "  ", split, " records over bytes_max were cut into ", pieces,
                    " pieces\n");
  if (mended > 0)
    absl::StrAppend(&table, "  ", mended, " records were not valid UTF-8 and were mended\n");
  for (const std::string& complaint : complaints)
    absl::StrAppend(&table, "  malformed: ", complaint, "\n");
  return table;
}

}  // namespace lockstep::engine
