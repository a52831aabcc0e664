// SPDX-License-Identifier: Apache-2.0
//
// What an ingest promises whatever happens to it: the same bytes for any number of threads, and
// after a kill at any point; errors that say what is wrong; nothing half-written.
#include "engine/corpus/ingest.h"

#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/corpus/document_store_format.h"
#include "engine/corpus/ingest_state.h"
#include "engine/corpus/testing/ingest_fixture.h"

namespace lockstep::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A run that stops after each part is the one whose interruptions matter.
constexpr IngestOptions kSmallParts = {.threads = 2, .part_bytes = 1000, .block_bytes = 500};

class IngestTest : public IngestFixture {
 protected:
  // Files of all kinds of bytes and records, and every filter at work.
  void WriteInputs() {
    std::mt19937 random(5);
    for (int file = 0; file < 6; ++file) {
      std::string lines;
      for (int i = 0; i < 60; ++i) lines += Line(random);
      if (file % 2 == 1) lines.pop_back();
      const std::string name = absl::StrCat("d/", file, ".jsonl");
      in_.Write(absl::StrCat(name, file == 2   ? ".gz"
                                   : file == 4 ? ".zst"
                                               : ""),
                file == 2   ? Gzipped(lines)
                : file == 4 ? Zstandard(lines)
                            : lines);
    }
    in_.Write("d/7.jsonl", "");
  }

  SourceConfig Everything() const {
    return Source(
        "format = \"jsonl\"\npaths = \"d\"\nfields = { score = \"s\", id = \"id\" }\n"
        "filters = { score_min = 0.1, deduplicate = true, bytes_max = 200, over_long = \"split\" "
        "}\n"
        "limits = { record_bytes_max = 1000 }");
  }

  // Runs `body` in a process of its own; the status that waitpid gives.
  static int InChild(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      body();
      _exit(0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }

  // Under their own names there are only whole parts, a whole progress file, report or manifest.
  static void ExpectNothingHalfWritten(const std::string& folder) {
    for (const auto& [name, bytes] : FolderBytes(folder)) {
      if (absl::StartsWith(name, ".lockstep-")) continue;
      if (name == kProgressFile) {
        EXPECT_THAT(ParseIngestState(bytes), IsOk()) << name;
      } else if (name == kManifestFile) {
        EXPECT_THAT(ParseStoreManifest(bytes), IsOk()) << name;
      } else if (name != kReportFile) {
        EXPECT_THAT(DecodePart(bytes), IsOk()) << name;
      }
    }
  }

 private:
  static std::string Line(std::mt19937& random) {
    switch (random() % 12) {
      case 0:
        return "\n";
      case 1:
        return "{\"text\":\n";
      case 2:
        return "{\"text\":\"bad \xFF utf\",\"s\":1}\n";
      case 3:
        return absl::StrCat("{\"text\":\"long ", std::string(1200, 'x'), "\",\"s\":1}\n");
      case 4:
        return absl::StrCat("{\"text\":\"split ", std::string(random() % 500, 'x'), " ",
                            random() % 100, " end\",\"s\":1,\"id\":", random() % 1000, "}\n");
      case 5:
        return absl::StrCat("{\"text\":\"twice ", random() % 10, "\",\"s\":1}\r\n");
      default:
        return absl::StrCat("{\"text\":\"document ", random(),
                            " \xC3\xA9\",\"s\":", static_cast<double>(random() % 100) / 100, "}\n");
    }
  }
};

TEST_F(IngestTest, SameBytesForAnyThreadsAndBlocks) {
  WriteInputs();
  const SourceConfig source = Everything();
  IngestOptions options = kSmallParts;
  options.threads = 1;
  ASSERT_THAT(Run(source, "reference", options), IsOk());
  const std::map<std::string, std::string> expected = FolderBytes(out_ / "reference");
  EXPECT_GT(expected.size(), 8U);  // of parts
  for (const int threads : {1, 2, 3, 5}) {
    for (const int64_t block : {1, 64, 1000, 1 << 20}) {
      options.threads = threads;
      options.block_bytes = block;
      const std::string folder = absl::StrCat(threads, "-", block);
      ASSERT_THAT(Run(source, folder, options), IsOk());
      EXPECT_EQ(FolderBytes(out_ / folder), expected) << folder;
    }
  }
}

TEST_F(IngestTest, PartsOfOneDocument) {
  WriteInputs();
  IngestOptions options = kSmallParts;
  ASSERT_THAT(Run(Everything(), "large", {}), IsOk());
  const std::vector<Document> expected = AllDocuments(out_ / "large");
  EXPECT_GT(expected.size(), 200U);
  for (const int64_t part_bytes : {0, 1, 700}) {
    options.part_bytes = part_bytes;
    const std::string folder = absl::StrCat("parts-of-", part_bytes);
    ASSERT_THAT(Run(Everything(), folder, options), IsOk());
    const std::vector<Document> documents = AllDocuments(out_ / folder);
    ASSERT_EQ(documents.size(), expected.size());
    for (size_t i = 0; i < documents.size(); ++i) {
      EXPECT_EQ(documents[i].name, expected[i].name);
      EXPECT_EQ(documents[i].text, expected[i].text);
    }
  }
}

TEST_F(IngestTest, KilledAtEveryDurablePoint) {
  WriteInputs();
  const SourceConfig source = Everything();
  int points = 0;
  const absl::StatusOr<IngestReport> report =
      Run(source, "whole", kSmallParts, {.durable = [&](const char*) { ++points; }});
  ASSERT_THAT(report, IsOk());
  const std::map<std::string, std::string> expected = FolderBytes(out_ / "whole");
  ASSERT_GT(points, 12);
  for (int kill = 1; kill <= points; ++kill) {
    const std::string folder = absl::StrCat("killed-", kill);
    const int status = InChild([&] {
      int passed = 0;
      (void)Run(source, folder, kSmallParts, {.durable = [&](const char*) {
                  if (++passed == kill) raise(SIGKILL);
                }});
    });
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << kill;
    ExpectNothingHalfWritten(out_ / folder);
    if (kill < points) {
      EXPECT_THAT(DocumentStore::Open(out_ / folder), StatusIs(absl::StatusCode::kNotFound));
    }
    EXPECT_THAT(Run(source, folder, kSmallParts), IsOkAndHolds(*report)) << kill;
    EXPECT_EQ(FolderBytes(out_ / folder), expected) << kill;
  }
}

TEST_F(IngestTest, KilledAgainAndAgainAnywhere) {
  WriteInputs();
  const SourceConfig source = Everything();
  uint32_t calls = 0;
  const absl::StatusOr<IngestReport> report =
      Run(source, "whole", kSmallParts, {.progress = [&](int64_t, int64_t) { ++calls; }});
  ASSERT_THAT(report, IsOk());
  ASSERT_GT(calls, 20U);
  const std::map<std::string, std::string> expected = FolderBytes(out_ / "whole");
  // A kill in the midst of a part, not only where something is durable; each run comes a little
  // further than the one before, or a kill comes so early that it does not.
  std::mt19937 random(6);
  int kills = 0;
  for (int i = 0; i < 60; ++i) {
    const int kill = static_cast<int>(random() % (calls / 2));
    const int status = InChild([&] {
      int passed = 0;
      const auto pass = [&] {
        if (passed++ == kill) raise(SIGKILL);
      };
      (void)Run(source, "killed", {.threads = 1 + i % 3, .part_bytes = 1000, .block_bytes = 300},
                {.progress = [&](int64_t, int64_t) { pass(); }});
    });
    kills += WIFSIGNALED(status) ? 1 : 0;
    ExpectNothingHalfWritten(out_ / "killed");
  }
  EXPECT_GT(kills, 5);
  EXPECT_THAT(Run(source, "killed", kSmallParts), IsOkAndHolds(*report));
  EXPECT_EQ(FolderBytes(out_ / "killed"), expected);
}

TEST_F(IngestTest, InterruptedAndResumed) {
  WriteInputs();
  const SourceConfig source = Everything();
  const absl::StatusOr<IngestReport> report = Run(source, "whole", kSmallParts);
  ASSERT_THAT(report, IsOk());
  int stops = 0;
  int64_t before_max = 0;
  while (true) {
    std::atomic<int> asked = 0;
    const absl::StatusOr<IngestReport> part = Run(
        source, "stopped", kSmallParts,
        {.interrupted = [&] { return ++asked > 8 + stops; },
         .progress = [&](int64_t before, int64_t) { before_max = std::max(before_max, before); },
         .durable = {}});
    if (part.ok()) {
      EXPECT_EQ(*part, *report);
      break;
    }
    ASSERT_THAT(part, StatusIs(absl::StatusCode::kCancelled, HasSubstr("goes on after")));
    ASSERT_LT(++stops, 500);
  }
  EXPECT_GT(stops, 3);
  EXPECT_GT(before_max, 0);
  EXPECT_EQ(FolderBytes(out_ / "stopped"), FolderBytes(out_ / "whole"));
}

TEST_F(IngestTest, FullDisk) {
  WriteInputs();
  const SourceConfig source = Everything();
  const IngestOptions options = {.threads = 2, .part_bytes = 20000, .block_bytes = 500};
  const absl::StatusOr<IngestReport> report = Run(source, "whole", options);
  ASSERT_THAT(report, IsOk());
  const int status = InChild([&] {
    // No file grows beyond 10,000 bytes: as on a full disk, write() fails in the midst of a part.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {10000, 10000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::StatusOr<IngestReport> full = Run(source, "full", options);
    _exit(!full.ok() && absl::StrContains(full.status().message(), "part-000000.docs") ? 7 : 1);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(FolderBytes(out_ / "full"), (std::map<std::string, std::string>()));
  EXPECT_THAT(Run(source, "full", options), IsOkAndHolds(*report));
  EXPECT_EQ(FolderBytes(out_ / "full"), FolderBytes(out_ / "whole"));
}

TEST_F(IngestTest, DamagedInputsStopTheRun) {
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += absl::StrCat("{\"text\":\"document ", i, "\"}\n");
  const std::string zeros(size_t{64} << 20, ' ');
  for (const bool gzip : {true, false}) {
    const std::string name = gzip ? "b.jsonl.gz" : "b.jsonl.zst";
    const std::string whole = gzip ? Gzipped(lines) : Zstandard(lines);
    const std::pair<std::string, std::string> damages[] = {
        {whole.substr(0, whole.size() / 2), "cut off"},
        {whole.substr(0, whole.size() - 1), "cut off"},
        {whole + "x", ""},
        {lines, "expected"},
        {gzip ? Gzipped(zeros) : Zstandard(zeros), "decompression bomb"}};
    for (const auto& [bytes, complaint] : damages) {
      in_.Write("d/a.jsonl", lines);
      in_.Write("d/" + name, bytes);
      const SourceConfig source =
          Source("format = \"jsonl\"\npaths = \"d\"\nlimits = { record_bytes_max = 1073741824 }");
      const std::string folder = absl::StrCat("run", ++runs_);
      for (int again = 0; again < 2; ++again) {
        EXPECT_THAT(Run(source, folder, kSmallParts),
                    StatusIs(absl::StatusCode::kDataLoss,
                             AllOf(HasSubstr("d/" + name), HasSubstr(complaint))))
            << complaint << again;
      }
      ExpectNothingHalfWritten(out_ / folder);
      EXPECT_EQ(FolderBytes(out_ / folder).contains(kManifestFile), false);
      // What came before is in place, for a run after the repair of a file that was half there.
      EXPECT_EQ(FolderBytes(out_ / folder).contains("part-000000.docs"), true);
    }
    std::filesystem::remove(in_ / ("d/" + name));
  }
}

TEST_F(IngestTest, UnreadableFilesStopTheRun) {
  in_.Write("d/a.txt", "a");
  in_.Write("d/b.txt", "b");
  in_.Write("e/sub/c.txt", "c");
  ASSERT_EQ(chmod((in_ / "d/b.txt").c_str(), 0), 0);
  ASSERT_EQ(chmod((in_ / "e/sub").c_str(), 0600), 0);  // may be listed, not looked into
  for (const TestFolder* folder : {&in_, &out_}) ASSERT_EQ(chmod(folder->path().c_str(), 0777), 0);
  const int status = InChild([&] {
    // Root may read everything, so this is somebody else's doing.
    if (geteuid() == 0 && (setgroups(0, nullptr) != 0 || setgid(65534) != 0 || setuid(65534) != 0))
      _exit(1);
    const absl::StatusOr<IngestReport> file =
        Run(Source("format = \"text\"\npaths = \"d\""), "file");
    if (!absl::IsPermissionDenied(file.status()) ||
        !absl::StrContains(file.status().message(), "d/b.txt"))
      _exit(2);
    const absl::StatusOr<IngestReport> folder =
        Run(Source("format = \"text\"\npaths = \"e\""), "folder");
    if (!absl::IsPermissionDenied(folder.status()) ||
        !absl::StrContains(folder.status().message(), "e/sub"))
      _exit(3);
  });
  ASSERT_EQ(chmod((in_ / "e/sub").c_str(), 0700), 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

class ChangedTest : public IngestTest {
 protected:
  ChangedTest() {
    WriteInputs();
    // Left after its first part.
    const int status = InChild([&] {
      (void)Run(Everything(), "stopped", kSmallParts, {.durable = [](const char* what) {
                  if (what == absl::string_view("progress")) raise(SIGKILL);
                }});
    });
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_TRUE(FolderBytes(out_ / "stopped").contains(kProgressFile));
  }

  void ExpectRefused(const SourceConfig& source, const std::string& folder,
                     const std::string& complaint) {
    const std::map<std::string, std::string> before = FolderBytes(out_ / folder);
    EXPECT_THAT(Run(source, folder, kSmallParts),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(complaint), HasSubstr("remove the folder"))));
    EXPECT_EQ(FolderBytes(out_ / folder), before);
  }
};

TEST_F(ChangedTest, FilesThatChangedBetweenRuns) {
  std::filesystem::last_write_time(
      in_ / "d/0.jsonl",
      std::filesystem::last_write_time(in_ / "d/0.jsonl") + std::chrono::seconds(1));
  ExpectRefused(Everything(), "stopped", "were written since");
  in_.Write("d/0.jsonl", FileBytes(in_ / "d/0.jsonl") + "\n");
  ExpectRefused(Everything(), "stopped", "other files or sizes");
}

TEST_F(ChangedTest, FilesThatCameOrWent) {
  in_.Write("d/8.jsonl", "");
  ExpectRefused(Everything(), "stopped", "other files or sizes");
  std::filesystem::remove(in_ / "d/8.jsonl");
  std::filesystem::remove(in_ / "d/7.jsonl");
  ExpectRefused(Everything(), "stopped", "other files or sizes");
}

TEST_F(ChangedTest, AnotherConfiguration) {
  SourceConfig other = Everything();
  other.bytes_max = 201;
  ExpectRefused(other, "stopped", "found that of another");
  IngestOptions parts = kSmallParts;
  parts.part_bytes = 1001;
  EXPECT_THAT(Run(Everything(), "stopped", parts),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("that of another")));
  ASSERT_THAT(Run(Everything(), "stopped", kSmallParts), IsOk());
  ExpectRefused(other, "stopped", "found that of another");
}

TEST_F(ChangedTest, FileThatChangesDuringTheRun) {
  const SourceConfig source = Everything();
  bool changed = false;
  const absl::StatusOr<IngestReport> report =
      Run(source, "changing", kSmallParts, {.progress = [&](int64_t, int64_t read) {
            if (read == 0 || changed) return;
            changed = true;
            in_.Write("d/5.jsonl", std::string(FileBytes(in_ / "d/5.jsonl").size(), '\n'));
          }});
  EXPECT_THAT(report, StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("d/5.jsonl"), HasSubstr("changed during"))));
}

TEST_F(ChangedTest, OneRunAtATime) {
  absl::StatusOr<IngestReport> second = absl::UnknownError("it did not run");
  int calls = 0;
  ASSERT_THAT(Run(Everything(), "stopped", kSmallParts,
                  {.progress =
                       [&](int64_t, int64_t) {
                         if (calls++ == 0) second = Run(Everything(), "stopped", kSmallParts);
                       }}),
              IsOk());
  EXPECT_THAT(second,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another run is at work")));
}

TEST_F(ChangedTest, DamagedProgressAndParts) {
  const std::string progress = out_ / "stopped/progress.json";
  const std::string part = out_ / "stopped/part-000000.docs";
  const std::string whole = FileBytes(progress);
  const std::string whole_part = FileBytes(part);
  const auto refused = [&](absl::string_view complaint) {
    EXPECT_THAT(Run(Everything(), "stopped", kSmallParts),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(complaint)));
  };
  out_.Write("stopped/progress.json", whole.substr(0, whole.size() / 2));
  refused("progress.json");
  out_.Write("stopped/progress.json", whole + " ");
  refused("canonical");
  out_.Write("stopped/progress.json", whole);
  out_.Write("stopped/part-000000.docs", whole_part.substr(0, whole_part.size() - 1));
  refused("part-000000.docs");
  std::string flipped = whole_part;
  flipped[whole_part.size() - 1] ^= 1;
  out_.Write("stopped/part-000000.docs", flipped);
  refused("part-000000.docs: expected SHA-256");  // it is read, to know duplicates of its texts
  std::filesystem::remove(part);
  EXPECT_THAT(Run(Everything(), "stopped", kSmallParts),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("part-000000.docs")));
  out_.Write("stopped/part-000000.docs", whole_part);
  EXPECT_THAT(Run(Everything(), "stopped", kSmallParts), IsOk());
}

TEST_F(ChangedTest, FinishedFoldersStayAsTheyAre) {
  const absl::StatusOr<IngestReport> report = Run(Everything(), "stopped", kSmallParts);
  ASSERT_THAT(report, IsOk());
  const std::map<std::string, std::string> before = FolderBytes(out_ / "stopped");
  bool wrote = false;
  std::pair<int64_t, int64_t> last;
  EXPECT_THAT(Run(Everything(), "stopped", kSmallParts,
                  {.interrupted = {},
                   .progress =
                       [&](int64_t b, int64_t r) {
                         last = {b, r};
                       },
                   .durable = [&](const char*) { wrote = true; }}),
              IsOkAndHolds(*report));
  EXPECT_FALSE(wrote);
  EXPECT_EQ(last, (std::pair<int64_t, int64_t>(ListInputFiles(Everything())->bytes, 0)));
  EXPECT_EQ(FolderBytes(out_ / "stopped"), before);
  out_.Write("stopped/report.json", "{}");
  EXPECT_THAT(Run(Everything(), "stopped", kSmallParts),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("report.json: expected SHA-256")));
  out_.Write("stopped/manifest.json", "{}");
  EXPECT_THAT(Run(Everything(), "stopped", kSmallParts),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("manifest.json")));
}

TEST_F(IngestTest, FoldersThatCannotBeMade) {
  WriteInputs();
  out_.Write("file", "");
  EXPECT_FALSE(Run(Everything(), "file", kSmallParts).ok());
  EXPECT_FALSE(Run(Everything(), "file/below", kSmallParts).ok());
  EXPECT_THAT(Run(Everything(), "a/b/c", kSmallParts), IsOk());
}

}  // namespace
}  // namespace lockstep::engine
