// SPDX-License-Identifier: Apache-2.0
//
// Parquet through Apache Arrow's C++ library (10 or later). Compiled only where CMake finds it;
// elsewhere parquet_unavailable.cc is. Arrow reads the file by itself and returns statuses or
// throws; both end here. Only the columns that the source names are read, a few hundred rows at a
// time.
#include "engine/corpus/parquet_reader.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "arrow/api.h"
#include "arrow/io/api.h"
#include "base/status.h"
#include "parquet/arrow/reader.h"
#include "parquet/file_reader.h"
#include "parquet/metadata.h"
#include "parquet/properties.h"
#include "parquet/schema.h"

namespace lockstep::engine {
namespace {

constexpr int64_t kBatchRows = 256;

using Batches = std::shared_ptr<arrow::RecordBatchReader>;
using FileReader = std::unique_ptr<parquet::arrow::FileReader>;

absl::Status NoParquet(absl::string_view path, absl::string_view found) {
  return absl::DataLossError(absl::StrCat(path, ": expected a Parquet file; found: ", found));
}

absl::Status FromArrow(const arrow::Status& status, absl::string_view path) {
  return status.ok() ? absl::OkStatus() : NoParquet(path, status.ToString());
}

// Arrow's releases differ in whether these return a result or fill in an argument.
template <typename Builder>
arrow::Result<FileReader> Build(Builder& builder) {
  if constexpr (requires { builder.Build(); }) {
    return builder.Build();
  } else {
    FileReader reader;
    ARROW_RETURN_NOT_OK(builder.Build(&reader));
    return reader;
  }
}

template <typename Reader>
arrow::Result<Batches> BatchesOf(Reader& reader, const std::vector<int>& row_groups,
                                 const std::vector<int>& columns) {
  if constexpr (requires { reader.GetRecordBatchReader(row_groups, columns); }) {
    ARROW_ASSIGN_OR_RAISE(auto batches, reader.GetRecordBatchReader(row_groups, columns));
    return Batches(std::move(batches));
  } else {
    std::unique_ptr<arrow::RecordBatchReader> batches;
    ARROW_RETURN_NOT_OK(reader.GetRecordBatchReader(row_groups, columns, &batches));
    return Batches(std::move(batches));
  }
}

// What a source may ask of a column.
bool IsText(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING;
}

bool IsId(const arrow::DataType& type) {
  return IsText(type) || type.id() == arrow::Type::INT64 || type.id() == arrow::Type::UINT64 ||
         type.id() == arrow::Type::INT32 || type.id() == arrow::Type::UINT32;
}

bool IsScore(const arrow::DataType& type) {
  return type.id() == arrow::Type::DOUBLE || type.id() == arrow::Type::FLOAT ||
         type.id() == arrow::Type::INT64 || type.id() == arrow::Type::INT32 ||
         type.id() == arrow::Type::INT16 || type.id() == arrow::Type::INT8;
}

bool IsLicence(const arrow::DataType& type) {
  if (type.id() == arrow::Type::LIST)
    return IsText(*static_cast<const arrow::ListType&>(type).value_type());
  if (type.id() == arrow::Type::LARGE_LIST)
    return IsText(*static_cast<const arrow::LargeListType&>(type).value_type());
  return IsText(type);
}

// The values of one of these at a row that is not null. Types were checked before.
std::string TextAt(const arrow::Array& array, int64_t row) {
  return array.type_id() == arrow::Type::STRING
             ? static_cast<const arrow::StringArray&>(array).GetString(row)
             : static_cast<const arrow::LargeStringArray&>(array).GetString(row);
}

template <typename ArrayType>
auto ValueAt(const arrow::Array& array, int64_t row) {
  return static_cast<const ArrayType&>(array).Value(row);
}

std::string IdAt(const arrow::Array& array, int64_t row) {
  switch (array.type_id()) {
    case arrow::Type::INT64:
      return absl::StrCat(ValueAt<arrow::Int64Array>(array, row));
    case arrow::Type::UINT64:
      return absl::StrCat(ValueAt<arrow::UInt64Array>(array, row));
    case arrow::Type::INT32:
      return absl::StrCat(ValueAt<arrow::Int32Array>(array, row));
    case arrow::Type::UINT32:
      return absl::StrCat(ValueAt<arrow::UInt32Array>(array, row));
    default:
      return TextAt(array, row);
  }
}

double ScoreAt(const arrow::Array& array, int64_t row) {
  switch (array.type_id()) {
    case arrow::Type::DOUBLE:
      return ValueAt<arrow::DoubleArray>(array, row);
    case arrow::Type::FLOAT:
      return static_cast<double>(ValueAt<arrow::FloatArray>(array, row));
    case arrow::Type::INT64:
      return static_cast<double>(ValueAt<arrow::Int64Array>(array, row));
    case arrow::Type::INT32:
      return static_cast<double>(ValueAt<arrow::Int32Array>(array, row));
    case arrow::Type::INT16:
      return static_cast<double>(ValueAt<arrow::Int16Array>(array, row));
    default:
      return static_cast<double>(ValueAt<arrow::Int8Array>(array, row));
  }
}

// The strings of a list's cell; none if one of them is null, so that such a row has no licence that
// could be allowed.
template <typename ListArrayType>
std::vector<std::string> StringsAt(const arrow::Array& array, int64_t row) {
  const auto& lists = static_cast<const ListArrayType&>(array);
  const arrow::Array& values = *lists.values();
  std::vector<std::string> strings;
  const int64_t begin = lists.value_offset(row);
  for (int64_t i = begin; i < begin + lists.value_length(row); ++i) {
    if (values.IsNull(i)) return {};
    strings.push_back(TextAt(values, i));
  }
  return strings;
}

std::vector<std::string> LicencesAt(const arrow::Array& array, int64_t row) {
  if (array.type_id() == arrow::Type::LIST) return StringsAt<arrow::ListArray>(array, row);
  if (array.type_id() == arrow::Type::LARGE_LIST)
    return StringsAt<arrow::LargeListArray>(array, row);
  return {TextAt(array, row)};
}

// A field of a batch: the arrays on the way to it, structures first, itself last.
class Column {
 public:
  // Empty where the source does not name the field.
  static Column Find(const arrow::RecordBatch& batch, const std::string& name) {
    Column column;
    if (name.empty()) return column;
    for (const absl::string_view part : absl::StrSplit(name, '.')) {
      std::shared_ptr<arrow::Array> array;
      if (column.path_.empty()) {
        array = batch.GetColumnByName(std::string(part));
      } else if (column.path_.back()->type_id() == arrow::Type::STRUCT) {
        array = static_cast<const arrow::StructArray&>(*column.path_.back())
                    .GetFieldByName(std::string(part));
      }
      if (array == nullptr) return {};
      column.path_.push_back(std::move(array));
    }
    return column;
  }

  // A member of a null structure is absent, too.
  bool HasValue(int64_t row) const {
    return !path_.empty() && std::all_of(path_.begin(), path_.end(),
                                         [&](const auto& array) { return array->IsValid(row); });
  }

  const arrow::Array& array() const { return *path_.back(); }

 private:
  std::vector<std::shared_ptr<arrow::Array>> path_;
};

class ArrowRowReader final : public RowReader {
 public:
  ArrowRowReader(std::string path, const SourceConfig& source)
      : path_(std::move(path)), source_(source) {}

  absl::Status Open(int64_t skip) {
    try {
      LOCKSTEP_RETURN_IF_ERROR(OpenFile());
      LOCKSTEP_RETURN_IF_ERROR(CheckColumns());
      return OpenBatches(skip);
    } catch (const std::exception& error) {
      return NoParquet(path_, error.what());
    }
  }

  absl::StatusOr<std::vector<Row>> Next() override {
    try {
      while (batches_ != nullptr) {
        std::shared_ptr<arrow::RecordBatch> batch;
        LOCKSTEP_RETURN_IF_ERROR(FromArrow(batches_->ReadNext(&batch), path_));
        if (batch == nullptr) break;
        const int64_t first = std::min(skip_, batch->num_rows());
        skip_ -= first;
        if (first < batch->num_rows()) return Rows(*batch, first);
      }
      return std::vector<Row>();
    } catch (const std::exception& error) {
      return NoParquet(path_, error.what());
    }
  }

 private:
  absl::Status OpenFile() {
    const arrow::Result<std::shared_ptr<arrow::io::ReadableFile>> file =
        arrow::io::ReadableFile::Open(path_);
    LOCKSTEP_RETURN_IF_ERROR(FromArrow(file.status(), path_));
    // Pages as they are needed, not a column of a row group at once, nor all of them ahead.
    parquet::ReaderProperties file_properties = parquet::default_reader_properties();
    file_properties.enable_buffered_stream();
    parquet::ArrowReaderProperties properties = parquet::default_arrow_reader_properties();
    properties.set_batch_size(kBatchRows);
    properties.set_pre_buffer(false);
    properties.set_use_threads(false);
    parquet::arrow::FileReaderBuilder builder;
    LOCKSTEP_RETURN_IF_ERROR(FromArrow(builder.Open(*file, file_properties), path_));
    builder.properties(properties);
    arrow::Result<FileReader> reader = Build(builder);
    LOCKSTEP_RETURN_IF_ERROR(FromArrow(reader.status(), path_));
    reader_ = std::move(reader).ValueOrDie();
    return absl::OkStatus();
  }

  // Every field that the source names must be a column, structures' members among them.
  absl::Status CheckColumns() {
    std::shared_ptr<arrow::Schema> schema;
    LOCKSTEP_RETURN_IF_ERROR(FromArrow(reader_->GetSchema(&schema), path_));
    const struct {
      const std::string& name;
      bool (*fits)(const arrow::DataType& type);
      const char* expected;
    } fields[] = {{source_.text_field, IsText, "strings"},
                  {source_.id_field, IsId, "strings or integers"},
                  {source_.score_field, IsScore, "numbers"},
                  {source_.licence_field, IsLicence, "strings or lists of strings"}};
    for (const auto& field : fields) {
      if (field.name.empty()) continue;
      const std::shared_ptr<arrow::DataType> type = TypeOf(*schema, field.name);
      if (type != nullptr && field.fits(*type)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": expected one column \"", field.name, "\" of ", field.expected, "; found ",
          type == nullptr ? absl::StrCat("the columns ", absl::StrJoin(schema->field_names(), ", "))
                          : type->ToString()));
    }
    return absl::OkStatus();
  }

  // Null if there is no such column, or two.
  static std::shared_ptr<arrow::DataType> TypeOf(const arrow::Schema& schema,
                                                 const std::string& name) {
    std::shared_ptr<arrow::Field> field;
    bool first = true;
    for (const absl::string_view part : absl::StrSplit(name, '.')) {
      if (first) {
        field = schema.GetFieldByName(std::string(part));
      } else if (field->type()->id() == arrow::Type::STRUCT) {
        field =
            static_cast<const arrow::StructType&>(*field->type()).GetFieldByName(std::string(part));
      } else {
        return nullptr;
      }
      if (field == nullptr) return nullptr;
      first = false;
    }
    return field->type();
  }

  // From the row group that holds row `skip` on.
  absl::Status OpenBatches(int64_t skip) {
    const std::shared_ptr<parquet::FileMetaData> metadata = reader_->parquet_reader()->metadata();
    skip_ = skip;
    std::vector<int> row_groups;
    for (int group = 0; group < metadata->num_row_groups(); ++group) {
      const int64_t rows = metadata->RowGroup(group)->num_rows();
      if (row_groups.empty() && skip_ >= rows) {
        skip_ -= rows;
      } else {
        row_groups.push_back(group);
      }
    }
    if (row_groups.empty()) return absl::OkStatus();
    arrow::Result<Batches> batches = BatchesOf(*reader_, row_groups, LeafColumns(*metadata));
    LOCKSTEP_RETURN_IF_ERROR(FromArrow(batches.status(), path_));
    batches_ = std::move(batches).ValueOrDie();
    return absl::OkStatus();
  }

  // The file's columns that make up the fields: a list's is "licences.list.element".
  std::vector<int> LeafColumns(const parquet::FileMetaData& metadata) const {
    std::vector<int> columns;
    for (int i = 0; i < metadata.num_columns(); ++i) {
      const std::string path = metadata.schema()->Column(i)->path()->ToDotString();
      for (const std::string* name :
           {&source_.text_field, &source_.id_field, &source_.score_field, &source_.licence_field}) {
        if (name->empty() || (path != *name && !absl::StartsWith(path, absl::StrCat(*name, "."))))
          continue;
        columns.push_back(i);
        break;
      }
    }
    return columns;
  }

  std::vector<Row> Rows(const arrow::RecordBatch& batch, int64_t first) const {
    const Column text = Column::Find(batch, source_.text_field);
    const Column id = Column::Find(batch, source_.id_field);
    const Column score = Column::Find(batch, source_.score_field);
    const Column licence = Column::Find(batch, source_.licence_field);
    std::vector<Row> rows;
    rows.reserve(static_cast<size_t>(batch.num_rows() - first));
    for (int64_t i = first; i < batch.num_rows(); ++i) {
      Row& row = rows.emplace_back();
      row.has_text = text.HasValue(i);
      row.has_score = score.HasValue(i);
      if (row.has_text) row.text = TextAt(text.array(), i);
      if (row.has_score) row.score = ScoreAt(score.array(), i);
      if (id.HasValue(i)) row.id = IdAt(id.array(), i);
      if (licence.HasValue(i)) row.licences = LicencesAt(licence.array(), i);
    }
    return rows;
  }

  const std::string path_;
  const SourceConfig& source_;
  FileReader reader_;  // outlives batches_
  Batches batches_;
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
