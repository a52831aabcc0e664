// SPDX-License-Identifier: Apache-2.0
//
// A corpus read off a web server: only what a fetch plan says goes over the wire, and what a server
// sends is checked. How the client bears with bad servers: net/http_client_test.cc.
#include "engine/data/http_range_source.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "engine/data/fetch_plan.h"
#include "engine/data/open_corpus.h"
#include "engine/data/step_reader.h"
#include "engine/data/testing/memory_corpus.h"
#include "engine/data/testing/stream_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/http_server.h"

namespace lockstep::engine {
namespace {

using net::testing::HttpRequest;
using net::testing::HttpServer;
using ::testing::AllOf;
using testing::Flat;
using ::testing::HasSubstr;
using testing::MakeMemoryCorpus;
using testing::MemoryCorpus;
using testing::MemorySource;
using testing::Model;
using testing::Tokens;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

bool Never() { return false; }
void Nothing(int64_t) {}

// Two sources of two shards, each shard of many chunks.
std::vector<MemorySource> Sources() {
  std::vector<MemorySource> sources;
  for (const char* name : {"code", "web"}) {
    MemorySource source = {name, {}, {}};
    for (int s = 0; s < 2; ++s) {
      std::vector<Tokens>& shard = source.shards.emplace_back();
      for (int d = 0; d < 100; ++d) shard.push_back(Tokens(600, 1 + (s * 100 + d) % 999));
    }
    sources.push_back(source);
  }
  return sources;
}

class CorpusOverHttpTest : public ::testing::Test {
 protected:
  // Loopback is not to be reached by a proxy.
  static void SetUpTestSuite() { setenv("no_proxy", "127.0.0.1", 1); }

  CorpusOverHttpTest() : corpus_(MakeMemoryCorpus(Sources())) {
    const std::string manifest = SerializeManifest(*corpus_.manifest);
    files_["/c/manifest.json"] = manifest;
    digest_ = Sha256(AsBytes(manifest));
    for (const auto& [id, bytes] : corpus_.files->files) {
      files_["/c/" + NameOf(*corpus_.manifest, id)] = bytes;
    }
  }
  CorpusLocation At(const HttpServer& server, const std::string& cache = "") const {
    return {.places = {server.address() + "/c"},
            .manifest = digest_,
            .cache = cache,
            .names = MirrorNames::kPaths,
            .http = Options()};
  }
  static net::HttpOptions Options() {
    net::HttpOptions options;
    options.tries_max = 1;
    return options;
  }
  static BatchSchedule Schedule() { return *BatchSchedule::Create({{4, std::nullopt}}, 256); }

  // Replays steps 5 to 7 and compares them with the model's.
  void ExpectReplay(std::shared_ptr<const CorpusReader> corpus, const StreamCursor& cursor) {
    Model model(Sources(), 42);
    auto data = StepReader::Open(std::move(corpus), 42, Schedule());
    ASSERT_THAT(data, IsOk());
    ASSERT_THAT(data->Resume(5, cursor), IsOk());
    for (int i = 0; i < 3; ++i) {
      const auto step = data->Next();
      ASSERT_THAT(step, IsOk());
      for (uint64_t m = 0; m < 4; ++m) {
        std::vector<int32_t> tokens(257);
        ASSERT_THAT(data->ReadWindow(*step, m, tokens), IsOk());
        ASSERT_EQ(Flat(step->Trace(m), tokens), Flat(model.Window(step->range.begin + m, 257)));
      }
    }
  }
  StreamCursor CursorAtStep5() const {
    auto data = StepReader::Open(corpus_.reader, 42, Schedule());
    EXPECT_THAT(data->SkipTo(5, Nothing, Never), IsOk());
    return data->cursor();
  }

  MemoryCorpus corpus_;
  std::map<std::string, std::string> files_;
  Digest digest_;
};

// The bytes that went over the wire are those of the plan, to the byte, and the manifest.
TEST_F(CorpusOverHttpTest, ReplayFetchesWhatThePlanSaysAndNothingElse) {
  const StreamCursor cursor = CursorAtStep5();
  const auto plan = PlanFetch(*corpus_.reader, 42, 256, cursor, 12, Never);
  ASSERT_THAT(plan, IsOk());
  HttpServer server(files_);
  const auto reader = OpenCorpus(At(server));
  ASSERT_THAT(reader, IsOk());
  ExpectReplay(*reader, cursor);

  std::map<std::string, std::set<uint64_t>> fetched, planned;
  uint64_t bytes = 0;
  for (const HttpRequest& request : server.requests()) {
    if (request.path == "/c/manifest.json") continue;
    ASSERT_TRUE(request.range.has_value());
    for (uint64_t at = request.range->first; at < request.range->second; ++at) {
      EXPECT_TRUE(fetched[request.path].insert(at).second) << "fetched twice";
    }
    bytes += request.range->second - request.range->first;
  }
  for (const FileRanges& file : plan->files) {
    for (const ByteRange& range : file.ranges) {
      for (uint64_t at = range.begin; at < range.end; ++at) {
        planned["/c/" + NameOf(*corpus_.manifest, file.id)].insert(at);
      }
    }
  }
  EXPECT_EQ(fetched, planned);
  EXPECT_EQ(bytes, plan->bytes);
  uint64_t all = 0;
  for (const auto& [path, content] : files_) all += content.size();
  EXPECT_LT(plan->bytes, all / 4);
}

TEST_F(CorpusOverHttpTest, FetchedStepsAreReplayedWithoutANetwork) {
  const TemporaryFolder cache;
  const StreamCursor cursor = CursorAtStep5();
  {
    HttpServer server(files_);
    const auto reader = OpenCorpus(At(server, cache.path()));
    ASSERT_THAT(reader, IsOk());
    const auto plan = PlanFetch(**reader, 42, 256, cursor, 12, Never);
    ASSERT_THAT(plan, IsOk());
    ThreadPool pool(4);
    std::atomic<int64_t> bytes = 0;
    ASSERT_THAT(
        FetchPlanned(**reader, *plan, pool,
                     {.progress = [&](int64_t count) { bytes += count; }, .interrupted = Never}),
        IsOk());
    EXPECT_EQ(bytes, plan->bytes);
    // Another time, nothing is asked for but what is not there.
    const size_t requests = server.requests().size();
    const auto again = OpenCorpus(At(server, cache.path()));
    ASSERT_THAT(FetchPlanned(**again, *plan, pool, {.progress = Nothing, .interrupted = Never}),
                IsOk());
    EXPECT_EQ(server.requests().size(), requests);
  }
  const auto reader = CorpusReader::OpenFolder(cache.path(), digest_);
  ASSERT_THAT(reader, IsOk());
  ExpectReplay(*reader, cursor);
}

TEST_F(CorpusOverHttpTest, MirrorsMayNameFilesByDigest) {
  std::map<std::string, std::string> by_digest;
  for (const auto& [path, bytes] : files_) {
    by_digest["/" + Sha256(AsBytes(bytes)).ToHex()] = bytes;
  }
  HttpServer server(by_digest);
  const auto reader = OpenCorpus({.places = {server.address() + "/"},
                                  .manifest = digest_,
                                  .cache = "",
                                  .names = MirrorNames::kDigests,
                                  .http = Options()});
  ASSERT_THAT(reader, IsOk());
  ExpectReplay(*reader, CursorAtStep5());
}

TEST_F(CorpusOverHttpTest, WrongBytesAreNamedAndAnotherMirrorHelps) {
  std::map<std::string, std::string> bad = files_;
  for (auto& [path, bytes] : bad) {
    if (!absl::EndsWith(path, ".tokens")) continue;
    for (size_t at = 10; at < bytes.size(); at += 4096) bytes[at] ^= 1;
  }
  HttpServer liar(bad), honest(files_);
  const StreamCursor cursor = CursorAtStep5();
  const auto reader = OpenCorpus(At(liar));
  ASSERT_THAT(reader, IsOk());
  std::vector<int32_t> tokens(10);
  EXPECT_THAT((*reader)->ReadTokens(1, 0, 4096, tokens),
              StatusIs(kDataLoss, AllOf(HasSubstr(liar.address() + "/c/web/00000.tokens"),
                                        HasSubstr("chunk 2 at byte offset 8192"),
                                        HasSubstr("expected digest"))));
  CorpusLocation both = At(liar);
  both.places.push_back(honest.address() + "/c");
  const auto mended = OpenCorpus(both);
  ASSERT_THAT(mended, IsOk());
  ExpectReplay(*mended, cursor);
}

TEST_F(CorpusOverHttpTest, AnotherManifestIsRefusedBeforeItIsRead) {
  const std::map<std::string, std::string> evil = {{"/c/manifest.json", "{\"format\":\"evil\"}"}};
  HttpServer server(evil);
  EXPECT_THAT(OpenCorpus(At(server)),
              StatusIs(kDataLoss, AllOf(HasSubstr(server.address() + "/c/manifest.json"),
                                        HasSubstr(digest_.ToHex()))));
}

TEST_F(CorpusOverHttpTest, CacheOfAnotherCorpusIsRefused) {
  const TemporaryFolder cache;
  WriteBytes(cache / "manifest.json", "{}");
  HttpServer server(files_);
  EXPECT_THAT(OpenCorpus(At(server, cache.path())),
              StatusIs(kFailedPrecondition, HasSubstr("choose another folder")));
  EXPECT_EQ(ReadBytes(cache / "manifest.json"), "{}");
}

}  // namespace
}  // namespace lockstep::engine
