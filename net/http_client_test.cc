// SPDX-License-Identifier: Apache-2.0
//
// Ranges and small files read off a web server: each way in which a server can fail gives right
// bytes in the end, or an error that says what happened.
#include "net/http_client.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/http_server.h"

namespace lockstep::net {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HttpReply;
using testing::HttpRequest;
using testing::HttpServer;
using testing::MakePartialReply;
using testing::MakeReply;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

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

// ---- Waiting

// The waits between tries, for a client that is told to draw `random`.
std::vector<absl::Duration> WaitsOf(HttpOptions options, double random, std::string headers = "") {
  HttpServer server({}, [&](const HttpRequest&) { return MakeReply(503, "", headers); });
  std::vector<absl::Duration> waits;
  options.random = [random, &waits] {
    waits.push_back(absl::ZeroDuration());
    return random;
  };
  options.sleep = [&](absl::Duration piece) { waits.back() += piece; };
  HttpClient client(options);
  EXPECT_THAT(client.ReadFile(server.address() + "/f", 10), StatusIs(kUnavailable));
  return waits;
}

TEST_F(HttpTest, WaitsGrowUpToALimitAndAreDrawnAtRandom) {
  HttpOptions options = Options(6);
  options.backoff = absl::Seconds(1);
  options.backoff_max = absl::Seconds(5);
  const auto seconds = [](double a, double b, double c, double d, double e) {
    return ElementsAre(absl::Seconds(a), absl::Seconds(b), absl::Seconds(c), absl::Seconds(d),
                       absl::Seconds(e));
  };
  EXPECT_THAT(WaitsOf(options, 0), seconds(0.5, 1, 2, 2.5, 2.5));
  EXPECT_THAT(WaitsOf(options, 0.5), seconds(0.75, 1.5, 3, 3.75, 3.75));
}

TEST_F(HttpTest, RetryAfterIsHeededWithinLimits) {
  HttpOptions options = Options(2);
  EXPECT_THAT(WaitsOf(options, 0, "Retry-After: 7\r\n"), ElementsAre(absl::Seconds(7)));
  EXPECT_THAT(WaitsOf(options, 0, "Retry-After: 99999999999999999999\r\n"),
              ElementsAre(absl::ZeroDuration()));
  EXPECT_THAT(WaitsOf(options, 0, "Retry-After: 999999999\r\n"), ElementsAre(absl::Minutes(10)));
}

TEST_F(HttpTest, RateLimiterPaysForBytesAndSavesLittle) {
  FakeClock clock;
  RateLimiter limiter(1000, clock);
  EXPECT_EQ(limiter.Take(100), absl::ZeroDuration());  // a tenth of a second, saved
  EXPECT_EQ(limiter.Take(500), absl::Milliseconds(500));
  clock.Advance(absl::Milliseconds(200));
  EXPECT_EQ(limiter.Take(200), absl::Milliseconds(500));
  clock.Advance(absl::Hours(1));
  EXPECT_EQ(limiter.Take(1100), absl::Seconds(1));
}

// A transfer waits as long as its bytes cost, and a cap below the least speed asked of a server is
// no fault of the server.
TEST_F(HttpTest, TransfersKeepToTheCap) {
  FakeClock clock;
  HttpServer server({{"/f", std::string(100000, 'x')}});
  HttpOptions options = Options();
  options.clock = &clock;
  options.rate_limiter = std::make_shared<RateLimiter>(1000, clock);
  options.bytes_per_second_min = 100000;
  options.stall_timeout = absl::Seconds(5);
  options.sleep = [&](absl::Duration piece) { clock.Advance(piece); };
  HttpClient client(options);
  const absl::Duration before = clock.Monotonic();
  EXPECT_THAT(client.ReadFile(server.address() + "/f", 100000), IsOk());
  EXPECT_EQ(absl::ToInt64Milliseconds(clock.Monotonic() - before), 99900);
}

}  // namespace
}  // namespace lockstep::net
