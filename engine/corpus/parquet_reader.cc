// SPDX-License-Identifier: Apache-2.0
//
// Parquet through Apache Arrow's C++ library (8 or later). Compiled only where CMake finds it;
// elsewhere parquet_unavailable.cc is.
#include "engine/corpus/parquet_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "arrow/api.h"
#include "arrow/io/file.h"
#include "base/status.h"
#include "parquet/arrow/reader.h"
#include "parquet/exception.h"

namespace lockstep::engine {
namespace {

constexpr int64_t kBatchRows = 256;

absl::Status FromArrow(const arrow::Status& status, absl::string_view path) {
  if (status.ok()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path, ": expected a Parquet file; found: ", status.ToString()));
}

// The values of one field of one batch; null where the source does not name the field.
struct Column {
  std::shared_ptr<arrow::Array> array;
  bool has_value(int64_t row) const { return array != nullptr && array->IsValid(row); }
};

// The text at `row` of an array of strings, plain or large; false for another type.
bool StringAt(const arrow::Array& array, int64_t row, std::string* out) {
  if (const auto* strings = dynamic_cast<const arrow::StringArray*>(&array)) {
    *out = strings->GetString(row);
  } else if (const auto* large = dynamic_cast<const arrow::LargeStringArray*>(&array)) {
    *out = large->GetString(row);
  } else {
    return false;
  }
  return true;
}

template <typename ArrayType>
bool NumberAt(const arrow::Array& array, int64_t row, double* out) {
  const auto* numbers = dynamic_cast<const ArrayType*>(&array);
  if (numbers == nullptr) return false;
  *out = static_cast<double>(numbers->Value(row));
  return true;
}

bool ScoreAt(const arrow::Array& array, int64_t row, double* out) {
  return NumberAt<arrow::DoubleArray>(array, row, out) ||
         NumberAt<arrow::FloatArray>(array, row, out) ||
         NumberAt<arrow::Int64Array>(array, row, out) ||
         NumberAt<arrow::Int32Array>(array, row, out) ||
         NumberAt<arrow::Int16Array>(array, row, out) ||
         NumberAt<arrow::Int8Array>(array, row, out);
}

std::string IdAt(const arrow::Array& array, int64_t row) {
  std::string id;
  if (StringAt(array, row, &id)) return id;
  if (const auto* numbers = dynamic_cast<const arrow::Int64Array*>(&array))
    return absl::StrCat(numbers->Value(row));
  return "";
}

// The strings of one cell, itself a string or a list of nothing but strings; empty for anything
// else.
std::vector<std::string> LicencesAt(const arrow::Array& array, int64_t row) {
  std::string text;
  if (StringAt(array, row, &text)) return {text};
  const auto* lists = dynamic_cast<const arrow::ListArray*>(&array);
  if (lists == nullptr) return {};
  std::vector<std::string> licences;
  for (int64_t i = lists->value_offset(row);
       i < lists->value_offset(row) + lists->value_length(row); ++i) {
    if (lists->values()->IsNull(i) || !StringAt(*lists->values(), i, &text)) return {};
    licences.push_back(text);
  }
  return licences;
}

class ArrowRowReader final : public RowReader {
 public:
  ArrowRowReader(std::string path, const SourceConfig& source)
      : path_(std::move(path)), source_(source) {}

  absl::Status Open(int64_t skip) {
    // The library throws for some damages and returns a status for others.
    try {
      arrow::Result<std::shared_ptr<arrow::io::ReadableFile>> file =
          arrow::io::ReadableFile::Open(path_);
      LOCKSTEP_RETURN_IF_ERROR(FromArrow(file.status(), path_));
      parquet::arrow::FileReaderBuilder builder;
      LOCKSTEP_RETURN_IF_ERROR(FromArrow(builder.Open(*file), path_));
      parquet::ArrowReaderProperties properties;
      properties.set_batch_size(kBatchRows);
      builder.properties(properties);
      LOCKSTEP_RETURN_IF_ERROR(FromArrow(builder.Build(&reader_), path_));
      LOCKSTEP_RETURN_IF_ERROR(CheckColumns());
      // Row groups that lie before the start are not read.
      std::vector<int> groups;
      skip_ = skip;
      for (int group = 0; group < reader_->num_row_groups(); ++group) {
        const int64_t rows = reader_->parquet_reader()->metadata()->RowGroup(group)->num_rows();
        if (groups.empty() && skip_ >= rows) {
          skip_ -= rows;
        } else {
          groups.push_back(group);
        }
      }
      return FromArrow(reader_->GetRecordBatchReader(groups, &batches_), path_);
    } catch (const std::exception& error) {
      return absl::DataLossError(
          absl::StrCat(path_, ": expected a Parquet file; found: ", error.what()));
    }
  }

  absl::StatusOr<std::vector<Row>> Next() override {
    try {
      while (true) {
        std::shared_ptr<arrow::RecordBatch> batch;
        LOCKSTEP_RETURN_IF_ERROR(FromArrow(batches_->ReadNext(&batch), path_));
        if (batch == nullptr) return std::vector<Row>();
        const int64_t first = std::min(skip_, batch->num_rows());
        skip_ -= first;
        if (first < batch->num_rows()) return Rows(*batch, first);
      }
    } catch (const std::exception& error) {
      return absl::DataLossError(
          absl::StrCat(path_, ": expected a Parquet file; found: ", error.what()));
    }
  }

 private:
  // Every field that the source names must be a column, structures' members among them.
  absl::Status CheckColumns() {
    std::shared_ptr<arrow::Schema> schema;
    LOCKSTEP_RETURN_IF_ERROR(FromArrow(reader_->GetSchema(&schema), path_));
    for (const std::string* name :
         {&source_.text_field, &source_.id_field, &source_.score_field, &source_.licence_field}) {
      if (name->empty()) continue;
      const std::vector<std::string> parts = absl::StrSplit(*name, '.');
      std::shared_ptr<arrow::Field> field = schema->GetFieldByName(parts[0]);
      for (size_t i = 1; i < parts.size() && field != nullptr; ++i) {
        const auto* type = dynamic_cast<const arrow::StructType*>(field->type().get());
        field = type == nullptr ? nullptr : type->GetFieldByName(parts[i]);
      }
      if (field != nullptr &&
          (name != &source_.text_field || field->type()->id() == arrow::Type::STRING ||
           field->type()->id() == arrow::Type::LARGE_STRING)) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": expected a column \"", *name, "\"",
                       name == &source_.text_field ? " of strings" : "", "; found ",
                       absl::StrJoin(schema->field_names(), ", ")));
    }
    return absl::OkStatus();
  }

  static Column Find(const arrow::RecordBatch& batch, const std::string& name) {
    if (name.empty()) return {};
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    std::shared_ptr<arrow::Array> array = batch.GetColumnByName(parts[0]);
    for (size_t i = 1; i < parts.size() && array != nullptr; ++i) {
      const auto* structure = dynamic_cast<const arrow::StructArray*>(array.get());
      array = structure == nullptr ? nullptr : structure->GetFieldByName(parts[i]);
    }
    return {array};
  }

  std::vector<Row> Rows(const arrow::RecordBatch& batch, int64_t first) const {
    const Column text = Find(batch, source_.text_field);
    const Column id = Find(batch, source_.id_field);
    const Column score = Find(batch, source_.score_field);
    const Column licence = Find(batch, source_.licence_field);
    std::vector<Row> rows;
    for (int64_t i = first; i < batch.num_rows(); ++i) {
      Row& row = rows.emplace_back();
      row.has_text = text.has_value(i) && StringAt(*text.array, i, &row.text);
      if (id.has_value(i)) row.id = IdAt(*id.array, i);
      row.has_score = score.has_value(i) && ScoreAt(*score.array, i, &row.score);
      if (licence.has_value(i)) row.licences = LicencesAt(*licence.array, i);
    }
    return rows;
  }

  const std::string path_;
  const SourceConfig& source_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  int64_t skip_ = 0;  // rows still to be passed over
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowReader>> OpenRowReader(const std::string& path,
                                                         const SourceConfig& source, int64_t skip) {
  auto reader = std::make_unique<ArrowRowReader>(path, source);
  LOCKSTEP_RETURN_IF_ERROR(reader->Open(skip));
  return reader;
}

}  // namespace lockstep::engine
