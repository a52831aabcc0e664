// SPDX-License-Identifier: Apache-2.0
//
// See csv_writer.h.

#include "coordinator/api/csv_writer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace lockstep::coordinator {

void CsvWriter::Text(absl::string_view text) {
  const bool formula =
      !text.empty() && absl::string_view("=+-@\t\r").find(text.front()) != absl::string_view::npos;
  std::string cell = absl::StrCat(formula ? "'" : "", CleanUtf8(text));
  const bool quoted = cell.find_first_of(",\"\r\n") != std::string::npos;
  if (quoted) cell = absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
  row_ += cell;
}

}  // namespace lockstep::coordinator
