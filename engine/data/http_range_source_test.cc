// SPDX-License-Identifier: Apache-2.0
//
// A corpus read off a web server: only what a fetch plan says goes over the wire, and each way in
// which a server can fail gives right bytes in the end, or an error that says what happened.
#include "engine/data/http_range_source.h"

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "engine/data/fetch_plan.h"
#include "engine/data/open_corpus.h"
#include "engine/data/step_reader.h"
#include "engine/data/testing/http_server.h"
#include "engine/data/testing/memory_corpus.h"
#include "engine/data/testing/stream_model.h"
#include "engine/data/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::AllOf;
using testing::Flat;
using ::testing::HasSubstr;
using testing::HttpReply;
using testing::HttpRequest;
using testing::HttpServer;
using testing::MakeMemoryCorpus;
using testing::MakePartialReply;
using testing::MakeReply;
using testing::MemoryCorpus;
using testing::MemorySource;
using testing::Model;
using testing::TemporaryFolder;
using testing::Tokens;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

bool Never() { return false; }
void Nothing(int64_t) {}

// Loopback is not to be reached by a proxy.
class HttpTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("no_proxy", "127.0.0.1", 1); }

  HttpTest() {
    for (int i = 0; i < 1000; ++i) bytes_.push_back(static_cast<char>(i * 37 >> 2));
  }

  // Bytes 100 ... 299 of a file of 1,000, from a server that fails as `fault` says.
  absl::StatusOr<std::string> Read(HttpServer::Fault fault, int tries_max = 1) {
    HttpServer server({{"/f", bytes_}}, std::move(fault));
    HttpClient client(Options(tries_max));
    std::string out(200, '\0');
    const absl::Status status = client.ReadRange(
        server.address() + "/f", 100, 1000, {reinterpret_cast<uint8_t*>(out.data()), out.size()});
    requests_ = server.requests();
    if (!status.ok()) return status;
    return out;
  }
  static HttpOptions Options(int tries_max = 1) {
    HttpOptions options;
    options.tries_max = tries_max;
    options.backoff = absl::ZeroDuration();
    options.stall_timeout = absl::Milliseconds(300);
    return options;
  }
  std::string Good() const { return bytes_.substr(100, 200); }

  std::string bytes_;
  std::vector<HttpRequest> requests_;
};

TEST_F(HttpTest, ReadsARange) {
  EXPECT_THAT(Read(nullptr), IsOkAndHolds(Good()));
  EXPECT_EQ(requests_, (std::vector<HttpRequest>{{"/f", {{100, 300}}}}));
}

TEST_F(HttpTest, TakesAWholeFileFromAServerThatIgnoresRanges) {
  HttpServer server({}, [&](const HttpRequest&) { return MakeReply(200, bytes_); });
  HttpClient client(Options());
  std::string out(1000, '\0');
  EXPECT_THAT(client.ReadRange(server.address() + "/f", 0, 1000,
                               {reinterpret_cast<uint8_t*>(out.data()), out.size()}),
              IsOk());
  EXPECT_EQ(out, bytes_);
}

TEST_F(HttpTest, AnswerOf200ForAPartIsRefusedUnread) {
  std::string huge(100 << 20, 'x');
  EXPECT_THAT(Read([&](const HttpRequest&) { return MakeReply(200, huge); }),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("/f, bytes 100 to 299"), HasSubstr("ignores ranges"),
                             HasSubstr("expected an answer of 206, found 200"))));
}

TEST_F(HttpTest, OtherRangesAreRefused) {
  const auto partial = [&](uint64_t begin, uint64_t size, uint64_t of) {
    return [=, this](const HttpRequest&) {
      return MakePartialReply(bytes_.substr(begin, size), begin, of);
    };
  };
  EXPECT_THAT(Read(partial(0, 200, 1000)),
              StatusIs(kDataLoss, HasSubstr("expected the range \"bytes 100-299/1000\", found "
                                            "\"bytes 0-199/1000\"")));
  EXPECT_THAT(Read(partial(100, 100, 1000)), StatusIs(kDataLoss, HasSubstr("bytes 100-199/1000")));
  EXPECT_THAT(Read(partial(100, 200, 5000)), StatusIs(kDataLoss, HasSubstr("bytes 100-299/5000")));
  EXPECT_THAT(Read([&](const HttpRequest&) { return MakeReply(206, Good()); }),
              StatusIs(kDataLoss, HasSubstr("found \"\"")));
  // A server may not know the size.
  EXPECT_THAT(Read([&](const HttpRequest&) {
                return MakeReply(206, Good(), "content-range: bytes 100-299/*\r\n");
              }),
              IsOkAndHolds(Good()));
}

TEST_F(HttpTest, MoreBytesThanAskedForAreRefused) {
  EXPECT_THAT(Read([&](const HttpRequest&) {
                return MakeReply(206, Good() + "x", "Content-Range: bytes 100-299/1000\r\n");
              }),
              StatusIs(kDataLoss, HasSubstr("more than the 200 bytes")));
}

TEST_F(HttpTest, StatusCodesHaveTheirMeaning) {
  const auto code = [](int code) {
    return [code](const HttpRequest&) { return MakeReply(code, "sorry"); };
  };
  EXPECT_THAT(Read(code(404)), StatusIs(absl::StatusCode::kNotFound, HasSubstr("404")));
  EXPECT_THAT(Read(code(410)), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Read(code(403)), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(Read(code(416)), StatusIs(kDataLoss, HasSubstr("ends before")));
  EXPECT_THAT(Read(code(429)), StatusIs(kUnavailable));
  EXPECT_THAT(Read(code(503)), StatusIs(kUnavailable, HasSubstr("the server answered 503")));
  EXPECT_THAT(Read(code(400)), StatusIs(kFailedPrecondition));
  EXPECT_THAT(Read(code(204)), StatusIs(kFailedPrecondition));
}

TEST_F(HttpTest, ShortAnswersAreTakenUpWhereTheyEnded) {
  // 50 bytes at a time, then the connection breaks.
  const auto breaks = [&](const HttpRequest& request) {
    HttpReply reply = MakePartialReply(
        bytes_.substr(request.range->first, request.range->second - request.range->first),
        request.range->first, 1000);
    const size_t body = request.range->second - request.range->first;
    if (body > 50) {
      reply.bytes.resize(reply.bytes.size() - body + 50);
      reply.then = HttpReply::kClose;
    }
    return reply;
  };
  EXPECT_THAT(Read(breaks), StatusIs(kUnavailable, HasSubstr("ended after 50 of 200 bytes")));
  EXPECT_THAT(Read(breaks, /*tries_max=*/4), IsOkAndHolds(Good()));
  EXPECT_EQ(
      requests_,
      (std::vector<HttpRequest>{
          {"/f", {{100, 300}}}, {"/f", {{150, 300}}}, {"/f", {{200, 300}}}, {"/f", {{250, 300}}}}));
}

TEST_F(HttpTest, StalledServersAreGivenUp) {
  const auto stalls = [&](const HttpRequest& request) -> std::optional<HttpReply> {
    if (request.range->first > 100) return std::nullopt;
    HttpReply reply = MakePartialReply(Good(), 100, 1000);
    reply.bytes.resize(reply.bytes.size() - 120);
    reply.then = HttpReply::kStall;
    return reply;
  };
  EXPECT_THAT(Read(stalls), StatusIs(kUnavailable, HasSubstr("stalled after 80 bytes")));
  EXPECT_THAT(Read(stalls, /*tries_max=*/2), IsOkAndHolds(Good()));
  EXPECT_THAT(Read([](const HttpRequest&) {
                return HttpReply{"", HttpReply::kStall};
              }),
              StatusIs(kUnavailable));
}

// A byte now and then keeps no request alive for ever.
TEST_F(HttpTest, ServersThatAreTooSlowAreGivenUp) {
  HttpServer server({{"/f", bytes_}}, [](const HttpRequest&) {
    return HttpReply{"HTTP/1.1 200 x\r\n\r\n", HttpReply::kDrip};
  });
  HttpOptions options = Options();
  options.bytes_per_second_min = 1 << 20;
  HttpClient client(options);
  EXPECT_THAT(
      client.ReadFile(server.address() + "/f", 1000000),
      StatusIs(kUnavailable, HasSubstr("too slow: expected at least 1048576 bytes a second")));
}

TEST_F(HttpTest, TriesAgainWhatMayPassAndNothingElse) {
  std::atomic<int> left = 2;
  const auto busy = [&](const HttpRequest&) -> std::optional<HttpReply> {
    if (left-- > 0) return MakeReply(503, "");
    return std::nullopt;
  };
  EXPECT_THAT(Read(busy, /*tries_max=*/3), IsOkAndHolds(Good()));
  left = 5;
  EXPECT_THAT(Read(busy, /*tries_max=*/3), StatusIs(kUnavailable));
  EXPECT_EQ(requests_.size(), 3);
  EXPECT_THAT(Read([](const HttpRequest&) { return MakeReply(404, ""); }, 5),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(requests_.size(), 1);
}

TEST_F(HttpTest, RubbishOfAServerIsAnError) {
  for (const std::string& rubbish : {std::string("hello"), std::string("HTTP/9.9 \r\n\r\n"),
                                     std::string(1 << 20, '\0'), std::string()}) {
    EXPECT_FALSE(Read([&](const HttpRequest&) {
                   return HttpReply{rubbish, HttpReply::kClose};
                 }).ok());
  }
}

TEST_F(HttpTest, FollowsRedirectionsToHttpOnly) {
  HttpServer target({{"/f", bytes_}});
  const auto to = [](std::string where) {
    return [where](const HttpRequest&) {
      return MakeReply(302, "", absl::StrCat("Location: ", where, "\r\n"));
    };
  };
  EXPECT_THAT(Read(to(target.address() + "/f")), IsOkAndHolds(Good()));
  EXPECT_FALSE(Read(to("file:///etc/passwd")).ok());
  EXPECT_FALSE(Read(to("/f")).ok());  // round and round
}

TEST_F(HttpTest, InterruptsAreObeyed) {
  HttpServer server({}, [](const HttpRequest&) { return HttpReply{"", HttpReply::kStall}; });
  HttpOptions options = Options(5);
  options.stall_timeout = absl::Seconds(60);
  options.interrupted = [] { return true; };
  HttpClient client(options);
  EXPECT_THAT(client.ReadFile(server.address() + "/f", 100),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(HttpTest, WholeFilesHaveALimit) {
  HttpServer server({{"/f", bytes_}});
  HttpClient client(Options());
  EXPECT_THAT(client.ReadFile(server.address() + "/f", 1000), IsOkAndHolds(bytes_));
  EXPECT_THAT(client.ReadFile(server.address() + "/f", 999),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(client.ReadFile("ftp://127.0.0.1/f", 999),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(server.connections(), 1);  // used again
}

TEST_F(HttpTest, NobodyThere) {
  std::string address;
  {
    HttpServer server({});
    address = server.address();
  }
  HttpClient client(Options());
  EXPECT_THAT(client.ReadFile(address + "/f", 999), StatusIs(kUnavailable, HasSubstr(address)));
}

// ---- A corpus

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

class CorpusOverHttpTest : public HttpTest {
 protected:
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
  testing::WriteBytes(cache / "manifest.json", "{}");
  HttpServer server(files_);
  EXPECT_THAT(OpenCorpus(At(server, cache.path())),
              StatusIs(kFailedPrecondition, HasSubstr("choose another folder")));
  EXPECT_EQ(testing::ReadBytes(cache / "manifest.json"), "{}");
}

}  // namespace
}  // namespace lockstep::engine
