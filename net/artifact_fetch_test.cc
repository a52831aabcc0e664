// SPDX-License-Identifier: Apache-2.0
//
// An artifact off mirrors that fail in every way, and off one that does not, by a process that is
// killed again and again. Run with an argument, this program is that process.
#include "net/artifact_fetch.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file_calls.h"
#include "base/partial_file.h"
#include "base/testing/child_process.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
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
using ::testing::IsEmpty;
using testing::kToTheEnd;
using testing::MakePartialReply;
using testing::MakeReply;
using ::testing::Pair;
using ::testing::SizeIs;

std::string Content(size_t bytes, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::string content(bytes, '\0');
  for (char& c : content) c = static_cast<char>(random());
  return content;
}

HttpOptions Options(int tries_max = 3) {
  HttpOptions options;
  options.tries_max = tries_max;
  options.backoff = absl::ZeroDuration();
  options.stall_timeout = absl::Milliseconds(300);
  options.redirects_max = 0;
  return options;
}

class FetchTest : public ::testing::Test {
 protected:
  // Loopback is not to be reached by a proxy.
  static void SetUpTestSuite() { setenv("no_proxy", "127.0.0.1", 1); }

  FetchTest() : content_(Content(100000)), digest_(Sha256(AsBytes(content_))) {}

  std::string UrlPath() const { return "/a/" + digest_.ToHex(); }
  std::map<std::string, std::string> Files() const { return {{UrlPath(), content_}}; }

  absl::Status FetchFrom(std::vector<const HttpServer*> servers,
                         std::optional<uint64_t> bytes = 100000, uint64_t bytes_max = 1 << 30) {
    HttpClient client(Options());
    FetchOptions options;
    for (const HttpServer* server : servers) options.mirrors.push_back(server->address() + "/a/");
    options.bytes_max = bytes_max;
    return FetchArtifact(client, options, {.sha256 = digest_, .bytes = bytes}, path_);
  }
  // From one server with a fault.
  absl::Status FetchWith(HttpServer::Fault fault, std::optional<uint64_t> bytes = 100000) {
    HttpServer server(Files(), std::move(fault));
    return FetchFrom({&server}, bytes);
  }
  void ExpectWhole() {
    EXPECT_THAT(ReadAll(folder_.path()), ElementsAre(Pair("artifact", content_)));
  }

  const std::string content_;
  const Digest digest_;
  TemporaryFolder folder_;
  const std::string path_ = folder_ / "artifact";
};

TEST_F(FetchTest, FetchesAWhole) {
  EXPECT_THAT(FetchWith(nullptr), IsOk());
  ExpectWhole();
}

TEST_F(FetchTest, FetchesAWholeOfUnknownSize) {
  EXPECT_THAT(FetchWith(nullptr, std::nullopt), IsOk());
  ExpectWhole();
}

TEST_F(FetchTest, AnEmptyArtifact) {
  const Digest empty = Sha256({});
  HttpServer server({{"/a/" + empty.ToHex(), ""}});
  HttpClient client(Options());
  for (const std::optional<uint64_t> bytes :
       {std::optional<uint64_t>(0), std::optional<uint64_t>()}) {
    EXPECT_THAT(FetchArtifact(client, {.mirrors = {server.address() + "/a"}},
                              {.sha256 = empty, .bytes = bytes}, path_),
                IsOk());
    EXPECT_THAT(ReadAll(folder_.path()), ElementsAre(Pair("artifact", "")));
    std::filesystem::remove(path_);
  }
  const Digest other = Sha256(AsBytes("x"));
  HttpServer liar({{"/a/" + other.ToHex(), ""}});
  EXPECT_THAT(FetchArtifact(client, {.mirrors = {liar.address() + "/a"}},
                            {.sha256 = other, .bytes = std::nullopt}, path_),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(FetchTest, GoesOnWhereAnEarlierProcessEnded) {
  WriteBytes(path_ + kPartialSuffix, content_.substr(0, 70000));
  HttpServer server(Files());
  EXPECT_THAT(FetchFrom({&server}), IsOk());
  ExpectWhole();
  EXPECT_EQ(server.requests(), (std::vector<HttpRequest>{{UrlPath(), {{70000, kToTheEnd}}}}));
}

// Killed between the last byte and the name.
TEST_F(FetchTest, AWholePartialFileNeedsNoBytes) {
  for (const std::optional<uint64_t> bytes :
       {std::optional<uint64_t>(100000), std::optional<uint64_t>()}) {
    std::filesystem::remove(path_);
    WriteBytes(path_ + kPartialSuffix, content_);
    HttpServer server(Files());
    EXPECT_THAT(FetchFrom({&server}, bytes), IsOk());
    ExpectWhole();
    EXPECT_THAT(server.requests(), SizeIs(bytes ? 0 : 1));  // an answer of 416
  }
}

TEST_F(FetchTest, ADamagedPartialFileIsBegunAgain) {
  for (const size_t left : {70000, 100000}) {
    std::string damaged = content_.substr(0, left);
    damaged[5] ^= 1;
    WriteBytes(path_ + kPartialSuffix, damaged);
    EXPECT_THAT(FetchWith(nullptr), IsOk());
    ExpectWhole();
  }
}

TEST_F(FetchTest, WrongBytesAreTheirMirrorsFault) {
  std::string wrong = content_;
  wrong[99999] ^= 1;
  HttpServer liar({{UrlPath(), wrong}}, nullptr), honest(Files());
  EXPECT_THAT(FetchFrom({&liar}),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(liar.address()), HasSubstr("wrong bytes"),
                             HasSubstr(digest_.ToHex()))));
  EXPECT_THAT(liar.requests(), SizeIs(1));
  EXPECT_THAT(FetchFrom({&liar, &honest}), IsOk());
  ExpectWhole();
}

// One mirror's good bytes behind another's bad ones: the bad one is found out.
TEST_F(FetchTest, JoinedBytesThatAreWrongAreFetchedFromOneMirrorAtATime) {
  std::string wrong = content_;
  wrong[10] ^= 1;
  HttpServer liar({}, [&](const HttpRequest& request) -> std::optional<HttpReply> {
    if (request.range)
      return MakePartialReply(wrong.substr(request.range->first), request.range->first,
                              wrong.size());
    HttpReply reply = MakeReply(200, wrong);
    reply.bytes.resize(reply.bytes.size() - 50000);
    reply.then = HttpReply::kClose;
    return reply;
  });
  HttpServer honest(Files());
  EXPECT_THAT(FetchFrom({&liar, &honest}), IsOk());
  ExpectWhole();
}

TEST_F(FetchTest, BrokenConnectionsAreTakenUp) {
  for (const auto then : {HttpReply::kClose, HttpReply::kReset, HttpReply::kStall}) {
    std::filesystem::remove(path_);
    std::atomic<int> left = 2;
    HttpServer server(Files(), [&](const HttpRequest& request) -> std::optional<HttpReply> {
      if (left-- <= 0) return std::nullopt;
      const uint64_t begin = request.range ? request.range->first : 0;
      HttpReply reply = begin == 0 ? MakeReply(200, content_)
                                   : MakePartialReply(content_.substr(begin), begin, 100000);
      reply.bytes.resize(reply.bytes.size() - 30000);
      reply.then = then;
      return reply;
    });
    EXPECT_THAT(FetchFrom({&server}), IsOk());
    ExpectWhole();
  }
}

TEST_F(FetchTest, LyingLengthsAreRefusedUnread) {
  EXPECT_THAT(FetchWith([&](const HttpRequest&) { return MakeReply(200, content_ + "x"); }),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("expected a file of 100000 bytes, found one of 100001")));
  EXPECT_THAT(FetchWith([&](const HttpRequest&) { return MakeReply(200, "short"); }),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("found one of 5")));
  // No length, and no end.
  EXPECT_THAT(FetchWith([&](const HttpRequest&) {
                return HttpReply{"HTTP/1.1 200 x\r\n\r\n" + content_ + content_, HttpReply::kClose};
              }),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("more than the 100000 bytes")));
  // A length, and fewer bytes, each time.
  EXPECT_THAT(
      FetchWith([&](const HttpRequest&) {
        return HttpReply{"HTTP/1.1 200 x\r\nContent-Length: 100000\r\n\r\nabc", HttpReply::kClose};
      }),
      StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(FetchTest, OtherRangesThanAskedForAreRefused) {
  WriteBytes(path_ + kPartialSuffix, content_.substr(0, 70000));
  EXPECT_THAT(FetchWith([&](const HttpRequest&) {
                return MakePartialReply(content_.substr(60000), 60000, 100000);
              }),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("expected the bytes from 70000")));
  EXPECT_THAT(FetchWith([&](const HttpRequest&) {
                return MakePartialReply(content_.substr(70000), 70000, 100001);
              }),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(FetchWith([&](const HttpRequest&) { return MakeReply(416, ""); }),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("416")));
  // What is there was not the mirror's, and is still good.
  EXPECT_THAT(FetchWith(nullptr), IsOk());
  ExpectWhole();
}

TEST_F(FetchTest, AServerWithoutRangesSendsAllAgain) {
  WriteBytes(path_ + kPartialSuffix, content_.substr(0, 70000));
  EXPECT_THAT(FetchWith([&](const HttpRequest&) { return MakeReply(200, content_); }), IsOk());
  ExpectWhole();
}

TEST_F(FetchTest, RedirectionsAreRefused) {
  HttpServer target(Files());
  EXPECT_THAT(FetchWith([&](const HttpRequest&) {
                return MakeReply(302, "",
                                 absl::StrCat("Location: ", target.address(), UrlPath(), "\r\n"));
              }),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("redirects")));
  EXPECT_THAT(target.requests(), IsEmpty());
}

TEST_F(FetchTest, FailuresOfAllMirrorsAreTold) {
  HttpServer none({});
  HttpServer busy({}, [](const HttpRequest&) { return MakeReply(503, ""); });
  EXPECT_THAT(FetchFrom({&none}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(FetchFrom({&none, &busy}),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(none.address()), HasSubstr("404"), HasSubstr("503"))));
  EXPECT_THAT(none.requests(), SizeIs(2));  // once a fetch
  EXPECT_THAT(busy.requests(), SizeIs(3));
}

TEST_F(FetchTest, UnknownSizesHaveALimit) {
  HttpServer server(Files());
  EXPECT_THAT(FetchFrom({&server}, std::nullopt, 99999), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(FetchFrom({&server}, std::nullopt, 100000), IsOk());
}

TEST_F(FetchTest, InterruptsAreObeyedAndKeepWhatCame) {
  HttpServer server(Files(), [&](const HttpRequest&) {
    HttpReply reply = MakeReply(200, content_);
    reply.bytes.resize(reply.bytes.size() - 1);
    reply.then = HttpReply::kStall;
    return reply;
  });
  HttpOptions options = Options();
  options.stall_timeout = absl::Seconds(60);
  std::atomic<bool> interrupted = false;
  options.interrupted = [&] { return interrupted.load(); };
  HttpClient client(options);
  FetchOptions fetch{.mirrors = {server.address() + "/a"}};
  fetch.progress = [&](uint64_t have, uint64_t total) {
    EXPECT_EQ(total, 100000u);
    interrupted = have == 99999;
  };
  EXPECT_THAT(FetchArtifact(client, fetch, {.sha256 = digest_, .bytes = 100000}, path_),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(ReadBytes(path_ + kPartialSuffix), content_.substr(0, 99999));
}

TEST_F(FetchTest, AFullDiskIsNoMirrorsFault) {
  HttpServer server(Files());
  file_internal::calls.write = [](int fd, const void* bytes, size_t size) -> ssize_t {
    struct stat info;
    if (::fstat(fd, &info) == 0 && info.st_size < 20000) {
      return ::write(fd, bytes, std::min<size_t>(size, 20000 - info.st_size));
    }
    errno = ENOSPC;
    return -1;
  };
  EXPECT_THAT(FetchFrom({&server}), StatusIs(absl::StatusCode::kResourceExhausted));
  file_internal::calls = {};
  EXPECT_THAT(server.requests(), SizeIs(1));
  EXPECT_EQ(ReadBytes(path_ + kPartialSuffix), content_.substr(0, 20000));
  EXPECT_THAT(FetchFrom({&server}), IsOk());
  ExpectWhole();
}

TEST_F(FetchTest, TwoProcessesDoNotFetchOneFile) {
  HttpServer server(Files());
  const auto held = PartialFile::Open(path_ + kPartialSuffix, 1 << 20);
  ASSERT_THAT(held, IsOk());
  EXPECT_THAT(FetchFrom({&server}), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(server.requests(), IsEmpty());
}

// ---- Kills

// A child fetches 4 MB; it is killed when so many bytes, drawn at random, are in its file. Not one
// byte that was there is asked for again.
TEST_F(FetchTest, KillsCostNothingThatWasThere) {
  const std::string content = Content(4 << 20, 7);
  const Digest digest = Sha256(AsBytes(content));
  const std::string url_path = "/a/" + digest.ToHex();
  const uint64_t seed = 20260731;
  std::mt19937_64 random(seed);
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::atomic<uint64_t> up_to = 0;  // what the server gives, and then it stalls
  HttpServer server({}, [&](const HttpRequest& request) {
    const uint64_t begin = request.range ? request.range->first : 0;
    HttpReply reply = begin == 0 ? MakeReply(200, content)
                                 : MakePartialReply(content.substr(begin), begin, content.size());
    const uint64_t end = std::max<uint64_t>(up_to, begin);
    reply.bytes.resize(reply.bytes.size() - (content.size() - end));
    reply.then = end == content.size() ? HttpReply::kKeep : HttpReply::kStall;
    return reply;
  });
  const std::vector<std::string> arguments = {"--fetch", server.address() + "/a", digest.ToHex(),
                                              absl::StrCat(content.size()), path_};
  for (int kill = 0; kill < 25; ++kill) {
    up_to += random() % ((content.size() - up_to) / 4 + 2);
    const pid_t child = StartChild(arguments);
    std::error_code none;
    while (std::filesystem::file_size(path_ + kPartialSuffix, none) != up_to || none) {
      std::this_thread::yield();
    }
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(WaitForChild(child)));
    EXPECT_EQ(ReadBytes(path_ + kPartialSuffix), content.substr(0, up_to));
  }
  up_to = content.size();
  EXPECT_EQ(WaitForChild(StartChild(arguments)), 0);
  EXPECT_THAT(ReadAll(folder_.path()), ElementsAre(Pair("artifact", content)));
}

// Killed at any moment, also while the file gets its name: what has the name is whole.
TEST_F(FetchTest, KillsAtAnyMoment) {
  HttpServer server(Files());
  const std::vector<std::string> arguments = {"--fetch", server.address() + "/a", digest_.ToHex(),
                                              "100000", path_};
  const uint64_t seed = 20260801;
  std::mt19937_64 random(seed);
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  const absl::Time before = absl::Now();
  EXPECT_EQ(WaitForChild(StartChild(arguments)), 0);
  const int64_t whole_us = absl::ToInt64Microseconds(absl::Now() - before);
  int killed = 0;
  for (int kill = 0; kill < 30; ++kill) {
    const absl::Time end = absl::Now() + absl::Microseconds(random() % whole_us);
    const pid_t child = StartChild(arguments);
    while (absl::Now() < end) std::this_thread::yield();
    ::kill(child, SIGKILL);
    killed += WIFSIGNALED(WaitForChild(child));
    if (std::filesystem::exists(path_)) {
      EXPECT_EQ(ReadBytes(path_), content_);
      std::filesystem::remove(path_);
    }
  }
  EXPECT_GT(killed, 0);
  EXPECT_EQ(WaitForChild(StartChild(arguments)), 0);
  ExpectWhole();
}

int RunChild(char** argv) {
  HttpClient client(Options());
  uint64_t bytes = 0;
  const absl::StatusOr<Digest> digest = Digest::FromHex(argv[3]);
  if (!digest.ok() || !absl::SimpleAtoi(argv[4], &bytes)) return 2;
  const absl::Status status =
      FetchArtifact(client, {.mirrors = {argv[2]}}, {.sha256 = *digest, .bytes = bytes}, argv[5]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::net

int main(int argc, char** argv) {
  if (argc == 6 && absl::string_view(argv[1]) == "--fetch") return lockstep::net::RunChild(argv);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
