// SPDX-License-Identifier: Apache-2.0
//
// What tests of the ingest share: a folder of inputs, a source described in TOML, and runs of it.
// For tests only.
#ifndef LOCKSTEP_ENGINE_CORPUS_TESTING_INGEST_FIXTURE_H_
#define LOCKSTEP_ENGINE_CORPUS_TESTING_INGEST_FIXTURE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "engine/corpus/corpus_config.h"
#include "engine/corpus/ingest.h"
#include "engine/corpus/input_files.h"
#include "engine/corpus/testing/corpus_files.h"
#include "gtest/gtest.h"

namespace lockstep::engine {

class IngestFixture : public ::testing::Test {
 protected:
  // Source "s" over the folder of inputs; `keys` are further lines of its table.
  SourceConfig Source(const std::string& keys) const {
    const absl::StatusOr<CorpusConfig> config = ParseCorpusConfig(
        absl::StrCat("[[source]]\nname = \"s\"\nlicence = \"CC0-1.0\"\n", keys), in_.path());
    EXPECT_THAT(config, IsOk()) << keys;
    return config.ok() ? config->sources[0] : SourceConfig();
  }

  absl::StatusOr<IngestReport> Run(const SourceConfig& source, const std::string& folder,
                                   const IngestOptions& options = {},
                                   const IngestHooks& hooks = {}) const {
    const absl::StatusOr<InputFiles> inputs = ListInputFiles(source);
    if (!inputs.ok()) return inputs.status();
    return IngestSource(source, *inputs, out_ / folder, options, hooks);
  }

  // The report of a run that must succeed, over inputs that may have changed, in a folder of its
  // own.
  IngestReport Report(const std::string& keys, const IngestOptions& options = {}) {
    folder_ = absl::StrCat("run", ++runs_);
    const absl::StatusOr<IngestReport> report = Run(Source(keys), folder_, options);
    EXPECT_THAT(report, IsOk()) << keys;
    return report.ok() ? *report : IngestReport();
  }

  // "name=text" of all documents of the last Report().
  std::vector<std::string> Documents() const {
    std::vector<std::string> documents;
    for (const Document& document : AllDocuments(out_ / folder_))
      documents.push_back(absl::StrCat(document.name, "=", document.text));
    return documents;
  }

  TestFolder in_;
  TestFolder out_;
  std::string folder_;
  int runs_ = 0;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_TESTING_INGEST_FIXTURE_H_
