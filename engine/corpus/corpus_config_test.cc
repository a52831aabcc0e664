// SPDX-License-Identifier: Apache-2.0
//
// corpus.toml: what is read from it, and every way of getting it wrong.
#include "engine/corpus/corpus_config.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/testing/status_matchers.h"
#include "engine/corpus/testing/corpus_files.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kFull[] = R"(# everything
[[source]]
name = "edu"
licence = "ODC-By-1.0"
format = "jsonl"
root = "data"
paths = ["fineweb/*.jsonl.zst", "./extra/"]
exclude = ["**/old/**"]
extensions = [".jsonl", ".json"]
invalid_utf8 = "latin-1"
[source.fields]
text = "content"
id = "meta.id"
score = "score"
licence = "licences"
[source.filters]
score_min = 3
licences = ["MIT", "Apache-2.0"]
bytes_max = 1000000
over_long = "split"
deduplicate = true
[source.limits]
record_bytes_max = 1048576
compression_ratio_max = 100
zstd_window_log_max = 31

[[source]]
name = "code"
licence = "BSD-3-Clause"
format = "code"
paths = "src"
)";

TEST(CorpusConfigTest, ReadsEverything) {
  const absl::StatusOr<CorpusConfig> config = ParseCorpusConfig(kFull, "/corpora");
  ASSERT_THAT(config, IsOk());
  ASSERT_EQ(config->sources.size(), 2U);
  const SourceConfig& edu = config->sources[0];
  EXPECT_EQ(edu.name, "edu");
  EXPECT_EQ(edu.licence, "ODC-By-1.0");
  EXPECT_EQ(edu.format, DocumentFormat::kJsonl);
  EXPECT_EQ(edu.root, "/corpora/data");
  EXPECT_THAT(edu.paths, ElementsAre("fineweb/*.jsonl.zst", "extra"));
  EXPECT_THAT(edu.exclude, ElementsAre("**/old/**"));
  EXPECT_THAT(edu.extensions, ElementsAre(".jsonl", ".json"));
  EXPECT_EQ(edu.invalid_utf8, InvalidUtf8::kLatin1);
  EXPECT_EQ(edu.text_field, "content");
  EXPECT_EQ(edu.id_field, "meta.id");
  EXPECT_EQ(edu.score_field, "score");
  EXPECT_EQ(edu.licence_field, "licences");
  EXPECT_EQ(edu.score_min, 3.0);
  EXPECT_THAT(edu.licences, ElementsAre("apache-2.0", "mit"));
  EXPECT_EQ(edu.bytes_max, 1000000);
  EXPECT_EQ(edu.over_long, OverLong::kSplit);
  EXPECT_TRUE(edu.deduplicate);
  EXPECT_EQ(edu.record_bytes_max, 1048576);
  EXPECT_EQ(edu.compression_ratio_max, 100);
  EXPECT_EQ(edu.zstd_window_log_max, 31);
  const SourceConfig& code = config->sources[1];
  EXPECT_EQ(code.text_field, "text");
  EXPECT_EQ(code.root, "/corpora");
  EXPECT_FALSE(code.deduplicate);
  EXPECT_EQ(code.score_min, std::nullopt);
  EXPECT_EQ(code.invalid_utf8, InvalidUtf8::kReplace);
}

TEST(CorpusConfigTest, EveryMistakeIsNamedWithItsLine) {
  const struct {
    const char* what;
    const char* becomes;
    const char* message;
  } cases[] = {
      {"name = \"edu\"", "", "source: name is missing"},
      {"name = \"edu\"", "name = \"Edu\"", "line 3: source.name"},
      {"name = \"edu\"", "name = \"../x\"", "line 3: source.name"},
      {"name = \"edu\"", "name = \"code\"", "a second source \"code\""},
      {"name = \"edu\"", "name = 3", "found an integer"},
      {"licence = \"ODC-By-1.0\"", "", "licence is missing"},
      {"licence = \"ODC-By-1.0\"", "licence = \"\"", "line 4: source.licence"},
      {"licence = \"ODC-By-1.0\"", "licence = \"a\\nb\"", "without control characters"},
      {"format = \"jsonl\"", "", "format is missing"},
      {"format = \"jsonl\"", "format = \"json\"",
       "expected jsonl, parquet, text, code, markdown, html; found \"json\""},
      {"format = \"jsonl\"", "format = \"text\"", "is for jsonl and parquet"},
      {"paths = \"src\"", "", "paths is missing"},
      {"paths = \"src\"", "paths = []", "an empty array"},
      {"paths = \"src\"", "paths = [1]", "found an integer"},
      {"paths = \"src\"", "paths = \"/src\"", "paths below root"},
      {"paths = \"src\"", "paths = \"a/../../b\"", "paths below root"},
      {"\"**/old/**\"", "\"../old\"", "source.exclude: expected paths below root"},
      {"paths = \"src\"", "path = \"src\"", "paths is missing"},
      {"paths = \"src\"", "paths = \"src\"\nmaximum = 3", "line 32: source has no key \"maximum\""},
      {"[\".jsonl\", \".json\"]", "[\"jsonl\"]", "begin with a dot"},
      {"text = \"content\"", "text = \"a..b\"", "single dots"},
      {"text = \"content\"", "txt = \"content\"", "source.fields has no key \"txt\""},
      {"score = \"score\"", "", "fields.score"},
      {"licence = \"licences\"", "", "fields.licence"},
      {"score_min = 3", "score_min = \"3\"", "expected a number; found a string"},
      {"score_min = 3", "score_min = nan", "expected a number"},
      {"bytes_max = 1000000", "", "bytes_max to say"},
      {"bytes_max = 1000000", "bytes_max = 3", "from 64"},
      {"bytes_max = 1000000", "bytes_max = 1.5", "number with a point"},
      {"over_long = \"split\"", "over_long = \"cut\"", "expected drop, split"},
      {"deduplicate = true", "deduplicate = 1", "true or false"},
      {"record_bytes_max = 1048576", "record_bytes_max = 0", "from 64"},
      {"zstd_window_log_max = 31", "zstd_window_log_max = 32", "from 10 to 31"},
      {"[source.limits]", "[source.limit]", "source has no key \"limit\""},
      {"[source.filters]", "filters = 3\n[x]", "expected only [[source]] tables"},
      {"# everything", "seed = 3", "expected only [[source]] tables; found \"seed\""},
      {"# everything", "name =", "line 1, column"},
      {"# everything", "a = \"\xFF\"", "not TOML"},
  };
  for (const auto& test : cases) {
    const std::string toml = absl::StrReplaceAll(kFull, {{test.what, test.becomes}});
    ASSERT_NE(toml, kFull) << test.what;
    EXPECT_THAT(ParseCorpusConfig(toml, ""),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.message)))
        << test.what << " -> " << test.becomes;
  }
}

TEST(CorpusConfigTest, NoSources) {
  for (const char* const toml :
       {"", "source = 3", "source = []", "[source]\nname = \"x\"", "source = [1, 2]"}) {
    EXPECT_THAT(ParseCorpusConfig(toml, ""), StatusIs(absl::StatusCode::kInvalidArgument)) << toml;
  }
}

TEST(CorpusConfigTest, DeepNestingEnds) {
  const std::string deep = absl::StrCat("a = ", std::string(100000, '['), std::string(100000, ']'));
  EXPECT_THAT(ParseCorpusConfig(deep, ""), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CorpusConfigTest, FingerprintIsOfWhatDecides) {
  const auto fingerprint = [](const std::string& from, const std::string& to,
                              const std::string& folder) {
    const std::string toml = absl::StrReplaceAll(kFull, {{from, to}});
    const absl::StatusOr<CorpusConfig> config = ParseCorpusConfig(toml, folder);
    EXPECT_THAT(config, IsOk()) << to;
    return config->sources[0].Fingerprint();
  };
  const Digest same = fingerprint("# everything", "# nothing", "/elsewhere");
  EXPECT_EQ(fingerprint("# everything", "# everything", "/corpora"), same);
  EXPECT_EQ(fingerprint("zstd_window_log_max = 31", "zstd_window_log_max = 30", ""), same);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"edu\"", "\"edu2\""},
           {"score_min = 3", "score_min = 3.5"},
           {"\"MIT\"", "\"ISC\""},
           {"bytes_max = 1000000", "bytes_max = 1000001"},
           {"deduplicate = true", "deduplicate = false"},
           {"\"latin-1\"", "\"drop\""},
           {"\"content\"", "\"text\""},
           {"record_bytes_max = 1048576", "record_bytes_max = 1048577"},
           {"\"ODC-By-1.0\"", "\"MIT\""}}) {
    EXPECT_NE(fingerprint(from, to, ""), same) << to;
  }
}

TEST(CorpusConfigTest, Files) {
  const TestFolder folder;
  EXPECT_THAT(LoadCorpusConfig(folder / "corpus.toml"), StatusIs(absl::StatusCode::kNotFound));
  folder.Write("corpus.toml", kFull);
  const absl::StatusOr<CorpusConfig> config = LoadCorpusConfig(folder / "corpus.toml");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->sources[0].root, folder / "data");
  folder.Write("corpus.toml", "x = ");
  EXPECT_THAT(LoadCorpusConfig(folder / "corpus.toml"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(folder / "corpus.toml")));
}

}  // namespace
}  // namespace lockstep::engine
