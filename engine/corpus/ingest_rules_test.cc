// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a record, rule by rule (docs/corpus_format.md), and that each is counted.
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/testing/source_dir.h"
#include "engine/corpus/document_filter.h"
#include "engine/corpus/testing/ingest_fixture.h"
#include "engine/corpus/utf8.h"

namespace lockstep::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kJsonl[] = "format = \"jsonl\"\npaths = [\"a.jsonl\"]\n";
constexpr char kText[] = "format = \"text\"\npaths = [\".\"]\n";

class IngestRulesTest : public IngestFixture {
 protected:
  // Checks that a report holds these counts and no others: {outcome, documents, bytes}.
  struct Expected {
    Outcome outcome;
    int64_t documents;
    int64_t bytes;
  };
  static void ExpectCounts(const IngestReport& report, const std::vector<Expected>& expected) {
    std::array<OutcomeCount, kOutcomes> counts{};
    for (const Expected& count : expected)
      counts[static_cast<size_t>(count.outcome)] = {count.documents, count.bytes};
    for (int i = 0; i < kOutcomes; ++i) {
      const auto outcome = static_cast<Outcome>(i);
      EXPECT_EQ(report.Of(outcome).documents, counts[static_cast<size_t>(i)].documents)
          << OutcomeName(outcome);
      EXPECT_EQ(report.Of(outcome).bytes, counts[static_cast<size_t>(i)].bytes)
          << OutcomeName(outcome);
    }
  }
};

TEST_F(IngestRulesTest, EveryOutcomeIsCounted) {
  in_.Write("a.jsonl", absl::StrJoin(
                           {
                               R"({"text":"one","s":1,"l":"MIT"})",
                               R"({"text":"one","s":1,"l":"MIT"})",          // duplicate
                               R"({"text":"two","s":0.9,"l":"MIT"})",        // score
                               R"({"text":"two","l":"MIT"})",                // no score
                               R"({"text":"two","s":1,"l":"GPL"})",          // licence
                               R"({"text":" \n","s":1,"l":"MIT"})",          // empty
                               R"({"text":"12345678901","s":1,"l":"MIT"})",  // over-long
                               "{}",                                         // malformed
                               "",                                           // no record
                               "  \t\r",                                     // no record
                               "{\"text\":\"\xFF\"}",                        // not UTF-8
                           },
                           "\n") +
                           "\n{\"text\":\"" + std::string(80, 'x') + "\"}");  // too large
  const IngestReport report = Report(
      absl::StrCat(kJsonl, "invalid_utf8 = \"drop\"\nfields = { score = \"s\", licence = \"l\" }\n",
                   "filters = { score_min = 1, licences = \"mit\", bytes_max = 10, deduplicate = "
                   "true }\nlimits = { record_bytes_max = 64 }"));
  EXPECT_EQ(report.source, "s");
  EXPECT_EQ(report.records, 10);
  ExpectCounts(report, {{Outcome::kKept, 1, 3},
                        {Outcome::kDuplicate, 1, 3},
                        {Outcome::kScore, 2, 6},
                        {Outcome::kLicence, 1, 3},
                        {Outcome::kEmpty, 1, 2},
                        {Outcome::kTooLong, 1, 11},
                        {Outcome::kMalformed, 1, 2},
                        {Outcome::kInvalidUtf8, 1, 12},
                        {Outcome::kTooLarge, 1, 91}});
  EXPECT_EQ(report.mended, 0);
  EXPECT_EQ(report.split, 0);
  EXPECT_EQ(report.pieces, 0);
  EXPECT_THAT(report.complaints, ElementsAre("a.jsonl#8: no field \"text\""));
  EXPECT_THAT(Documents(), ElementsAre("a.jsonl#1=one"));
  const std::string table = report.ToTable();
  for (const char* const said :
       {"s: 10 records", "kept", "record over record_bytes_max", "not valid UTF-8", "malformed",
        "empty", "score", "licence", "text over bytes_max", "duplicate", "a.jsonl#8"}) {
    EXPECT_THAT(table, HasSubstr(said));
  }
  EXPECT_THAT(IngestReport::FromJson(report.ToJson()), IsOkAndHolds(report));
}

TEST_F(IngestRulesTest, BadLinesAreNamed) {
  const std::string deep = std::string(2000, '[') + std::string(2000, ']');
  const std::pair<std::string, std::string> lines[] = {
      {"plain words", "no JSON: "},
      {"{\"text\":\"cut", "no JSON: "},
      {"{\"text\":\"a\"} {}", "no JSON: "},
      {"{\"text\":\"a\",}", "no JSON: "},
      {"[\"text\"]", "no JSON object"},
      {"\"text\"", "no JSON object"},
      {"{\"other\":\"a\"}", "no field \"text\""},
      {"{\"text\":null}", "no field \"text\""},
      {"{\"text\":[\"a\"]}", "field \"text\" is no string"},
      {"{\"text\":1}", "field \"text\" is no string"},
      {"{\"text\":\"a\",\"text\":\"b\"}", "field \"text\" is there twice"},
      {"{\"text\":\"a\",\"deep\":" + deep + "}", "no JSON: "},
      {"{\"text\":\"\\ud800\"}", ""},
      {"{\"text\":\"a\tb\"}", "no JSON: "},
      {"{\"text\":\"a\",\"n\":1e999}", "no JSON: "},
      {"{\"text\":\"a\",\"id\":\"" + std::string(1025, 'i') + "\"}", "an id of more than 1024"},
  };
  for (const auto& [line, complaint] : lines) {
    in_.Write("a.jsonl", absl::StrCat("{\"text\":\"before\"}\n\n", line, "\n{\"text\":\"after\"}"));
    const IngestReport report = Report(absl::StrCat(kJsonl, "fields = { id = \"id\" }"));
    ExpectCounts(report, {{Outcome::kKept, 2, 11},
                          {Outcome::kMalformed, 1, static_cast<int64_t>(line.size())}});
    ASSERT_EQ(report.complaints.size(), 1U) << line;
    EXPECT_THAT(report.complaints[0], ::testing::StartsWith("a.jsonl#3: " + complaint));
    EXPECT_THAT(Documents(), ElementsAre("a.jsonl#1=before", "a.jsonl#4=after"));
  }
}

TEST_F(IngestRulesTest, OnlyTheFirstComplaintsAreKept) {
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += "x\n";
  in_.Write("a.jsonl", lines);
  const IngestReport report = Report(kJsonl, {.threads = 3, .block_bytes = 8});
  ExpectCounts(report, {{Outcome::kMalformed, 50, 50}});
  ASSERT_EQ(report.complaints.size(), IngestReport::kComplaintsMax);
  EXPECT_THAT(report.complaints[9], ::testing::StartsWith("a.jsonl#10: "));
  EXPECT_THAT(Documents(), IsEmpty());
}

TEST_F(IngestRulesTest, Fields) {
  in_.Write("a.jsonl", absl::StrJoin(
                           {
                               R"({"c":{"t":"string id"},"m":{"id":"x y%\n"}})",
                               R"({"c":{"t":"integer id"},"m":{"id":-7}})",
                               R"({"c":{"t":"large id"},"m":{"id":18446744073709551615}})",
                               R"({"c":{"t":"odd id"},"m":{"id":1.5}})",
                               R"({"c":{"t":"null id"},"m":{"id":null}})",
                               R"({"c":{"t":"no id"},"m":[]})",
                               R"({"c.t":"no text"})",
                           },
                           "\n"));
  const IngestReport report =
      Report(absl::StrCat(kJsonl, "fields = { text = \"c.t\", id = \"m.id\" }"));
  EXPECT_THAT(Documents(), ElementsAre("a.jsonl#1 x y%25%0A=string id", "a.jsonl#2 -7=integer id",
                                       "a.jsonl#3 18446744073709551615=large id",
                                       "a.jsonl#4=odd id", "a.jsonl#5=null id", "a.jsonl#6=no id"));
  EXPECT_THAT(report.complaints, ElementsAre("a.jsonl#7: no field \"c.t\""));
}

TEST_F(IngestRulesTest, ScoresAndLicences) {
  in_.Write("a.jsonl", absl::StrJoin(
                           {
                               R"({"text":"1","s":3,"l":"MIT"})",
                               R"({"text":"2","s":3.0,"l":["mit","Apache-2.0"]})",
                               R"({"text":"3","s":2.9999999999999996,"l":"MIT"})",
                               R"({"text":"4","s":"3","l":"MIT"})",
                               R"({"text":"5","s":4e0,"l":["MIT","GPL-3.0"]})",
                               R"({"text":"6","s":4,"l":[]})",
                               R"({"text":"7","s":4,"l":["MIT",1]})",
                               R"({"text":"8","s":4})",
                               R"({"text":"9","s":null,"l":"MIT"})",
                               R"({"text":"10","s":18446744073709551615,"l":"APACHE-2.0"})",
                           },
                           "\n"));
  const std::string fields = absl::StrCat(kJsonl, "fields = { score = \"s\", licence = \"l\" }\n");
  Report(absl::StrCat(fields, "filters = { score_min = 3 }"));
  EXPECT_THAT(Documents(), ElementsAre("a.jsonl#1=1", "a.jsonl#2=2", "a.jsonl#5=5", "a.jsonl#6=6",
                                       "a.jsonl#7=7", "a.jsonl#8=8", "a.jsonl#10=10"));
  Report(absl::StrCat(fields, "filters = { licences = [\"MIT\", \"Apache-2.0\"] }"));
  EXPECT_THAT(Documents(), ElementsAre("a.jsonl#1=1", "a.jsonl#2=2", "a.jsonl#3=3", "a.jsonl#4=4",
                                       "a.jsonl#9=9", "a.jsonl#10=10"));
  EXPECT_EQ(Report(fields).Of(Outcome::kKept).documents, 10);
}

TEST_F(IngestRulesTest, LineEndsAndByteOrderMarks) {
  in_.Write("a.jsonl",
            "\xEF\xBB\xBF{\"text\":\"a\\r\\n\"}\r\n\r\n{\"text\":\"b\"}\r\n\xEF\xBB\xBF{\"text\":"
            "\"c\"}\r\n{\"text\":\"d\"}");
  const IngestReport report = Report(kJsonl);
  EXPECT_THAT(Documents(),
              ElementsAre("a.jsonl#1=a\r\n", "a.jsonl#3=b", "a.jsonl#5=d"));  // 4: mark inside
  EXPECT_EQ(report.Of(Outcome::kMalformed).documents, 1);
  // Of a file's text, all else stays as it is.
  in_.Write("t/a.txt", "\xEF\xBB\xBFone\r\ntwo\r\n");
  in_.Write("t/b.txt", "\xEF\xBB\xBF");
  EXPECT_EQ(Report(kText).Of(Outcome::kEmpty).documents, 1);
  EXPECT_THAT(Documents(), ElementsAre("t/a.txt=one\r\ntwo\r\n"));
}

TEST_F(IngestRulesTest, LinesLongerThanTheCap) {
  const std::string longest = absl::StrCat("{\"text\":\"", std::string(53, 'x'), "\"}");
  ASSERT_EQ(longest.size(), 64U);
  const std::string middle(1000, 'y');
  const std::string end(500, ' ');
  in_.Write("a.jsonl", absl::StrCat(longest, "\n", middle, "\n{\"text\":\"b\"}\n", end));
  in_.Write("b.jsonl.gz", Gzipped(absl::StrCat(middle, "\r\n{\"text\":\"c\"}")));
  for (const int64_t block : {1, 70, 600, 1 << 20}) {
    const IngestReport report =
        Report("format = \"jsonl\"\npaths = \".\"\nlimits = { record_bytes_max = 64 }",
               {.threads = 2, .block_bytes = block});
    EXPECT_EQ(report.records, 6);
    ExpectCounts(report, {{Outcome::kKept, 3, 55}, {Outcome::kTooLarge, 3, 2501}});
    EXPECT_THAT(Documents(),
                ElementsAre("a.jsonl#1=" + std::string(53, 'x'), "a.jsonl#3=b", "b.jsonl.gz#2=c"));
  }
}

TEST_F(IngestRulesTest, FilesLargerThanTheCap) {
  in_.Write("a.txt", std::string(64, 'x'));
  in_.Write("b.txt", std::string(65, 'x'));
  in_.Write("c.txt.zst", Zstandard(std::string(100000, 'x')));
  const IngestReport report = Report(absl::StrCat(kText, "limits = { record_bytes_max = 64 }"));
  ExpectCounts(report, {{Outcome::kKept, 1, 64}, {Outcome::kTooLarge, 2, 100065}});
}

TEST_F(IngestRulesTest, InvalidUtf8) {
  in_.Write("a.txt", "caf\xE9");
  in_.Write("b.txt", "cut \xE4\xB8");
  in_.Write("c.txt", "caf\xC3\xA9");
  IngestReport report = Report(absl::StrCat(kText, "invalid_utf8 = \"replace\""));
  EXPECT_THAT(Documents(),
              ElementsAre("a.txt=caf\xEF\xBF\xBD", "b.txt=cut \xEF\xBF\xBD", "c.txt=caf\xC3\xA9"));
  EXPECT_EQ(report.mended, 2);
  ExpectCounts(report, {{Outcome::kKept, 3, 6 + 7 + 5}});
  report = Report(absl::StrCat(kText, "invalid_utf8 = \"latin-1\""));
  EXPECT_THAT(Documents(),
              ElementsAre("a.txt=caf\xC3\xA9", "b.txt=cut \xC3\xA4\xC2\xB8", "c.txt=caf\xC3\xA9"));
  EXPECT_EQ(report.mended, 2);
  report = Report(absl::StrCat(kText, "invalid_utf8 = \"drop\""));
  EXPECT_THAT(Documents(), ElementsAre("c.txt=caf\xC3\xA9"));
  EXPECT_EQ(report.mended, 0);
  ExpectCounts(report, {{Outcome::kKept, 1, 5}, {Outcome::kInvalidUtf8, 2, 4 + 6}});
  // What is mended goes through the filters like all else.
  report = Report(absl::StrCat(kText, "invalid_utf8 = \"replace\"\nfilters = { bytes_max = 6 }"));
  EXPECT_EQ(report.mended, 2);
  ExpectCounts(report, {{Outcome::kKept, 2, 11}, {Outcome::kTooLong, 1, 7}});
  // One bad line does not touch its neighbours.
  in_.Write("a.jsonl", "{\"text\":\"\xC3\xA9\"}\n{\"text\":\"\xE9\"}\n{\"text\":\"\xC3\xA9\"}\n");
  report =
      Report(absl::StrCat(kJsonl, "invalid_utf8 = \"latin-1\"\nfilters = { deduplicate = true }"));
  EXPECT_THAT(Documents(), ElementsAre("a.jsonl#1=\xC3\xA9"));
  EXPECT_EQ(report.mended, 1);
  ExpectCounts(report, {{Outcome::kKept, 1, 2}, {Outcome::kDuplicate, 2, 4}});
}

TEST_F(IngestRulesTest, BinaryFilesAreNoText) {
  in_.Write("a.txt", absl::string_view("ab\0c", 4));
  in_.Write("b.txt", "x");
  const IngestReport report = Report(kText);
  ExpectCounts(report, {{Outcome::kKept, 1, 1}, {Outcome::kMalformed, 1, 4}});
  EXPECT_THAT(report.complaints, ElementsAre("a.txt#1: a NUL byte: not a text file"));
  in_.Write("a.jsonl", R"({"text":"a\u0000b"})");  // said on purpose
  EXPECT_EQ(Report(kJsonl).Of(Outcome::kKept).bytes, 3);
}

TEST_F(IngestRulesTest, OverLongDocumentsAreSplit) {
  const std::string a = std::string(40, 'a') + "\n\n";
  const std::string b = std::string(50, 'b') + "\n";
  const std::string spaces(70, ' ');
  in_.Write("a.jsonl",
            absl::StrCat("{\"text\":\"", std::string(40, 'a'), "\\n\\n", std::string(50, 'b'),
                         "\\n", spaces, "c\",\"id\":\"x\"}\n{\"text\":\"", std::string(64, 'd'),
                         "\",\"id\":\"y\"}\n"));
  const IngestReport report = Report(absl::StrCat(
      kJsonl, "fields = { id = \"id\" }\nfilters = { bytes_max = 64, over_long = \"split\" }"));
  // 42 bytes to the empty line, 51 to the line feed, 64 spaces, and what is left.
  EXPECT_THAT(Documents(), ElementsAre("a.jsonl#1/1 x=" + a, "a.jsonl#1/2 x=" + b,
                                       "a.jsonl#1/4 x=" + std::string(6, ' ') + "c",
                                       "a.jsonl#2 y=" + std::string(64, 'd')));
  EXPECT_EQ(report.records, 2);
  EXPECT_EQ(report.split, 1);
  EXPECT_EQ(report.pieces, 4);
  ExpectCounts(report, {{Outcome::kKept, 4, 42 + 51 + 7 + 64}, {Outcome::kEmpty, 1, 64}});
  in_.Write("a.jsonl", absl::StrCat("{\"text\":\"", std::string(64, 'a'), spaces, "\"}"));
  const IngestReport blank =
      Report(absl::StrCat(kJsonl, "filters = { bytes_max = 64, over_long = \"split\" }"));
  EXPECT_THAT(Documents(), ElementsAre("a.jsonl#1/1=" + std::string(64, 'a')));
  EXPECT_EQ(blank.pieces, 3);
  ExpectCounts(blank, {{Outcome::kKept, 1, 64}, {Outcome::kEmpty, 2, 70}});
}

TEST_F(IngestRulesTest, PiecesAreTheTextCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    text += i % 17 == 0 ? "\n\n" : i % 11 == 0 ? " " : i % 3 == 0 ? "\xF0\x9F\x98\x80" : "\xC3\xA9";
  }
  for (int64_t most = 4; most < 200; ++most) {
    std::string joined;
    for (const absl::string_view piece : SplitText(text, most)) {
      EXPECT_LE(static_cast<int64_t>(piece.size()), most);
      EXPECT_FALSE(piece.empty());
      EXPECT_TRUE(IsValidUtf8(piece));
      joined.append(piece.data(), piece.size());
    }
    EXPECT_EQ(joined, text);
  }
}

TEST_F(IngestRulesTest, EmptySources) {
  in_.Write("a.jsonl", "");
  IngestReport report = Report(kJsonl);
  EXPECT_EQ(report.records, 0);
  ExpectCounts(report, {});
  EXPECT_THAT(Documents(), IsEmpty());
  in_.Write("a.jsonl", "\n\r\n \n");
  EXPECT_EQ(Report(kJsonl).records, 0);
  in_.Write("a.txt", "");
  report = Report(kText);
  EXPECT_EQ(report.records, 1);
  ExpectCounts(report, {{Outcome::kEmpty, 1, 0}});
  in_.Write("b.jsonl.gz", Gzipped(""));
  EXPECT_EQ(Report("format = \"jsonl\"\npaths = [\"b.jsonl.gz\"]").records, 0);
}

TEST_F(IngestRulesTest, FormatsOfFolders) {
  in_.Write("d/a.md", "# *a*\n");
  in_.Write("d/b.html", "<p>b &amp; c</p>\n<p>d</p>");
  in_.Write("d/c.py", "print(1)\n");
  in_.Write("d/d.txt", "d\n");
  in_.Write("d/e.bin", "e");
  const auto documents = [&](const std::string& format) {
    Report(absl::StrCat("format = \"", format, "\"\npaths = \"d\""));
    return Documents();
  };
  EXPECT_THAT(documents("markdown"), ElementsAre("d/a.md=# *a*\n"));
  EXPECT_THAT(documents("html"), ElementsAre("d/b.html=b & c\n\nd"));
  EXPECT_THAT(documents("code"), ElementsAre("d/c.py=print(1)\n"));
  EXPECT_THAT(documents("text"), ElementsAre("d/d.txt=d\n"));
}

TEST_F(IngestRulesTest, LoopsOfLinks) {
  in_.Write("d/a.txt", "a");
  std::filesystem::create_directory_symlink("..", in_ / "d/up");
  std::filesystem::create_symlink("y.txt", in_ / "d/x.txt");
  std::filesystem::create_symlink("x.txt", in_ / "d/y.txt");
  EXPECT_EQ(Report(kText).records, 1);
  EXPECT_THAT(Documents(), ElementsAre("d/a.txt=a"));
  const absl::StatusOr<IngestReport> loop =
      Run(Source("format = \"text\"\npaths = \"d/x.txt\""), "loop");
  EXPECT_THAT(std::string(loop.status().message()), HasSubstr("d/x.txt"));
}

TEST_F(IngestRulesTest, ParquetWithoutArrowSaysWhatToDo) {
  in_.Write("a.parquet", "no Parquet file");
  const absl::StatusOr<IngestReport> report =
      Run(Source("format = \"parquet\"\npaths = \".\""), "parquet");
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("a.parquet"));
  if (absl::IsUnimplemented(report.status())) {
    EXPECT_THAT(std::string(report.status().message()), HasSubstr("docs/corpus_format.md"));
  } else {
    EXPECT_THAT(report, StatusIs(absl::StatusCode::kDataLoss));
  }
}

// What tests/data/sample/README.md says of the sample.
TEST(IngestSampleTest, CountsOfTheSample) {
  const absl::StatusOr<CorpusConfig> config =
      LoadCorpusConfig(lockstep::testing::SourcePath("tests/data/sample/corpus.toml"));
  ASSERT_THAT(config, IsOk());
  const TestFolder out;
  std::map<std::string, IngestReport> reports;
  for (const SourceConfig& source : config->sources) {
    const absl::StatusOr<InputFiles> inputs = ListInputFiles(source);
    ASSERT_THAT(inputs, IsOk());
    const absl::StatusOr<IngestReport> report =
        IngestSource(source, *inputs, out / source.name, {.threads = 2}, {});
    ASSERT_THAT(report, IsOk());
    reports[source.name] = *report;
  }
  const IngestReport& web = reports["web"];
  EXPECT_EQ(web.records, 249);
  EXPECT_EQ(web.Of(Outcome::kKept), (OutcomeCount{242, 118354}));
  EXPECT_EQ(web.Of(Outcome::kScore).documents, 2);
  EXPECT_EQ(web.Of(Outcome::kEmpty).documents, 2);
  EXPECT_EQ(web.Of(Outcome::kLicence).documents, 1);
  EXPECT_EQ(web.Of(Outcome::kTooLong).documents, 1);
  EXPECT_EQ(web.Of(Outcome::kDuplicate).documents, 1);
  EXPECT_EQ(reports["edu"].Of(Outcome::kKept).documents, 4);
  EXPECT_EQ(reports["edu"].Of(Outcome::kEmpty).documents, 1);
  EXPECT_EQ(reports["code"].Of(Outcome::kKept).documents, 8);
  EXPECT_EQ(reports["math"].Of(Outcome::kKept), (OutcomeCount{250, 40375}));
  EXPECT_EQ(reports["math"].Of(Outcome::kDuplicate).documents, 16);
}

}  // namespace
}  // namespace lockstep::engine
