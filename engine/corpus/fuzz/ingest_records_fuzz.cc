// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: a hostile input file, plain or compressed, of JSON lines or of text. It must end in
// documents or in an error that names it, and what comes out must not depend on how it was cut into
// blocks.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/coding.h"
#include "base/logging.h"
#include "engine/corpus/document_filter.h"
#include "engine/corpus/document_store_format.h"
#include "engine/corpus/record_reader.h"
#include "engine/corpus/utf8.h"

namespace lockstep::engine {
namespace {

// In memory where the system has such a place; gone with the object.
class InputFileInMemory {
 public:
  InputFileInMemory(const char* suffix, ByteSpan bytes)
      : folder_(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"),
        name_(absl::StrCat("lockstep-fuzz-", getpid(), suffix)) {
    std::FILE* const file = std::fopen(absl::StrCat(folder_, "/", name_).c_str(), "wb");
    LOCKSTEP_CHECK(file != nullptr);
    LOCKSTEP_CHECK(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
    LOCKSTEP_CHECK(std::fclose(file) == 0);
  }
  ~InputFileInMemory() { unlink(absl::StrCat(folder_, "/", name_).c_str()); }
  InputFileInMemory(const InputFileInMemory&) = delete;
  InputFileInMemory& operator=(const InputFileInMemory&) = delete;

  InputFiles List() const {
    SourceConfig source;
    source.root = folder_;
    source.paths = {name_};
    return ListInputFiles(source).value();
  }

 private:
  const std::string folder_;
  const std::string name_;
};

SourceConfig Source(uint8_t choices, uint8_t more) {
  SourceConfig source;
  source.format = (choices & 1) != 0 ? DocumentFormat::kJsonl
                  : (more & 64) != 0 ? DocumentFormat::kHtml
                                     : DocumentFormat::kText;
  source.invalid_utf8 = static_cast<InvalidUtf8>((choices >> 1 & 3) % 3);
  source.over_long = (choices & 8) != 0 ? OverLong::kSplit : OverLong::kDrop;
  if ((choices & 16) != 0) source.bytes_max = 64;
  if ((choices & 32) != 0) source.record_bytes_max = 200;
  if ((more & 1) != 0) source.text_field = "a.b";
  if ((more & 2) != 0) source.id_field = "id";
  if ((more & 4) != 0) {
    source.score_field = "s";
    source.score_min = 0.5;
  }
  if ((more & 8) != 0) {
    source.licence_field = "l";
    source.licences = {"mit"};
  }
  source.deduplicate = true;
  return source;
}

// What became of every record, and the documents that came out; an error, if the file is damaged.
absl::StatusOr<std::string> Outcomes(const SourceConfig& source, const InputFiles& inputs,
                                     int64_t block_bytes) {
  RecordReader reader(source, inputs, block_bytes, {});
  DocumentFilter filter(source, inputs);
  std::string outcomes;
  std::string coded(kPartMagic);
  size_t kept = 0;
  Block block;
  while (true) {
    const absl::StatusOr<bool> more = reader.Next(&block);
    if (!more.ok()) {
      LOCKSTEP_CHECK(absl::StrContains(more.status().message(), inputs.files[0].path));
      return more.status();
    }
    if (!*more) break;
    const FilteredBlock filtered = filter.Filter(block);
    for (const FilteredDocument& document : filtered.documents) {
      absl::StrAppend(&outcomes, OutcomeName(document.outcome), " ", document.bytes, " ",
                      document.end.records, " ", document.end.bytes, " ", document.complaint, "\n");
      if (document.outcome == Outcome::kKept) ++kept;
    }
    coded += filtered.coded;
  }
  const absl::StatusOr<std::vector<Document>> documents = DecodePart(coded);
  LOCKSTEP_CHECK(documents.ok() && documents->size() == kept);
  for (const Document& document : *documents) {
    LOCKSTEP_CHECK(!IsBlank(document.text));
    LOCKSTEP_CHECK(source.bytes_max == 0 ||
                   static_cast<int64_t>(document.text.size()) <= source.bytes_max);
  }
  return outcomes + coded;
}

void Check(const char* suffix, ByteReader& reader) {
  const uint8_t choices = reader.ReadU8("choices").value_or(0);
  const uint8_t more = reader.ReadU8("more").value_or(0);
  const int64_t block_bytes = 1 + reader.ReadU8("block").value_or(0);
  const SourceConfig source = Source(choices, more);
  const InputFileInMemory file(suffix,
                               reader.ReadFixed("file", reader.remaining()).value_or(ByteSpan()));
  const InputFiles inputs = file.List();
  const absl::StatusOr<std::string> small = Outcomes(source, inputs, block_bytes);
  const absl::StatusOr<std::string> large = Outcomes(source, inputs, 1 << 20);
  LOCKSTEP_CHECK(small.ok() == large.ok());
  LOCKSTEP_CHECK(!small.ok() || *small == *large);
}

}  // namespace
}  // namespace lockstep::engine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::engine;
  ByteReader reader(ByteSpan(data, size));
  const uint8_t compression = reader.ReadU8("compression").value_or(0);
  Check(compression == 0 ? ".gz" : compression == 1 ? ".zst" : "", reader);
  return 0;
}
