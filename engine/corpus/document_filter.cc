// SPDX-License-Identifier: Apache-2.0
//
// Filtering of records. JSON is parsed by simdjson's DOM, which checks all of a line and not only
// what is read of it.
#include "engine/corpus/document_filter.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/sha256.h"
#include "engine/corpus/document_store_format.h"
#include "engine/corpus/html_text.h"
#include "engine/corpus/utf8.h"
#include "simdjson.h"

namespace lockstep::engine {
namespace {

static_assert(kBlockPadding >= simdjson::SIMDJSON_PADDING);

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kIdBytesMax = 1024;
// A parser that had to grow beyond this for one line is replaced, so that such lines do not hold
// memory for ever.
constexpr size_t kParserBytesKept = size_t{4} << 20;

enum Field { kText, kId, kScore, kLicence };

// The value at `path` (names of objects' fields, one inside the other); null if it is absent or
// null. False if a name on the way is there twice, where readers of JSON differ in what they take.
bool Find(simdjson::dom::element element, const std::vector<std::string>& path,
          std::optional<simdjson::dom::element>* found) {
  found->reset();
  for (const std::string& name : path) {
    simdjson::dom::object object;
    if (element.get(object) != simdjson::SUCCESS) return true;
    int times = 0;
    for (const simdjson::dom::key_value_pair field : object) {
      if (field.key != name) continue;
      element = field.value;
      if (++times > 1) return false;
    }
    if (times == 0) return true;
  }
  if (!path.empty() && !element.is_null()) *found = element;
  return true;
}

// The strings of a string or of an array of nothing but strings; empty for anything else.
std::vector<std::string> Strings(simdjson::dom::element element) {
  std::vector<std::string> strings;
  std::string_view text;
  simdjson::dom::array array;
  if (element.get(text) == simdjson::SUCCESS) {
    strings.emplace_back(text);
  } else if (element.get(array) == simdjson::SUCCESS) {
    for (const simdjson::dom::element item : array) {
      if (item.get(text) != simdjson::SUCCESS) return {};
      strings.emplace_back(text);
    }
  }
  return strings;
}

std::string Complaint(simdjson::error_code error) {
  return absl::StrCat("no JSON: ", simdjson::error_message(error));
}

}  // namespace

// What a record says beside its text.
struct DocumentFilter::Fields {
  std::string id;
  std::optional<double> score;
  std::vector<std::string> licences;
};

absl::string_view OutcomeName(Outcome outcome) {
  constexpr absl::string_view kNames[kOutcomes] = {"kept",      "too_large", "invalid_utf8",
                                                   "malformed", "empty",     "score",
                                                   "licence",   "too_long",  "duplicate"};
  return kNames[static_cast<int>(outcome)];
}

DocumentFilter::DocumentFilter(const SourceConfig& source, const InputFiles& inputs)
    : source_(source), inputs_(inputs), parser_(std::make_unique<simdjson::dom::parser>()) {
  for (const std::string* name :
       {&source.text_field, &source.id_field, &source.score_field, &source.licence_field}) {
    paths_.push_back(name->empty() ? std::vector<std::string>() : absl::StrSplit(*name, '.'));
  }
}

DocumentFilter::~DocumentFilter() = default;

FilteredBlock DocumentFilter::Filter(const Block& block) {
  out_ = FilteredBlock();
  begin_ = block.begin;
  end_ = block.end;
  switch (block.kind) {
    case Block::Kind::kLines:
      out_.coded.reserve(block.bytes.size());
      FilterLines(block);
      break;
    case Block::Kind::kFile:
      FilterFile(block.bytes);
      break;
    case Block::Kind::kRows:
      end_ = begin_;
      for (const Row& row : block.rows) {
        ++end_.records;
        FilterRow(row);
        begin_ = end_;
      }
      break;
    case Block::Kind::kTooLarge:
      Drop(Outcome::kTooLarge, block.too_large, false, "");
      break;
    case Block::Kind::kNothing:
      break;
  }
  out_.end = block.end;
  out_.ends_file = block.ends_file;
  out_.file_bytes = block.file_bytes;
  out_.file_digest = block.file_digest;
  return std::move(out_);
}

void DocumentFilter::FilterLines(const Block& block) {
  const absl::string_view bytes = block.bytes;
  const bool valid = IsValidUtf8(bytes);
  for (size_t at = 0; at < bytes.size(); begin_ = end_) {
    const void* found = memchr(bytes.data() + at, '\n', bytes.size() - at);
    const size_t size =
        found == nullptr ? bytes.size() - at : static_cast<const char*>(found) - bytes.data() - at;
    const size_t next = std::min(bytes.size(), at + size + 1);
    end_ = begin_;
    ++end_.records;
    end_.bytes += static_cast<int64_t>(next - at);
    absl::string_view line = bytes.substr(at, size);
    at = next;
    if (static_cast<int64_t>(line.size()) > source_.record_bytes_max) {
      Drop(Outcome::kTooLarge, static_cast<int64_t>(line.size()), false, "");
      continue;
    }
    if (begin_.bytes == 0 && absl::StartsWith(line, kByteOrderMark))
      line.remove_prefix(kByteOrderMark.size());
    if (IsBlank(line)) continue;
    if (valid || IsValidUtf8(line)) {
      FilterLine(line, false);
    } else if (source_.invalid_utf8 == InvalidUtf8::kDrop) {
      Drop(Outcome::kInvalidUtf8, static_cast<int64_t>(line.size()), false, "");
    } else {
      std::string mended = Mended(line);
      mended.reserve(mended.size() + kBlockPadding);
      FilterLine(mended, true);
    }
  }
}

std::string DocumentFilter::Mended(absl::string_view bytes) const {
  return source_.invalid_utf8 == InvalidUtf8::kLatin1 ? Latin1ToUtf8(bytes)
                                                      : ReplaceInvalidUtf8(bytes);
}

void DocumentFilter::FilterLine(absl::string_view line, bool mended) {
  const auto malformed = [&](std::string complaint) {
    Drop(Outcome::kMalformed, static_cast<int64_t>(line.size()), mended, std::move(complaint));
  };
  if (parser_->capacity() > kParserBytesKept) parser_ = std::make_unique<simdjson::dom::parser>();
  simdjson::dom::element root;
  const simdjson::error_code error =
      parser_->parse(line.data(), line.size(), /*realloc_if_needed=*/false).get(root);
  if (error != simdjson::SUCCESS) return malformed(Complaint(error));
  if (!root.is_object()) return malformed("no JSON object");
  std::optional<simdjson::dom::element> found[4];
  for (const Field field : {kText, kId, kScore, kLicence}) {
    if (!Find(root, paths_[field], &found[field])) {
      return malformed(absl::StrCat("field \"", *FieldName(field), "\" is there twice"));
    }
  }
  std::string_view text;
  if (!found[kText].has_value())
    return malformed(absl::StrCat("no field \"", source_.text_field, "\""));
  if (found[kText]->get(text) != simdjson::SUCCESS) {
    return malformed(absl::StrCat("field \"", source_.text_field, "\" is no string"));
  }
  Fields fields;
  if (found[kId].has_value()) {
    std::string_view id;
    int64_t number = 0;
    uint64_t large = 0;
    if (found[kId]->get(id) == simdjson::SUCCESS) {
      fields.id = std::string(id);
    } else if (found[kId]->get(number) == simdjson::SUCCESS) {
      fields.id = absl::StrCat(number);
    } else if (found[kId]->get(large) == simdjson::SUCCESS) {
      fields.id = absl::StrCat(large);
    }
    if (fields.id.size() > kIdBytesMax)
      return malformed(absl::StrCat("an id of more than ", kIdBytesMax, " bytes"));
  }
  if (double score = 0;
      found[kScore].has_value() && found[kScore]->get(score) == simdjson::SUCCESS) {
    fields.score = score;
  }
  if (found[kLicence].has_value()) fields.licences = Strings(*found[kLicence]);
  // Escapes of lone surrogates would be a way around UTF-8.
  if (const absl::string_view view(text.data(), text.size()); IsValidUtf8(view)) {
    FilterText(view, fields, mended);
  } else {
    malformed("a string that is no Unicode text");
  }
}

void DocumentFilter::FilterFile(absl::string_view file) {
  const auto bytes = static_cast<int64_t>(file.size());
  if (absl::StartsWith(file, kByteOrderMark)) file.remove_prefix(kByteOrderMark.size());
  const bool valid = IsValidUtf8(file);
  if (!valid && source_.invalid_utf8 == InvalidUtf8::kDrop)
    return Drop(Outcome::kInvalidUtf8, bytes, false, "");
  if (memchr(file.data(), '\0', file.size()) != nullptr) {
    return Drop(Outcome::kMalformed, bytes, !valid, "a NUL byte: not a text file");
  }
  std::string text;
  if (!valid) file = text = Mended(file);
  if (source_.format == DocumentFormat::kHtml) file = text = HtmlToText(file);
  FilterText(file, Fields(), !valid);
}

void DocumentFilter::FilterRow(const Row& row) {
  const auto bytes = static_cast<int64_t>(row.text.size());
  if (bytes > source_.record_bytes_max) return Drop(Outcome::kTooLarge, bytes, false, "");
  const bool valid = IsValidUtf8(row.text);
  if (!valid && source_.invalid_utf8 == InvalidUtf8::kDrop)
    return Drop(Outcome::kInvalidUtf8, bytes, false, "");
  if (!row.has_text) return Drop(Outcome::kMalformed, 0, false, "no text");
  if (row.id.size() > kIdBytesMax) {
    return Drop(Outcome::kMalformed, bytes, !valid,
                absl::StrCat("an id of more than ", kIdBytesMax, " bytes"));
  }
  Fields fields = {.id = row.id, .score = std::nullopt, .licences = row.licences};
  if (row.has_score) fields.score = row.score;
  if (valid) {
    FilterText(row.text, fields, false);
  } else {
    FilterText(Mended(row.text), fields, true);
  }
}

void DocumentFilter::FilterText(absl::string_view text, const Fields& fields, bool mended) {
  const auto bytes = static_cast<int64_t>(text.size());
  if (IsBlank(text)) return Drop(Outcome::kEmpty, bytes, mended, "");
  if (source_.score_min.has_value() &&
      !(fields.score.has_value() && *fields.score >= *source_.score_min)) {
    return Drop(Outcome::kScore, bytes, mended, "");
  }
  if (!source_.licences.empty() && !LicenceAllowed(fields.licences)) {
    return Drop(Outcome::kLicence, bytes, mended, "");
  }
  const bool long_text = source_.bytes_max > 0 && bytes > source_.bytes_max;
  if (long_text && source_.over_long == OverLong::kDrop)
    return Drop(Outcome::kTooLong, bytes, mended, "");
  const std::string name = RecordName();
  const std::string id = fields.id.empty() ? "" : absl::StrCat(" ", EscapedPath(fields.id));
  if (!long_text) return Keep(absl::StrCat(name, id), text, mended);
  const std::vector<absl::string_view> pieces = SplitText(text, source_.bytes_max);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (IsBlank(pieces[i])) {
      Drop(Outcome::kEmpty, static_cast<int64_t>(pieces[i].size()), mended, "");
    } else {
      Keep(absl::StrCat(name, "/", i + 1, id), pieces[i], mended);
    }
    out_.documents.back().split = true;
    out_.documents.back().ends_record = i + 1 == pieces.size();
  }
}

bool DocumentFilter::LicenceAllowed(const std::vector<std::string>& licences) const {
  return !licences.empty() &&
         std::all_of(licences.begin(), licences.end(), [&](const std::string& licence) {
           return std::binary_search(source_.licences.begin(), source_.licences.end(),
                                     absl::AsciiStrToLower(licence));
         });
}

void DocumentFilter::Keep(absl::string_view name, absl::string_view text, bool mended) {
  FilteredDocument& document = out_.documents.emplace_back();
  document.mended = mended;
  document.bytes = static_cast<int64_t>(text.size());
  document.end = end_;
  document.coded_begin = out_.coded.size();
  AppendDocument(name, text, &out_.coded);
  document.coded_end = out_.coded.size();
  if (source_.deduplicate) document.key = DuplicateKey(text);
}

void DocumentFilter::Drop(Outcome outcome, int64_t bytes, bool mended, std::string complaint) {
  FilteredDocument& document = out_.documents.emplace_back();
  document.outcome = outcome;
  document.mended = mended;
  document.bytes = bytes;
  document.end = end_;
  document.complaint = std::move(complaint);
}

const std::string* DocumentFilter::FieldName(int field) const {
  const std::string* const names[] = {&source_.text_field, &source_.id_field, &source_.score_field,
                                      &source_.licence_field};
  return names[field];
}

std::string DocumentFilter::RecordName() const {
  const std::string& file = inputs_.files[static_cast<size_t>(end_.file)].name;
  const bool has_records =
      source_.format == DocumentFormat::kJsonl || source_.format == DocumentFormat::kParquet;
  return has_records ? absl::StrCat(file, "#", end_.records) : file;
}

DocumentKey DuplicateKey(absl::string_view text) {
  const Digest digest = Sha256(AsBytes(text));
  DocumentKey key;
  std::copy_n(digest.bytes.begin(), key.size(), key.begin());
  return key;
}

std::vector<absl::string_view> SplitText(absl::string_view text, int64_t bytes_max) {
  const auto most = static_cast<size_t>(bytes_max);
  std::vector<absl::string_view> pieces;
  while (text.size() > most) {
    const absl::string_view window = text.substr(0, most);
    size_t cut = 0;
    for (const absl::string_view mark : {"\n\n", "\n", " "}) {
      const size_t found = window.rfind(mark);
      if (found == absl::string_view::npos || found + mark.size() <= most / 2) continue;
      cut = found + mark.size();
      break;
    }
    if (cut == 0) cut = CharacterBoundary(text, most);
    pieces.push_back(text.substr(0, cut));
    text.remove_prefix(cut);
  }
  if (!text.empty()) pieces.push_back(text);
  return pieces;
}

}  // namespace lockstep::engine
