// SPDX-License-Identifier: Apache-2.0
//
// Rows as CSV (RFC 4180), by the calls that would write them as a JSON object: so a list's columns
// are the fields of its objects. Objects within are flattened, "credit" and "valid" to
// "credit_valid"; lists of words are joined by spaces. Text that a spreadsheet would take for a
// formula has a "'" put before it.

#ifndef LOCKSTEP_COORDINATOR_API_CSV_WRITER_H_
#define LOCKSTEP_COORDINATOR_API_CSV_WRITER_H_

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"
#include "coordinator/core/json_writer.h"

namespace lockstep::coordinator {

class CsvWriter {
 public:
  void BeginObject() {}
  void EndObject() {
    if (prefix_.empty()) {
      header_ += "\r\n";
      row_ += "\r\n";
      first_ = true;
    }
    prefix_.clear();
  }
  void ObjectField(absl::string_view name) { prefix_ = std::string(name) + "_"; }

  template <typename T>
  void Field(absl::string_view name, const T& value) {
    if (!first_) {
      header_ += ',';
      row_ += ',';
    }
    first_ = false;
    header_ += prefix_ + std::string(name);
    if constexpr (std::is_convertible_v<const T&, absl::string_view>) {
      Text(value);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      Text(absl::StrJoin(value, " "));
    } else if constexpr (std::is_same_v<T, std::optional<std::string>>) {
      Text(value.value_or(""));
    } else {
      // Numbers, digests, booleans: as JSON has them, which is plain but for quotes; null is empty.
      JsonWriter json;
      json.Value(value);
      std::string text = json.Take();
      if (text == "null") text.clear();
      if (text.size() > 1 && text.front() == '"') text = text.substr(1, text.size() - 2);
      row_ += text;
    }
  }

  // The header row of what was written so far, and the rows; both begin anew.
  std::string TakeHeader() { return std::exchange(header_, {}); }
  std::string TakeRows() {
    header_.clear();
    return std::exchange(row_, {});
  }

 private:
  void Text(absl::string_view text);

  bool first_ = true;  // in its row
  std::string prefix_;
  std::string header_;
  std::string row_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_API_CSV_WRITER_H_
