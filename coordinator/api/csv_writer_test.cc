// SPDX-License-Identifier: Apache-2.0

#include "coordinator/api/csv_writer.h"

#include <limits>

#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

std::string Cell(const std::string& text) {
  CsvWriter csv;
  csv.BeginObject();
  csv.Field("name", text);
  csv.EndObject();
  EXPECT_EQ(csv.TakeHeader(), "name\r\n");
  std::string row = csv.TakeRows();
  EXPECT_EQ(row.substr(row.size() - 2), "\r\n");
  return row.substr(0, row.size() - 2);
}

TEST(CsvWriterTest, RowsAndHeader) {
  CsvWriter csv;
  for (const int i : {1, 2}) {
    csv.BeginObject();
    csv.Field("empty", std::string());
    csv.Field("n", i);
    csv.Field("none", std::optional<uint64_t>());
    csv.ObjectField("credit");
    csv.Field("valid", uint64_t{3});
    csv.Field("rejected", -4);
    csv.EndObject();
    csv.Field("words", std::vector<std::string>{"a", "b"});
    csv.Field("flag", true);
    csv.Field("loss", std::numeric_limits<float>::quiet_NaN());
    csv.Field("why", std::optional<std::string>("a, b"));
    csv.EndObject();
  }
  const std::string rows = csv.TakeRows();
  EXPECT_EQ(rows, ",1,,3,-4,a b,true,nan,\"a, b\"\r\n,2,,3,-4,a b,true,nan,\"a, b\"\r\n");
  csv.BeginObject();
  csv.Field("empty", std::string());
  csv.ObjectField("credit");
  csv.Field("valid", 1);
  csv.EndObject();
  csv.EndObject();
  EXPECT_EQ(csv.TakeHeader(), "empty,credit_valid\r\n");
}

TEST(CsvWriterTest, Escapes) {
  EXPECT_EQ(Cell("plain"), "plain");
  EXPECT_EQ(Cell("a,b"), "\"a,b\"");
  EXPECT_EQ(Cell("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(Cell("two\r\nlines"), "\"two\r\nlines\"");
  EXPECT_EQ(Cell("\xFF"), "\xEF\xBF\xBD");
  EXPECT_EQ(Cell("<b>&amp;"), "<b>&amp;");
}

TEST(CsvWriterTest, NoFormulas) {
  for (const char* const text : {"=1+1", "+1", "-1", "@SUM(A1)", "\ttab"}) {
    EXPECT_EQ(Cell(text), "'" + std::string(text));
  }
  EXPECT_EQ(Cell("\rcr"), "\"'\rcr\"");
  EXPECT_EQ(Cell("=HYPERLINK(\"http://x\",\"y\")"), "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\"");
  EXPECT_EQ(Cell("a=b"), "a=b");
}

}  // namespace
}  // namespace lockstep::coordinator
