// SPDX-License-Identifier: Apache-2.0
//
// The server on a port of loopback: requests as they should be, and clients that are slow, idle,
// rude, or a thousand.
#include "coordinator/http/server.h"

#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "coordinator/http/file_response.h"
#include "coordinator/http/folder.h"
#include "coordinator/http/health.h"
#include "coordinator/http/testing/raw_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::RawClient;
using testing::RawResponse;
using ::testing::StartsWith;

// Something that one thread does and another waits for.
class Event {
 public:
  void Happen() {
    const std::lock_guard<std::mutex> lock(mutex_);
    happened_ = true;
    changed_.notify_all();
  }
  void Await() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return happened_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool happened_ = false;
};

class Upper final : public RequestBody {
 public:
  explicit Upper(std::atomic<int>* alive) : alive_(alive) { ++*alive_; }
  ~Upper() override { --*alive_; }
  std::optional<HttpResponse> Write(ByteSpan bytes) override {
    if (AsChars(bytes).find('!') != absl::string_view::npos)
      return TextResponse(422, "no shouting");
    bytes_ += bytes.size();
    return std::nullopt;
  }
  HttpResponse Finish() override { return TextResponse(201, absl::StrCat(bytes_)); }

 private:
  std::atomic<int>* const alive_;
  uint64_t bytes_ = 0;
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() : registry_(std::make_shared<prometheus::Registry>()) {
    options_.registry = registry_;
    options_.handler_threads = 2;
    router_.Get("/hello", [](const HttpRequest& request) {
      return TextResponse(200, absl::StrCat("hello ", request.query));
    });
    router_.Get("/big", [this](const HttpRequest&) {
      return HttpResponse{.body = std::string(big_bytes_, 'b')};
    });
    router_.Get("/file", [this](const HttpRequest& request) {
      return FileResponse(request, *folder_->OpenBeneath("file"),
                          {.content_type = "x/y", .cache_control = kImmutable, .etag = "e"});
    });
    router_.Get("/throws",
                [](const HttpRequest&) -> HttpResponse { throw std::runtime_error("oh"); });
    router_.Get("/splits", [](const HttpRequest&) {
      HttpResponse response = TextResponse(200, "x");
      response.headers = {{"X-Good", "1"}, {"X-Bad", "a\r\nSet-Cookie: b"}, {"Y\n", "c"}};
      return response;
    });
    router_.Get("/waits", [this](const HttpRequest&) {
      ++at_work_;
      waiting_.Happen();
      go_on_.Await();
      return TextResponse(200, "waited");
    });
    router_.Get("/stream", [this](const HttpRequest&) {
      return HttpResponse{.content_type = "text/event-stream",
                          .body = StreamBody{.start =
                                                 [this](auto stream) {
                                                   stream_ = std::move(stream);
                                                   stream_started_.Happen();
                                                 },
                                             .heartbeat = ":beat\n\n"}};
    });
    router_.Put("/put/", [this](const HttpRequest& request) -> UploadAnswer {
      if (request.path == "/put/no") return TextResponse(403, "no");
      return std::make_unique<Upper>(&bodies_);
    });
    ServeHealth([this] { return health_; }, router_);
    ServeMetrics(registry_, router_);
    WriteBytes(temporary_ / "file", std::string(10 << 20, 'f'));
    folder_ = *Folder::Open(temporary_.path());
  }
  ~ServerTest() override { go_on_.Happen(); }

  uint16_t Start() {
    auto server = HttpServer::Start(options_, router_);
    EXPECT_THAT(server, IsOk());
    server_ = *std::move(server);
    return server_->port();
  }
  // What is counted, by name and labels, as a line of text.
  std::string Counted(const std::string& line) {
    const std::string text = std::get<std::string>(ServeMetrics(*registry_).body);
    for (const absl::string_view found : absl::StrSplit(text, '\n')) {
      if (absl::StartsWith(found, line)) return std::string(found.substr(line.size() + 1));
    }
    return "";
  }

  TemporaryFolder temporary_;
  std::shared_ptr<const Folder> folder_;
  std::shared_ptr<prometheus::Registry> registry_;
  HttpServerOptions options_;
  Router router_;
  size_t big_bytes_ = 1000;
  absl::Status health_;
  std::atomic<int> bodies_ = 0, at_work_ = 0;
  Event waiting_, go_on_, stream_started_;
  std::shared_ptr<ResponseStream> stream_;
  std::unique_ptr<HttpServer> server_;
};

// ---- As it should be

TEST_F(ServerTest, AnswersAndKeepsTheConnection) {
  RawClient client(Start());
  for (int i = 0; i < 3; ++i) {
    const RawResponse response = client.Get(absl::StrCat("/hello?", i));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, absl::StrCat("hello ", i, "\n"));
    EXPECT_EQ(response.Header("Connection"), "keep-alive");
  }
}

TEST_F(ServerTest, EveryAnswerHasSecurityHeaders) {
  RawClient client(Start());
  for (const char* path : {"/hello", "/nowhere", "/file"}) {
    const RawResponse response = client.Get(path);
    EXPECT_EQ(response.Header("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(response.Header("X-Frame-Options"), "DENY");
    EXPECT_EQ(response.Header("Referrer-Policy"), "no-referrer");
    EXPECT_EQ(response.Header("Content-Security-Policy"),
              "default-src 'none'; frame-ancestors 'none'");
    EXPECT_THAT(response.Header("Date"), ::testing::MatchesRegex("..., .. ... .... ........ GMT"));
  }
  EXPECT_EQ(client.Get("/hello").Header("Cache-Control"), "no-store");
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  RawClient client(Start());
  std::string requests;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&requests, "GET /hello?", i, " HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  client.Send(requests);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(client.ReadResponse().body, absl::StrCat("hello ", i, "\n"));
  }
}

TEST_F(ServerTest, RequestsMayComeByteByByte) {
  RawClient client(Start());
  for (const char byte : std::string("GET /hello?x HTTP/1.1\r\nHost: x\r\n\r\n")) {
    client.Send(std::string(1, byte));
  }
  EXPECT_EQ(client.ReadResponse().body, "hello x\n");
}

TEST_F(ServerTest, HeadHasTheHeadersOfGetAndNoBody) {
  RawClient client(Start());
  for (const char* path : {"/hello", "/file"}) {
    const RawResponse get = client.Get(path);
    client.Send(absl::StrCat("HEAD ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
    const RawResponse head = client.ReadResponse(/*has_body=*/false);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.Header("Content-Length"), absl::StrCat(get.body.size()));
  }
  EXPECT_EQ(client.Get("/hello?on").body, "hello on\n");
}

TEST_F(ServerTest, Http10ClosesUnlessAsked) {
  const uint16_t port = Start();
  RawClient client(port);
  client.Send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().Header("Connection"), "close");
  EXPECT_TRUE(client.IsClosed());
  RawClient kept(port);
  kept.Send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.ReadResponse().Header("Connection"), "keep-alive");
  EXPECT_EQ(kept.Get("/hello").status, 200);
}

TEST_F(ServerTest, UnknownPathsAndMethods) {
  RawClient client(Start());
  EXPECT_EQ(client.Get("/nowhere").status, 404);
  EXPECT_EQ(client.Get("/hello/x").status, 404);
  const RawResponse put = client.Get("/put/x");
  EXPECT_EQ(put.status, 405);
  EXPECT_EQ(put.Header("Allow"), "PUT");
  client.Send("PUT /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().Header("Allow"), "GET, HEAD");
  client.Send("DELETE /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().status, 501);
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(ServerTest, HandlersThatThrowAreAnError) {
  RawClient client(Start());
  const RawResponse response = client.Get("/throws");
  EXPECT_EQ(response.status, 500);
  EXPECT_THAT(response.body, Not(HasSubstr("oh")));
  EXPECT_EQ(client.Get("/hello").status, 200);
}

TEST_F(ServerTest, HandlersCannotSplitAnswers) {
  RawClient client(Start());
  const RawResponse response = client.Get("/splits");
  EXPECT_THAT(response.head,
              AllOf(HasSubstr("X-Good"), Not(HasSubstr("Set-Cookie")), Not(HasSubstr("X-Bad"))));
  EXPECT_EQ(response.body, "x\n");
}

TEST_F(ServerTest, FilesAreSentWholeAndInParts) {
  RawClient client(Start());
  EXPECT_EQ(client.Get("/file").body, std::string(10 << 20, 'f'));
  const RawResponse part = client.Get("/file", "Range: bytes=5-8\r\n");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "ffff");
}

// A file that became shorter is not padded, nor is the answer ended as if it were whole.
TEST_F(ServerTest, FilesThatShrinkBreakTheConnection) {
  const uint16_t port = Start();
  RawClient client(port, 4096);
  client.Send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(client.ReceiveUntil("\r\n\r\n"));
  ASSERT_EQ(::truncate((temporary_ / "file").c_str(), 100), 0);
  size_t got = client.buffer().size();
  while (client.Receive()) {
    got += client.buffer().size();
    client.buffer().clear();
  }
  EXPECT_LT(got, 10u << 20);
  EXPECT_EQ(RawClient(port).Get("/hello").status, 200);
}

TEST_F(ServerTest, HealthAndMetrics) {
  RawClient client(Start());
  EXPECT_EQ(client.Get("/healthz").body, "ok\n");
  const RawResponse metrics = client.Get("/metrics");
  EXPECT_THAT(metrics.Header("Content-Type"), StartsWith("text/plain; version=0.0.4"));
  EXPECT_THAT(metrics.body,
              HasSubstr("lockstep_http_requests_total{code=\"200\",route=\"/healthz\"} 1"));
  client.Get("/nowhere/../etc/passwd");
  EXPECT_EQ(Counted("lockstep_http_connections_dropped_total{reason=\"bad_request\"}"), "1");
}

TEST_F(ServerTest, HealthTellsThatSomethingIsWrong) {
  health_ = absl::UnavailableError("/srv/secret/store.sqlite: disk I/O error");
  RawClient client(Start());
  const RawResponse response = client.Get("/healthz");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, "not serving; the server's log says why\n") << "strangers see it";
}

// Prometheus's own checker has nothing to say of the page.
TEST_F(ServerTest, PromtoolAcceptsTheMetrics) {
  ASSERT_EQ(std::system("command -v promtool >/dev/null"), 0)
      << "not installed: scripts/setup test";
  RawClient client(Start());
  client.Get("/hello");
  client.Get("/nowhere");
  WriteBytes(temporary_ / "metrics", client.Get("/metrics").body);
  const std::string command =
      absl::StrCat("promtool check metrics <", temporary_ / "metrics", " 2>&1");
  FILE* out = ::popen(command.c_str(), "r");
  std::string said;
  char bytes[4096];
  while (const size_t got = ::fread(bytes, 1, sizeof(bytes), out)) said.append(bytes, got);
  EXPECT_EQ(::pclose(out), 0);
  EXPECT_EQ(said, "");
}

// ---- Bodies

TEST_F(ServerTest, TakesABody) {
  RawClient client(Start());
  client.Send("PUT /put/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" +
              std::string(1000000, 'b'));
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.body, "1000000\n");
  EXPECT_EQ(client.Get("/hello").status, 200);
  EXPECT_EQ(Counted("lockstep_http_received_bytes_total"), "1000000");
}

TEST_F(ServerTest, AnEmptyBody) {
  RawClient client(Start());
  client.Send("PUT /put/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().body, "0\n");
}

TEST_F(ServerTest, SaysContinueWhenItWillTakeTheBody) {
  RawClient client(Start());
  const std::string head = "Host: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
  client.Send("PUT /put/x HTTP/1.1\r\n" + head);
  EXPECT_EQ(client.ReadResponse(false).status, 100);
  client.Send("abc");
  EXPECT_EQ(client.ReadResponse().status, 201);
  client.Send("PUT /put/no HTTP/1.1\r\n" + head);
  EXPECT_EQ(client.ReadResponse().status, 403);
  EXPECT_TRUE(client.IsClosed());
}

// The answer arrives although the body was not read.
TEST_F(ServerTest, RefusedBodiesDoNotDestroyTheAnswer) {
  const uint16_t port = Start();
  for (const char* path : {"/put/no", "/nowhere", "/hello"}) {
    RawClient client(port);
    client.Send(
        absl::StrCat("PUT ", path, " HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n"));
    client.Send(std::string(900000, 'x'));
    EXPECT_GE(client.ReadResponse().status, 403);
    EXPECT_TRUE(client.IsClosed());
  }
  RawClient client(port);
  client.Send("PUT /put/x HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\nno!");
  client.Send(std::string(500000, 'x'));
  EXPECT_EQ(client.ReadResponse().status, 422);
  EXPECT_TRUE(client.IsClosed());
  EXPECT_EQ(bodies_, 0);
}

TEST_F(ServerTest, BodiesThatEndEarlyAreLetGo) {
  RawClient client(Start());
  client.Send(
      "PUT /put/x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadResponse(false).status, 100);
  EXPECT_EQ(bodies_, 1);
  client.Reset();
  while (bodies_ != 0) std::this_thread::yield();
}

// ---- Limits

TEST_F(ServerTest, HeadsHaveALimit) {
  options_.head_bytes_max = 4096;
  const uint16_t port = Start();
  RawClient fits(port);
  EXPECT_EQ(fits.Get("/hello", absl::StrCat("A: ", std::string(4000, 'a'), "\r\n")).status, 200);
  RawClient whole(port);
  EXPECT_EQ(whole.Get("/hello", absl::StrCat("A: ", std::string(4096, 'a'), "\r\n")).status, 431);
  EXPECT_TRUE(whole.IsClosed());
  RawClient endless(port);
  endless.Send("GET /hello HTTP/1.1\r\n" + std::string(100000, 'a'));
  EXPECT_EQ(endless.ReadResponse().status, 431);
}

TEST_F(ServerTest, SlowHeadsAreGivenUp) {
  options_.head_timeout = absl::Milliseconds(200);
  RawClient client(Start());
  const absl::Time before = absl::Now();
  client.Send("GET /hello HTTP/1.1\r\n");
  // A header now and then keeps nothing alive: the time is for the whole head.
  while (client.Send("A: b\r\n")) {
    if (client.IsClosed(20)) break;
  }
  EXPECT_GE(absl::Now() - before, absl::Milliseconds(200));
  EXPECT_EQ(Counted("lockstep_http_connections_dropped_total{reason=\"head_timeout\"}"), "1");
}

TEST_F(ServerTest, IdleConnectionsAreClosed) {
  options_.idle_timeout = absl::Milliseconds(100);
  const uint16_t port = Start();
  RawClient fresh(port), used(port);
  EXPECT_EQ(used.Get("/hello").status, 200);
  EXPECT_TRUE(fresh.IsClosed());
  EXPECT_TRUE(used.IsClosed());
}

TEST_F(ServerTest, SlowBodiesAreGivenUp) {
  options_.body_stall_timeout = absl::Milliseconds(200);
  options_.bytes_per_second_min = 1000000;
  const uint16_t port = Start();
  const std::string head = "PUT /put/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
  RawClient stalls(port), drips(port);
  stalls.Send(head);
  drips.Send(head);
  EXPECT_TRUE(stalls.IsClosed());
  while (drips.Send("x") && !drips.IsClosed(20)) {
  }
  EXPECT_EQ(Counted("lockstep_http_connections_dropped_total{reason=\"body_timeout\"}"), "2");
}

TEST_F(ServerTest, SlowReadersAreGivenUp) {
  options_.write_stall_timeout = absl::Milliseconds(200);
  big_bytes_ = 20 << 20;
  const uint16_t port = Start();
  for (const char* path : {"/big", "/file"}) {
    RawClient client(port, 4096);
    client.Send(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
    const std::string dropped = "lockstep_http_connections_dropped_total{reason=\"write_timeout\"}";
    const std::string before = Counted(dropped);
    while (Counted(dropped) == before) std::this_thread::yield();
  }
  EXPECT_EQ(RawClient(port).Get("/hello").status, 200);
}

TEST_F(ServerTest, ReadersThatAreTooSlowOnAverageAreGivenUp) {
  options_.write_stall_timeout = absl::Milliseconds(300);
  options_.bytes_per_second_min = 1 << 30;
  RawClient client(Start(), 4096);
  client.Send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string dropped = "lockstep_http_connections_dropped_total{reason=\"write_timeout\"}";
  size_t got = 0;
  while (Counted(dropped).empty()) {  // a little at a time, and never for long nothing
    pollfd wait = {client.fd(), 0, 0};
    ::poll(&wait, 1, 20);
    char bytes[2048];
    const ssize_t count = ::recv(client.fd(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (count > 0) got += static_cast<size_t>(count);
  }
  EXPECT_GT(got, 0u);
  EXPECT_LT(got, 10u << 20);
}

// A thousand idle connections, and as many with half a request: one that has something to say is
// answered at once, and the idle ones are still served, as far as there is room.
TEST_F(ServerTest, ThousandIdleConnectionsHurtNobody) {
  options_.connections_max = 1500;
  const uint16_t port = Start();
  std::vector<RawClient> idle, half;
  for (int i = 0; i < 1000; ++i) idle.emplace_back(port);
  for (RawClient& client : idle) ASSERT_EQ(client.Get("/hello").status, 200);
  for (int i = 0; i < 400; ++i) half.emplace_back(port).Send("GET /hello HTTP/1.1\r\n");
  const absl::Time before = absl::Now();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(RawClient(port).Get("/hello").status, 200);
  EXPECT_LT(absl::Now() - before, absl::Seconds(5));
  for (RawClient& client : idle) ASSERT_EQ(client.Get("/hello").status, 200);
  // Over the cap, those go that have waited longest: the half requests, then the idle from the
  // first on. Nobody new is turned away.
  std::vector<RawClient> more;
  for (int i = 0; i < 600; ++i) ASSERT_EQ(more.emplace_back(port).Get("/hello").status, 200);
  for (RawClient& client : half) EXPECT_TRUE(client.IsClosed());
  EXPECT_TRUE(idle[0].IsClosed());
  EXPECT_EQ(idle[999].Get("/hello").status, 200);
}

TEST_F(ServerTest, WhenAllAreAtWorkNewOnesAreToldSo) {
  options_.connections_max = 2;
  options_.handler_threads = 4;
  const uint16_t port = Start();
  RawClient first(port), second(port);
  for (RawClient* client : {&first, &second}) {
    client->Send("GET /waits HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  while (at_work_ < 2) std::this_thread::yield();
  const RawResponse third = RawClient(port).ReadResponse();
  EXPECT_EQ(third.status, 503);
  EXPECT_EQ(third.Header("Retry-After"), "5");
  go_on_.Happen();
  EXPECT_EQ(first.ReadResponse().status, 200);
  EXPECT_EQ(second.ReadResponse().status, 200);
}

TEST_F(ServerTest, AnAddressHasItsShare) {
  options_.connections_per_address_max = 2;
  options_.limit_loopback = true;
  const uint16_t port = Start();
  RawClient first(port), second(port);
  EXPECT_EQ(first.Get("/hello").status, 200);
  EXPECT_EQ(second.Get("/hello").status, 200);
  EXPECT_TRUE(RawClient(port).IsClosed());
  first.Close();
  while (RawClient(port).Get("/hello").status != 200) {  // once the server knows
  }
  EXPECT_EQ(second.Get("/hello").status, 200);
}

TEST_F(ServerTest, ManyClientsAtOnce) {
  const uint16_t port = Start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        RawClient client(port);
        if ((i + t) % 5 == 0) {
          client.Send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
          client.Receive();
          client.Reset();
          continue;
        }
        EXPECT_EQ(client.Get("/hello?a").body, "hello a\n");
        EXPECT_EQ(client.Get("/file", "Range: bytes=0-99999\r\n").body, std::string(100000, 'f'));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// ---- Streams

TEST_F(ServerTest, StreamsAreSentAsTheyAreWritten) {
  RawClient client(Start());
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawResponse head = client.ReadResponse();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.Header("Transfer-Encoding"), "chunked");
  stream_started_.Await();
  EXPECT_TRUE(stream_->Write("one"));
  EXPECT_TRUE(client.ReceiveUntil("3\r\none\r\n"));
  EXPECT_TRUE(stream_->Write("twelve bytes"));
  EXPECT_TRUE(client.ReceiveUntil("c\r\ntwelve bytes\r\n"));
  stream_->Close();
  EXPECT_TRUE(client.ReceiveUntil("0\r\n\r\n"));
  EXPECT_TRUE(client.IsClosed());
  EXPECT_FALSE(stream_->Write("more"));
}

TEST_F(ServerTest, StreamsForHttp10EndWithTheConnection) {
  RawClient client(Start());
  client.Send("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().Header("Connection"), "close");
  stream_started_.Await();
  stream_->Write("all");
  stream_->Close();
  while (client.Receive()) {
  }
  EXPECT_EQ(client.buffer(), "all");
}

TEST_F(ServerTest, QuietStreamsBeat) {
  options_.heartbeat = absl::Milliseconds(50);
  RawClient client(Start());
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(client.ReceiveUntil("7\r\n:beat\n\n\r\n7\r\n:beat\n\n\r\n"));
}

TEST_F(ServerTest, WritersHearThatTheReaderIsGone) {
  RawClient client(Start());
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  stream_started_.Await();
  client.Close();
  while (stream_->Write("x")) std::this_thread::yield();
}

TEST_F(ServerTest, ReadersThatDoNotKeepUpAreLetGo) {
  options_.stream_bytes_max = 100000;
  const uint16_t port = Start();
  RawClient client(port, 4096);
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  stream_started_.Await();
  while (stream_->Write(std::string(10000, 's'))) {
  }
  EXPECT_TRUE(client.IsClosed());
  EXPECT_EQ(RawClient(port).Get("/hello").status, 200);
}

TEST_F(ServerTest, StreamsAreCounted) {
  options_.streams_max = 1;
  const uint16_t port = Start();
  RawClient first(port), second(port);
  EXPECT_EQ(first.Get("/stream").status, 200);
  EXPECT_EQ(second.Get("/stream").status, 503);
  EXPECT_EQ(second.Get("/hello").status, 200);
  first.Close();
  while (second.Get("/stream").status != 200) {
  }
}

// ---- The end

TEST_F(ServerTest, StopLetsWorkEndAndClosesTheRest) {
  const uint16_t port = Start();
  RawClient idle(port), working(port), stream(port);
  EXPECT_EQ(idle.Get("/hello").status, 200);
  EXPECT_EQ(stream.Get("/stream").status, 200);
  working.Send("GET /waits HTTP/1.1\r\nHost: x\r\n\r\n");
  waiting_.Await();
  std::thread stop([&] { server_->Stop(absl::Seconds(60)); });
  EXPECT_TRUE(idle.IsClosed());
  EXPECT_TRUE(stream.ReceiveUntil("0\r\n\r\n"));
  go_on_.Happen();
  const RawResponse response = working.ReadResponse();
  EXPECT_EQ(response.body, "waited\n");
  EXPECT_EQ(response.Header("Connection"), "close");
  working.Close();
  stop.join();
}

TEST_F(ServerTest, StopDoesNotWaitForEver) {
  const uint16_t port = Start();
  RawClient reader(port, 4096), half(port), upload(port);
  reader.Send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
  reader.Receive();
  half.Send("GET /hello");
  upload.Send("PUT /put/x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  const absl::Time before = absl::Now();
  server_->Stop(absl::Milliseconds(100));
  EXPECT_LT(absl::Now() - before, absl::Seconds(5));
  EXPECT_TRUE(upload.IsClosed());
  server_.reset();
  EXPECT_EQ(bodies_, 0);
}

TEST_F(ServerTest, StreamsMayOutliveTheServer) {
  RawClient client(Start());
  EXPECT_EQ(client.Get("/stream").status, 200);
  stream_started_.Await();
  server_.reset();
  EXPECT_FALSE(stream_->Write("x"));
  stream_->Close();
}

TEST_F(ServerTest, AddressesThatCannotBeHad) {
  options_.port = Start();
  EXPECT_FALSE(HttpServer::Start(options_, router_).ok());
  options_.port = 0;
  options_.address = "no.such.host";
  EXPECT_THAT(HttpServer::Start(options_, router_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in numbers")));
}

}  // namespace
}  // namespace lockstep::coordinator
