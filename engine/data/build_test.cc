// SPDX-License-Identifier: Apache-2.0
//
// Builds: the same bytes for any number of threads, and after any failure, interrupt or kill. The
// tokenizer is one id a byte, so that every token can be foretold.
#include "engine/data/build.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_calls.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "engine/data/build_journal.h"
#include "engine/data/shard_reader.h"
#include "engine/data/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kCancelled = absl::StatusCode::kCancelled;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int32_t kSeparator = 256;

// One id a byte.
BuildTokenizer Bytewise(uint32_t vocab_size = 257) {
  return {.digest = Sha256(AsBytes("bytewise")),
          .vocab_size = vocab_size,
          .separator = kSeparator,
          .encode_all = [](const std::vector<absl::string_view>& texts, ThreadPool&) {
            std::vector<std::vector<int32_t>> ids;
            for (const absl::string_view text : texts) {
              ids.emplace_back();
              for (const char c : text) ids.back().push_back(static_cast<uint8_t>(c));
            }
            return ids;
          }};
}

using Parts = std::vector<std::vector<Document>>;

BuildSource SourceOfParts(const std::string& name, const Parts& parts) {
  BuildSource source = {.name = name,
                        .licence = "CC0-1.0",
                        .store = Sha256(AsBytes(name)),
                        .text_bytes = 0,
                        .parts = static_cast<int64_t>(parts.size()),
                        .read_part = [parts](int64_t part) { return parts[part]; }};
  for (const auto& part : parts) {
    for (const Document& document : part) source.text_bytes += document.text.size();
  }
  return source;
}

// Documents of 1 to 70 bytes, in parts of 1 to 5 of them.
Parts MakeParts(int seed, int documents) {
  Parts parts;
  for (int i = 0; i < documents; ++i) {
    if (parts.empty() || static_cast<int>(parts.back().size()) > (seed + i) % 5) {
      parts.emplace_back();
    }
    parts.back().push_back(
        {absl::StrCat("file", i, ".txt"),
         std::string(1 + (i * 37 + seed) % 70, static_cast<char>('a' + i % 26))});
  }
  return parts;
}

std::vector<BuildSource> Sources() {
  return {SourceOfParts("web", MakeParts(1, 40)), SourceOfParts("code", MakeParts(2, 12)),
          SourceOfParts("none", {})};
}

BuildOptions Options(const std::string& out) {
  BuildOptions options;
  options.out = out;
  options.shard_tokens = 500;
  options.chunk_bytes = 4096;
  return options;
}

// What the hooks of a build heard.
struct Heard {
  int64_t progress = 0;
  int64_t resumed = 0;
  int asked = 0;
};

absl::StatusOr<BuildReport> Build(const BuildOptions& options, int threads = 1,
                                  Heard* heard = nullptr, int interrupt_at = 0,
                                  const BuildTokenizer& tokenizer = Bytewise(),
                                  std::vector<BuildSource> sources = Sources()) {
  ThreadPool pool(threads);
  Heard unheard;
  if (heard == nullptr) heard = &unheard;
  return BuildCorpus(tokenizer, std::move(sources), options, pool,
                     {.progress = [&](int64_t bytes) { heard->progress += bytes; },
                      .resumed = [&](int64_t bytes) { heard->resumed += bytes; },
                      .interrupted = [&] { return ++heard->asked == interrupt_at; }});
}

// The files of a build that nothing disturbed.
std::map<std::string, std::string> Reference() {
  const TemporaryFolder folder;
  EXPECT_THAT(Build(Options(folder / "c")), IsOk());
  return ReadAll(folder / "c");
}

absl::Status Verify(const std::string& folder) {
  ThreadPool pool(2);
  return VerifyCorpus(folder, std::nullopt, pool,
                      {.progress = [](int64_t) {}, .interrupted = [] { return false; }})
      .status();
}

TEST(Build, ShardsHoldTheDocumentsInTheirOrder) {
  for (const uint32_t vocab_size : {257u, 70000u}) {
    const TemporaryFolder folder;
    const auto report = Build(Options(folder / "c"), 2, nullptr, 0, Bytewise(vocab_size));
    ASSERT_THAT(report, IsOk());
    EXPECT_FALSE(report->was_there);
    EXPECT_EQ(report->manifest.token_bytes, vocab_size == 257 ? 2 : 4);
    const auto reader = CorpusReader::OpenFolder(folder / "c", report->digest);
    ASSERT_THAT(reader, IsOk());
    const CorpusManifest& manifest = (*reader)->manifest();
    ASSERT_EQ(manifest, report->manifest);
    ASSERT_EQ(manifest.sources.size(), 3);
    EXPECT_EQ(manifest.sources[0].name, "code");
    EXPECT_EQ(manifest.sources[1].name, "none");
    EXPECT_EQ(manifest.sources[2].name, "web");
    EXPECT_TRUE(manifest.sources[1].shards.empty());
    std::vector<Document> expected;
    for (const auto& part : MakeParts(1, 40)) {
      expected.insert(expected.end(), part.begin(), part.end());
    }
    size_t next = 0;
    for (uint32_t s = 0; s < manifest.sources[2].shards.size(); ++s) {
      const ShardEntry& shard = manifest.sources[2].shards[s];
      EXPECT_LE(shard.tokens, 500);
      const auto index = (*reader)->ReadIndex(2, s);
      const auto names = (*reader)->ReadNames(2, s);
      ASSERT_THAT(index, IsOk());
      ASSERT_THAT(names, IsOk());
      for (uint64_t d = 0; d < shard.documents; ++d, ++next) {
        std::vector<int32_t> tokens(index->begins[d + 1] - index->begins[d]);
        ASSERT_THAT((*reader)->ReadTokens(2, s, index->begins[d], tokens), IsOk());
        EXPECT_EQ(tokens.back(), kSeparator);
        tokens.pop_back();
        EXPECT_EQ(std::string(tokens.begin(), tokens.end()), expected[next].text);
        EXPECT_EQ((*names)[d], expected[next].name);
      }
    }
    EXPECT_EQ(next, expected.size());
    EXPECT_THAT(Verify(folder / "c"), IsOk());
    EXPECT_FALSE(fs::exists(folder / "c/.build"));
  }
}

TEST(Build, ShardsAreCutBeforeTheDocumentThatDoesNotFit) {
  const TemporaryFolder folder;
  // With separators: 60, 40, 100 | 1 | 300 (alone, and longer than a shard) | 100 | 1.
  Parts parts(1);
  for (int size : {59, 39, 0, 299, 99, 0}) {
    parts[0].push_back({"x", std::string(static_cast<size_t>(size), 'x')});
  }
  BuildOptions options = Options(folder / "c");
  options.shard_tokens = 100;
  const auto report = Build(options, 1, nullptr, 0, Bytewise(), {SourceOfParts("a", parts)});
  ASSERT_THAT(report, IsOk());
  std::vector<uint64_t> tokens;
  for (const ShardEntry& shard : report->manifest.sources[0].shards) tokens.push_back(shard.tokens);
  EXPECT_EQ(tokens, (std::vector<uint64_t>{100, 1, 300, 100, 1}));
}

TEST(Build, SharesAreThoseGivenOrTheTokens) {
  const TemporaryFolder folder;
  BuildOptions options = Options(folder / "c");
  options.shares["web"] = 7;
  const auto report = Build(options);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->manifest.sources[0].share, report->manifest.sources[0].tokens);
  EXPECT_EQ(report->manifest.sources[1].share, 0);
  EXPECT_EQ(report->manifest.sources[2].share, 7);
}

TEST(Build, SameBytesForAnyNumberOfThreadsAndOrderOfSources) {
  const auto reference = Reference();
  for (int threads : {1, 2, 3, 5, 16}) {
    const TemporaryFolder folder;
    std::vector<BuildSource> sources = Sources();
    std::rotate(sources.begin(), sources.begin() + threads % 3, sources.end());
    ASSERT_THAT(Build(Options(folder / "c"), threads, nullptr, 0, Bytewise(), sources), IsOk());
    EXPECT_EQ(ReadAll(folder / "c"), reference) << threads << " threads";
  }
}

TEST(Build, InterruptedAnywhereItGoesOnToTheSameBytes) {
  const auto reference = Reference();
  Heard whole;
  {
    const TemporaryFolder folder;
    ASSERT_THAT(Build(Options(folder / "c"), 1, &whole), IsOk());
  }
  ASSERT_GT(whole.asked, 10);
  for (int at = 1; at <= whole.asked; ++at) {
    SCOPED_TRACE(absl::StrCat("interrupted at question ", at));
    const TemporaryFolder folder;
    EXPECT_THAT(Build(Options(folder / "c"), 1, nullptr, at),
                StatusIs(kCancelled, HasSubstr("goes on from here")));
    EXPECT_FALSE(fs::exists(folder / "c/manifest.json"));
    Heard rest;
    ASSERT_THAT(Build(Options(folder / "c"), 1 + at % 3, &rest), IsOk());
    EXPECT_EQ(ReadAll(folder / "c"), reference);
    EXPECT_EQ(rest.resumed + rest.progress, whole.progress);
  }
}

TEST(Build, WhatIsFinishedIsLeftAsItIs) {
  const TemporaryFolder folder;
  const auto first = Build(Options(folder / "c"));
  ASSERT_THAT(first, IsOk());
  Heard heard;
  const auto second = Build(Options(folder / "c"), 1, &heard);
  ASSERT_THAT(second, IsOk());
  EXPECT_TRUE(second->was_there);
  EXPECT_EQ(second->digest, first->digest);
  EXPECT_EQ(heard.progress, 0);
}

TEST(Build, OtherInputsAreRefused) {
  const TemporaryFolder folder;
  const auto refused = [&](const char* message) {
    BuildOptions options = Options(folder / "c");
    options.shard_tokens = 501;
    EXPECT_THAT(Build(options), StatusIs(kFailedPrecondition, HasSubstr(message)));
    options = Options(folder / "c");
    options.chunk_bytes = 8192;
    EXPECT_THAT(Build(options), StatusIs(kFailedPrecondition, HasSubstr(message)));
    std::vector<BuildSource> sources = Sources();
    sources[0].store = Sha256(AsBytes("other documents"));
    EXPECT_THAT(Build(Options(folder / "c"), 1, nullptr, 0, Bytewise(), sources),
                StatusIs(kFailedPrecondition, HasSubstr(message)));
    sources.pop_back();
    EXPECT_THAT(Build(Options(folder / "c"), 1, nullptr, 0, Bytewise(), sources),
                StatusIs(kFailedPrecondition, HasSubstr(message)));
    BuildTokenizer tokenizer = Bytewise();
    tokenizer.digest = Sha256(AsBytes("other tokenizer"));
    EXPECT_THAT(Build(Options(folder / "c"), 1, nullptr, 0, tokenizer),
                StatusIs(kFailedPrecondition, HasSubstr(message)));
  };
  ASSERT_THAT(Build(Options(folder / "c"), 1, nullptr, 5), StatusIs(kCancelled));
  refused("unfinished build of other inputs");
  ASSERT_THAT(Build(Options(folder / "c")), IsOk());
  refused("holds a corpus of other inputs");
  BuildOptions options = Options(folder / "c");
  options.shares["web"] = 1;
  EXPECT_THAT(Build(options), StatusIs(kFailedPrecondition));
  EXPECT_EQ(ReadAll(folder / "c"), Reference());
}

TEST(Build, OneProcessAtATime) {
  const TemporaryFolder folder;
  const auto journal = BuildJournal::Open(folder / "c", "a plan", {});
  ASSERT_THAT(journal, IsOk());
  EXPECT_THAT(Build(Options(folder / "c")),
              StatusIs(kFailedPrecondition, HasSubstr("another process builds here")));
}

TEST(Build, RequestsThatMakeNoSenseAreRefusedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  const auto refused = [&](const BuildOptions& options, std::vector<BuildSource> sources,
                           const char* message) {
    EXPECT_THAT(Build(options, 1, nullptr, 0, Bytewise(), std::move(sources)),
                StatusIs(kInvalid, HasSubstr(message)));
    EXPECT_TRUE(fs::is_empty(folder.path()));
  };
  BuildOptions options = Options(folder / "c");
  options.chunk_bytes = 5000;
  refused(options, Sources(), "chunk_bytes");
  options = Options(folder / "c");
  options.shard_tokens = 0;
  refused(options, Sources(), "shard_tokens");
  options.shard_tokens = kShardTokensMax + 1;
  refused(options, Sources(), "shard_tokens");
  options = Options(folder / "c");
  options.shares["wbe"] = 1;
  refused(options, Sources(), "wbe, which is no source");
  options.shares = {{"web", kShareMax + 1}};
  refused(options, Sources(), "share of at most 2^56");
  options.shares.clear();
  for (const char* name : {"", "../x", "a/b", ".build", "manifest.json"}) {
    refused(options, {SourceOfParts(name, {})}, "expected a name");
  }
  refused(options, {SourceOfParts("a", {}), SourceOfParts("a", {})}, "twice");
}

TEST(Build, IdsThatTheTokenizerMustNotGiveAreRefused) {
  for (const int32_t id : {-1, 257, kSeparator, INT32_MAX}) {
    const TemporaryFolder folder;
    BuildTokenizer bad = Bytewise();
    bad.encode_all = [id](const std::vector<absl::string_view>& texts, ThreadPool&) {
      return std::vector<std::vector<int32_t>>(texts.size(), {1, id});
    };
    EXPECT_THAT(Build(Options(folder / "c"), 1, nullptr, 0, bad),
                StatusIs(kInvalid, AllOf(HasSubstr("source code"), HasSubstr("file0.txt"),
                                         HasSubstr(absl::StrCat("found ", id)))));
    EXPECT_FALSE(fs::exists(folder / "c/manifest.json"));
  }
}

TEST(Build, PartsThatCannotBeReadEndIt) {
  const TemporaryFolder folder;
  std::vector<BuildSource> sources = Sources();
  const auto read = sources[0].read_part;
  sources[0].read_part = [read](int64_t part) -> absl::StatusOr<std::vector<Document>> {
    if (part == 7) return absl::DataLossError("parts/7: expected digest 12, found 34");
    return read(part);
  };
  EXPECT_THAT(Build(Options(folder / "c"), 3, nullptr, 0, Bytewise(), sources),
              StatusIs(kDataLoss, AllOf(HasSubstr("source web"), HasSubstr("part 7"),
                                        HasSubstr("expected digest 12, found 34"))));
  ASSERT_THAT(Build(Options(folder / "c")), IsOk());  // once it can be read
  EXPECT_EQ(ReadAll(folder / "c"), Reference());
}

TEST(Build, DamagedRecordsAreNotGoneOnFrom) {
  const TemporaryFolder folder;
  ASSERT_THAT(Build(Options(folder / "c"), 1, nullptr, 12), StatusIs(kCancelled));
  const std::string path = folder / "c/.build/code.0";
  const std::string good = ReadBytes(path);
  ASSERT_FALSE(good.empty());
  for (size_t size = 0; size < good.size(); size += 7) {
    WriteBytes(path, good.substr(0, size));
    EXPECT_THAT(Build(Options(folder / "c")),
                StatusIs(kDataLoss, AllOf(HasSubstr(path), HasSubstr("build anew"))));
  }
  WriteBytes(path, good);
  ASSERT_THAT(Build(Options(folder / "c")), IsOk());
  EXPECT_EQ(ReadAll(folder / "c"), Reference());
}

// ---- Every system call that writes fails in turn, or is the last that the process makes.

struct Fault {
  int at = 0;  // counted from 1
  int error = 0;
  bool applied = false;
  bool kill = false;
  bool writes = false;  // only writes are counted
};
Fault fault;
int calls_made = 0;

template <typename Call>
auto Faulty(Call call, bool is_write = false) -> decltype(call()) {
  if (fault.writes && !is_write) return call();
  if (++calls_made != fault.at) return call();
  if (fault.applied) call();
  if (fault.kill) _exit(77);
  errno = fault.error;
  return -1;
}

// The disk itself is not asked: processes die here, not machines.
void Inject(const Fault& f) {
  fault = f;
  calls_made = 0;
  file_internal::calls = {
      .open = [](const char* path, int flags,
                 mode_t mode) { return Faulty([=] { return ::open(path, flags, mode); }); },
      .write = [](int fd, const void* bytes,
                  size_t size) { return Faulty([=] { return ::write(fd, bytes, size); }, true); },
      .fsync = [](int) { return Faulty([] { return 0; }); },
      .close = [](int fd) { return ::close(fd) == 0 ? Faulty([] { return 0; }) : -1; },
      .rename = [](const char* from,
                   const char* to) { return Faulty([=] { return std::rename(from, to); }); },
  };
}

class BuildFaultTest : public ::testing::Test {
 protected:
  BuildFaultTest() : reference_(Reference()) {
    const TemporaryFolder folder;
    Inject({});
    EXPECT_THAT(Build(Options(folder / "c")), IsOk());
    calls_ = calls_made;
  }
  ~BuildFaultTest() override { Inject({}); }

  // Nothing is half-written, and the next run makes the corpus whole.
  void ExpectSafe(const TemporaryFolder& folder) {
    if (fs::exists(folder / "c")) {
      for (const auto& [name, bytes] : ReadAll(folder / "c")) {
        if (absl::StrContains(name, ".build/") || absl::EndsWith(name, ".tmp")) continue;
        ASSERT_EQ(bytes, reference_.at(name)) << name;
      }
    }
    if (fs::exists(folder / "c/manifest.json")) {
      ASSERT_THAT(Verify(folder / "c"), IsOk());
    }
    Inject({});
    ASSERT_THAT(Build(Options(folder / "c")), IsOk());
    ASSERT_EQ(ReadAll(folder / "c"), reference_);
  }

  const std::map<std::string, std::string> reference_;
  int calls_ = 0;
};

TEST_F(BuildFaultTest, EachCallFailsInTurn) {
  ASSERT_GT(calls_, 100);
  int harmless = 0;  // closing a folder, once all is on the disk
  for (int at = 1; at <= calls_; ++at) {
    SCOPED_TRACE(absl::StrCat("call ", at, " of ", calls_));
    const TemporaryFolder folder;
    Inject({.at = at, .error = EIO, .applied = at % 2 == 0});
    const auto report = Build(Options(folder / "c"));
    harmless += report.ok();
    if (!report.ok()) {
      ASSERT_THAT(std::string(report.status().message()), HasSubstr(folder.path()));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectSafe(folder));
  }
  EXPECT_LT(harmless, calls_ / 5);
}

TEST_F(BuildFaultTest, FullDisk) {
  Inject({.writes = true});
  {
    const TemporaryFolder folder;
    ASSERT_THAT(Build(Options(folder / "c")), IsOk());
  }
  const int writes = calls_made;
  ASSERT_GT(writes, 10);
  for (int at = 1; at <= writes; ++at) {
    SCOPED_TRACE(absl::StrCat("full at write ", at, " of ", writes));
    const TemporaryFolder folder;
    Inject({.at = at, .error = ENOSPC, .writes = true});
    ASSERT_THAT(Build(Options(folder / "c")), StatusIs(absl::StatusCode::kResourceExhausted));
    ASSERT_NO_FATAL_FAILURE(ExpectSafe(folder));
  }
}

TEST_F(BuildFaultTest, KilledAtEachCall) {
  for (int at = 1; at <= calls_; ++at) {
    SCOPED_TRACE(absl::StrCat("killed at call ", at, " of ", calls_));
    const TemporaryFolder folder;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Inject({.at = at, .applied = at % 2 == 0, .kill = true});
      const absl::Status status = Build(Options(folder / "c")).status();
      _exit(status.ok() ? 0 : 1);  // not reached
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 77);
    ASSERT_NO_FATAL_FAILURE(ExpectSafe(folder));
  }
}

}  // namespace
}  // namespace lockstep::engine
