// SPDX-License-Identifier: Apache-2.0
//
// Artifacts over sockets: our client and curl against our server. Uploads that are signed, copied,
// cut off, and sent by a process that is killed again and again, to a server that is started anew.
// Run with arguments, this program is that process.
#include "coordinator/http/artifacts.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file_calls.h"
#include "base/testing/child_process.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "coordinator/http/server.h"
#include "coordinator/http/testing/raw_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/artifact_fetch.h"
#include "net/artifact_upload.h"

namespace lockstep::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using testing::RawClient;
using testing::RawResponse;

constexpr char kAudience[] = "log.example/test";

std::string Content(size_t bytes, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::string content(bytes, '\0');
  for (char& c : content) c = static_cast<char>(random());
  return content;
}

// Stands for Ed25519, which is not this folder's business: whoever knows the key can sign with it.
std::array<uint8_t, 64> SignatureOf(const std::array<uint8_t, 32>& key, ByteSpan text) {
  std::array<uint8_t, 64> signature{};
  const Digest digest = Sha256({ByteSpan(key), text});
  std::copy(digest.bytes.begin(), digest.bytes.end(), signature.begin());
  return signature;
}

net::RequestSigner SignerOf(char name) {
  net::RequestSigner signer;
  signer.key.fill(static_cast<uint8_t>(name));
  signer.sign = [key = signer.key](ByteSpan text) { return SignatureOf(key, text); };
  return signer;
}

net::HttpOptions ClientOptions(int tries_max = 3) {
  net::HttpOptions options;
  options.tries_max = tries_max;
  options.backoff = absl::Milliseconds(1);
  options.stall_timeout = absl::Seconds(20);
  options.redirects_max = 0;
  options.sleep = [](absl::Duration) { std::this_thread::yield(); };
  return options;
}

net::UploadOptions UploadTo(const std::string& address, char signer = 'a',
                            uint64_t part_bytes = 1 << 20) {
  return {.address = address,
          .audience = kAudience,
          .signer = SignerOf(signer),
          .part_bytes = part_bytes};
}

class ArtifactsTest : public ::testing::Test {
 protected:
  // Loopback is not to be reached by a proxy.
  static void SetUpTestSuite() { setenv("no_proxy", "127.0.0.1", 1); }

  ArtifactsTest() : content_(Content(5 << 20)), digest_(Sha256(AsBytes(content_))) {
    WriteBytes(files_ / "source", content_);
    server_options_.registry = std::make_shared<prometheus::Registry>();
    store_options_.artifact_bytes_max = 20 << 20;
    rules_.audience = kAudience;
    rules_.authorize = [this](const net::RequestSignature& signature,
                              const std::string& text) -> absl::StatusOr<UploadGrant> {
      ++asked_;
      if (SignatureOf(signature.key, AsBytes(text)) != signature.signature) {
        return absl::UnauthenticatedError("the signature is wrong");
      }
      if (signature.key[0] == 'z') return absl::PermissionDeniedError("the key is not known");
      return UploadGrant{.owner = std::string(1, static_cast<char>(signature.key[0])),
                         .quota_bytes = quota_};
    };
    Start();
  }

  void Start() {
    server_.reset();
    store_.reset();
    store_ = *ArtifactStore::Open(files_ / "store", store_options_);
    Router router;
    ServeArtifacts(*store_, rules_, router);
    auto server = HttpServer::Start(server_options_, std::move(router));
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    server_options_.port = server_->port();
  }
  std::string address() const { return absl::StrCat("http://127.0.0.1:", server_->port()); }
  std::string path() const { return "/artifact/" + digest_.ToHex(); }
  void Place() { WriteBytes(files_ / ("store" + path()), content_); }
  bool IsThere() const {
    return std::filesystem::exists(files_ / ("store" + path())) &&
           ReadBytes(files_ / ("store" + path())) == content_;
  }
  absl::Status Upload(const net::UploadOptions& options) {
    net::HttpClient client(ClientOptions());
    return net::UploadArtifact(client, options, digest_, files_ / "source");
  }

  // What curl prints; its files are `files_`/out. -s: no progress.
  std::string Curl(const std::string& arguments) {
    const std::string command =
        absl::StrCat("curl -s -o ", files_ / "out", " ", arguments, " ", address(), path());
    FILE* out = ::popen(command.c_str(), "r");
    std::string said;
    char bytes[4096];
    while (const size_t got = ::fread(bytes, 1, sizeof(bytes), out)) said.append(bytes, got);
    ::pclose(out);
    return said;
  }

  // A PUT of our own making; `change` spoils what is signed after it was signed.
  std::string PutHead(const std::string& range, uint64_t length,
                      std::function<void(net::RequestClaim&)> sign_other = nullptr,
                      char signer = 'a', absl::Duration skew = absl::ZeroDuration()) {
    net::RequestClaim claim{.method = "PUT",
                            .path = path(),
                            .audience = kAudience,
                            .content_range = range,
                            .time = absl::ToUnixSeconds(absl::Now() + skew)};
    claim.nonce.fill(++nonce_);
    net::RequestSignature signature{
        .key = SignerOf(signer).key, .time = claim.time, .nonce = claim.nonce};
    if (sign_other) sign_other(claim);
    signature.signature = SignatureOf(signature.key, AsBytes(*net::SigningText(claim)));
    return absl::StrCat("PUT ", path(), " HTTP/1.1\r\nHost: x\r\nContent-Length: ", length,
                        "\r\nContent-Range: ", range,
                        "\r\nAuthorization: ", net::FormatAuthorization(signature), "\r\n\r\n");
  }
  RawResponse Ask(const std::string& request) {
    RawClient client(server_->port());
    client.Send(request);
    return client.ReadResponse();
  }
  std::string AllRange() const { return absl::StrCat("bytes */", content_.size()); }

  const std::string content_;
  const Digest digest_;
  TemporaryFolder files_;
  ArtifactStoreOptions store_options_;
  HttpServerOptions server_options_;
  UploadRules rules_;
  std::atomic<int> asked_ = 0;
  uint64_t quota_ = uint64_t{1} << 40;
  uint8_t nonce_ = 0;
  std::unique_ptr<ArtifactStore> store_;
  std::unique_ptr<HttpServer> server_;
};

// ---- Downloads

TEST_F(ArtifactsTest, OurClientFetches) {
  Place();
  net::HttpClient client(ClientOptions());
  WriteBytes(files_ / "got.partial", content_.substr(0, 1234567));
  EXPECT_THAT(net::FetchArtifact(client, {.mirrors = {address() + "/artifact"}},
                                 {.sha256 = digest_, .bytes = content_.size()}, files_ / "got"),
              IsOk());
  EXPECT_EQ(ReadBytes(files_ / "got"), content_);
}

TEST_F(ArtifactsTest, OnlyDigestsAreNames) {
  Place();
  RawClient client(server_->port());
  for (const std::string& bad :
       {std::string("/artifact/"), path() + "/", path().substr(0, 73), path() + "0",
        absl::StrCat("/artifact/", absl::AsciiStrToUpper(digest_.ToHex())),
        std::string("/artifact/lock"), std::string("/artifact")}) {
    EXPECT_EQ(client.Get(bad).status, 404) << bad;
  }
  EXPECT_EQ(client.Get(path()).status, 200);
}

class CurlTest : public ArtifactsTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(std::system("command -v curl >/dev/null"), 0) << "not installed: scripts/setup test";
    Place();
  }
  std::string Out() const { return ReadBytes(files_ / "out"); }
};

TEST_F(CurlTest, Whole) {
  EXPECT_EQ(Curl("-w '%{http_code} %{size_download} %{content_type} %header{etag} "
                 "%header{cache-control}'"),
            absl::StrCat("200 5242880 application/octet-stream \"", digest_.ToHex(),
                         "\" public, max-age=31536000, immutable"));
  EXPECT_EQ(Out(), content_);
}

TEST_F(CurlTest, Head) {
  EXPECT_EQ(Curl("-I -w '%{http_code} %header{content-length} %header{accept-ranges}'"),
            "200 5242880 bytes");
}

TEST_F(CurlTest, Ranges) {
  const std::string form = " -w '%{http_code} %header{content-range}'";
  EXPECT_EQ(Curl("-r 10-19" + form), "206 bytes 10-19/5242880");
  EXPECT_EQ(Out(), content_.substr(10, 10));
  EXPECT_EQ(Curl("-r 5242870-" + form), "206 bytes 5242870-5242879/5242880");
  EXPECT_EQ(Out(), content_.substr(5242870));
  EXPECT_EQ(Curl("-r -5" + form), "206 bytes 5242875-5242879/5242880");
  EXPECT_EQ(Out(), content_.substr(5242875));
  EXPECT_EQ(Curl("-r 5242880-" + form), "416 bytes */5242880");
  EXPECT_EQ(Curl("-r 0-1,5-6 -w '%{http_code}'"), "200");
}

TEST_F(CurlTest, Resume) {
  WriteBytes(files_ / "out", content_.substr(0, 3333333));
  EXPECT_EQ(Curl("-C - -w '%{http_code} %{size_download}'"),
            absl::StrCat("206 ", content_.size() - 3333333));
  EXPECT_EQ(Out(), content_);
}

TEST_F(CurlTest, Conditions) {
  const std::string etag = absl::StrCat("\"", digest_.ToHex(), "\"");
  const std::string form = " -w '%{http_code} %{size_download}'";
  EXPECT_EQ(Curl("-r 0-9 -H 'If-Range: " + etag + "'" + form), "206 10");
  EXPECT_EQ(Curl("-r 0-9 -H 'If-Range: \"other\"'" + form), "200 5242880");
  EXPECT_EQ(Curl("-H 'If-None-Match: " + etag + "'" + form), "304 0");
  EXPECT_EQ(Curl("-H 'If-Match: \"other\"' -w '%{http_code}'"), "412");
}

// Two requests over one connection, the second after an answer without a body.
TEST_F(CurlTest, KeepsTheConnection) {
  EXPECT_EQ(Curl(absl::StrCat("-H 'If-None-Match: *' -w '%{http_code} %{num_connects},' -o ",
                              files_ / "out2", " ", address(), path())),
            "304 1,304 0,");
}

// ---- Uploads

TEST_F(ArtifactsTest, UploadsInParts) {
  std::vector<uint64_t> progress;
  net::UploadOptions options = UploadTo(address());
  options.progress = [&](uint64_t have, uint64_t) { progress.push_back(have >> 20); };
  EXPECT_THAT(Upload(options), IsOk());
  EXPECT_TRUE(IsThere());
  EXPECT_THAT(progress, ElementsAre(0, 1, 2, 3, 4));
  // Another time nothing is sent.
  progress.clear();
  EXPECT_THAT(Upload(options), IsOk());
  EXPECT_THAT(progress, IsEmpty());
}

TEST_F(ArtifactsTest, UploadsWhateverThePartsSize) {
  for (const uint64_t part : {uint64_t{1} << 40, uint64_t{5} << 20, uint64_t{3333333}}) {
    EXPECT_THAT(Upload(UploadTo(address(), 'a', part)), IsOk());
    EXPECT_TRUE(IsThere());
    ASSERT_THAT(store_->Remove(digest_), IsOk());
  }
}

TEST_F(ArtifactsTest, AnEmptyArtifact) {
  WriteBytes(files_ / "empty", "");
  net::HttpClient client(ClientOptions());
  const Digest digest = Sha256({});
  EXPECT_THAT(net::UploadArtifact(client, UploadTo(address()), digest, files_ / "empty"), IsOk());
  EXPECT_EQ(RawClient(server_->port()).Get("/artifact/" + digest.ToHex()).status, 200);
}

TEST_F(ArtifactsTest, OtherBytesThanTheDigestsAreRefused) {
  WriteBytes(files_ / "source", Content(5 << 20, 2));
  EXPECT_THAT(Upload(UploadTo(address())),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the bytes have the digest")));
  EXPECT_FALSE(IsThere());
  EXPECT_EQ(store_->bytes(), 0u);
}

TEST_F(ArtifactsTest, LimitsAreTold) {
  quota_ = 5 << 20;
  EXPECT_THAT(Upload(UploadTo(address())), IsOk());
  WriteBytes(files_ / "other", "x");
  net::HttpClient client(ClientOptions());
  EXPECT_THAT(
      net::UploadArtifact(client, UploadTo(address()), Sha256(AsBytes("x")), files_ / "other"),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("quota")));
  WriteBytes(files_ / "other", std::string((20 << 20) + 1, 'x'));
  const Digest large = Sha256(AsBytes(ReadBytes(files_ / "other")));
  EXPECT_THAT(net::UploadArtifact(client, UploadTo(address()), large, files_ / "other"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("413")));
}

TEST_F(ArtifactsTest, AFullDiskIsToldAndGoneOnWith) {
  file_internal::calls.write = [](int fd, const void* bytes, size_t size) -> ssize_t {
    const off_t at = ::lseek(fd, 0, SEEK_CUR);
    if (at < 2000000) return ::write(fd, bytes, size);
    errno = ENOSPC;
    return -1;
  };
  EXPECT_THAT(Upload(UploadTo(address())), StatusIs(absl::StatusCode::kResourceExhausted));
  server_->Stop(absl::Seconds(10));
  file_internal::calls = {};
  Start();
  EXPECT_THAT(Upload(UploadTo(address())), IsOk());
  EXPECT_TRUE(IsThere());
}

TEST_F(ArtifactsTest, StrangersMayNot) {
  EXPECT_THAT(Upload(UploadTo(address(), 'z')),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("not known")));
  net::UploadOptions forged = UploadTo(address());
  forged.signer.sign = [](ByteSpan) { return std::array<uint8_t, 64>{}; };
  EXPECT_THAT(Upload(forged),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("signature")));
  net::UploadOptions elsewhere = UploadTo(address());
  elsewhere.audience = "log.example/other";
  EXPECT_THAT(Upload(elsewhere), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_EQ(store_->bytes(), 0u);
}

TEST_F(ArtifactsTest, WhatIsSignedIsThatRequest) {
  EXPECT_EQ(Ask(PutHead(AllRange(), 0)).status, 202);
  using Claim = net::RequestClaim;
  for (const auto& other : std::vector<std::function<void(Claim&)>>{
           [](Claim& claim) { claim.method = "GET"; },
           [](Claim& claim) { claim.path = "/artifact/" + std::string(64, '0'); },
           [](Claim& claim) { claim.content_range = "bytes 0-9/10"; },
           [](Claim& claim) { claim.time += 1; }, [](Claim& claim) { claim.nonce[0] += 1; },
           [](Claim& claim) { claim.audience = ""; }}) {
    const RawResponse response = Ask(PutHead(AllRange(), 0, other));
    EXPECT_EQ(response.status, 401);
    EXPECT_EQ(response.Header("WWW-Authenticate"), "lockstep-ed25519");
  }
}

TEST_F(ArtifactsTest, CopiesOfARequestAreRefused) {
  const std::string request = PutHead(AllRange(), 0);
  EXPECT_EQ(Ask(request).status, 202);
  const RawResponse copy = Ask(request);
  EXPECT_EQ(copy.status, 401);
  EXPECT_THAT(copy.body, HasSubstr("seen before"));
}

TEST_F(ArtifactsTest, WhatNobodyWantsIsRefused) {
  rules_.wants = [this](const std::array<uint8_t, 32>& key, const Digest& digest,
                        uint64_t bytes) -> absl::Status {
    const bool wanted = key[0] == 'a' && digest == digest_ && bytes == content_.size();
    return wanted ? absl::OkStatus() : absl::PermissionDeniedError("nobody asked for it");
  };
  Start();
  EXPECT_THAT(Upload(UploadTo(address(), 'b')), Not(IsOk()));
  EXPECT_FALSE(IsThere());
  EXPECT_THAT(Upload(UploadTo(address(), 'a')), IsOk());
}

// One owner's requests do not use up the memory of nonces for others.
TEST_F(ArtifactsTest, AnOwnerHasItsShareOfRequests) {
  rules_.nonces_per_owner_max = 3;
  Start();
  const auto many = UploadTo(address(), 'b', content_.size() / 8);
  EXPECT_THAT(Upload(many), Not(IsOk()));
  EXPECT_THAT(Upload(UploadTo(address(), 'a', content_.size())), IsOk());
}

TEST_F(ArtifactsTest, ClocksThatDifferAreTold) {
  for (const absl::Duration skew : {absl::Minutes(6), -absl::Minutes(6), absl::Hours(24 * 365)}) {
    const RawResponse response = Ask(PutHead(AllRange(), 0, nullptr, 'a', skew));
    EXPECT_EQ(response.status, 401);
    EXPECT_THAT(response.body, HasSubstr("set the clock right"));
  }
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(Ask(PutHead(AllRange(), 0, nullptr, 'a', absl::Minutes(4))).status, 202);
}

TEST_F(ArtifactsTest, RangesThatDoNotFit) {
  EXPECT_EQ(Ask(PutHead("bytes 0-9/5242880", 9)).status, 400);
  EXPECT_EQ(Ask(PutHead("bytes 0-9/*", 10)).status, 400);
  EXPECT_EQ(Ask(PutHead("bytes */*", 0)).status, 400);
  EXPECT_EQ(Ask(PutHead("nonsense", 0)).status, 400);
  EXPECT_EQ(Ask(PutHead("bytes */5242880", 5)).status, 400);
  EXPECT_EQ(
      Ask(absl::StrCat("PUT ", path(), " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")).status,
      400);
  const RawResponse ahead = Ask(PutHead("bytes 10-19/5242880", 10));
  EXPECT_EQ(ahead.status, 409);
  EXPECT_EQ(ahead.Header("Upload-Offset"), "0");
  EXPECT_EQ(Ask(PutHead("bytes */5242881", 0)).status, 400);  // begun with another size
}

// A connection that breaks in the middle of a part leaves what came.
TEST_F(ArtifactsTest, HalfPartsAreKept) {
  {
    RawClient client(server_->port());
    client.Send(PutHead("bytes 0-5242879/5242880", 5242880));
    client.Send(content_.substr(0, 1000000));
    uint64_t offset = 0;
    while (offset < 1000000) {  // held until the bytes are written and the connection is gone
      std::error_code none;
      for (const auto& entry :
           std::filesystem::directory_iterator(files_ / "store/uploads", none)) {
        if (entry.path().extension() == ".partial") offset = entry.file_size(none);
      }
    }
    client.Reset();
  }
  RawResponse response = Ask(PutHead(AllRange(), 0));
  while (response.status == 503) response = Ask(PutHead(AllRange(), 0));
  EXPECT_EQ(response.status, 202);
  EXPECT_EQ(response.Header("Upload-Offset"), "1000000");
  EXPECT_THAT(Upload(UploadTo(address())), IsOk());
  EXPECT_TRUE(IsThere());
}

TEST_F(ArtifactsTest, CurlUploads) {
  ASSERT_EQ(std::system("command -v curl >/dev/null"), 0) << "not installed: scripts/setup test";
  const std::string head = PutHead("bytes 0-5242879/5242880", 5242880);
  const size_t at = head.find("Authorization: ");
  const std::string authorization = head.substr(at, head.find("\r\n", at) - at);
  EXPECT_EQ(Curl(absl::StrCat("-T ", files_ / "source",
                              " -H 'Content-Range: bytes 0-5242879/5242880' -H '", authorization,
                              "' -w '%{http_code}'")),
            "201");
  EXPECT_TRUE(IsThere());
}

TEST_F(ArtifactsTest, ManyUploadAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string content = Content(300000, 100 + t / 2);  // two of each, by two owners
      const std::string source = files_ / absl::StrCat("source", t);
      WriteBytes(source, content);
      net::HttpClient client(ClientOptions(10));
      EXPECT_THAT(
          net::UploadArtifact(client, UploadTo(address(), static_cast<char>('a' + t), 50000),
                              Sha256(AsBytes(content)), source),
          IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_->bytes(), 600000u);
}

// ---- Kills

// The client is killed at any moment, and now and then the server is started anew: the upload ends
// in the artifact.
TEST_F(ArtifactsTest, KilledUploadsAreTakenUp) {
  const std::vector<std::string> arguments = {"--upload", address(), digest_.ToHex(),
                                              files_ / "source"};
  const uint64_t seed = 20260731;
  std::mt19937_64 random(seed);
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  const absl::Time before = absl::Now();
  EXPECT_EQ(WaitForChild(StartChild(arguments)), 0);
  const int64_t whole_us = absl::ToInt64Microseconds(absl::Now() - before);
  int killed = 0, rounds = 0;
  while (killed < 30 && rounds++ < 300) {
    if (IsThere()) {
      ASSERT_THAT(store_->Remove(digest_), IsOk());
    }
    const absl::Time end = absl::Now() + absl::Microseconds(random() % whole_us);
    const pid_t child = StartChild(arguments);
    while (absl::Now() < end) std::this_thread::yield();
    ::kill(child, SIGKILL);
    killed += WIFSIGNALED(WaitForChild(child));
    EXPECT_TRUE(IsThere() || !std::filesystem::exists(files_ / ("store" + path())));
    if (killed % 10 == 9) Start();
  }
  EXPECT_GE(killed, 30);
  EXPECT_EQ(WaitForChild(StartChild(arguments)), 0);
  EXPECT_TRUE(IsThere());
  EXPECT_EQ(store_->bytes(), content_.size());
}

// The server is killed at any moment while a client uploads: what was acknowledged stays, and the
// client needs no more than patience.
TEST_F(ArtifactsTest, KilledServersKeepWhatTheyAcknowledged) {
  server_.reset();
  store_.reset();
  const uint64_t seed = 20260802;
  std::mt19937_64 random(seed);
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  const std::string port_path = files_ / "port";
  const auto serve = [&] {
    std::filesystem::remove(port_path);
    const pid_t child =
        StartChild({"--serve", files_ / "store", port_path, absl::StrCat(server_options_.port)});
    while (!std::filesystem::exists(port_path)) std::this_thread::yield();
    return child;
  };
  int kills = 0;
  // On a busy machine an upload may be over after a few: then there is another.
  for (int round = 0; kills < 20; ++round) {
    ASSERT_LT(round, 100);
    if (round > 0) {
      ASSERT_THAT((*ArtifactStore::Open(files_ / "store", {}))->Remove(digest_), IsOk());
    }
    pid_t child = serve();
    std::atomic<bool> done = false;
    std::atomic<uint64_t> acknowledged = 0;
    std::thread client_thread([&] {
      net::HttpClient client(ClientOptions(1000000));
      net::UploadOptions options =
          UploadTo(absl::StrCat("http://127.0.0.1:", server_options_.port), 'a', 20000);
      options.progress = [&](uint64_t have, uint64_t) {
        EXPECT_GE(have, acknowledged);
        acknowledged = have;
      };
      EXPECT_THAT(net::UploadArtifact(client, options, digest_, files_ / "source"), IsOk());
      done = true;
    });
    while (!done) {
      const uint64_t enough = acknowledged + random() % 200000;
      while (!done && acknowledged < enough) std::this_thread::yield();
      ::kill(child, SIGKILL);
      WaitForChild(child);
      ++kills;
      child = serve();
    }
    client_thread.join();
    ::kill(child, SIGKILL);
    WaitForChild(child);
    EXPECT_TRUE(IsThere());
    EXPECT_THAT(ReadAll(files_ / "store/uploads"), IsEmpty());
  }
}

// Serves until it is killed; writes to a file when it does.
int ServeAsChild(char** argv) {
  auto store = ArtifactStore::Open(argv[2], {});
  if (!store.ok()) return 2;
  UploadRules rules;
  rules.audience = kAudience;
  rules.authorize = [](const net::RequestSignature&, const std::string&) {
    return UploadGrant{.owner = "a", .quota_bytes = uint64_t{1} << 40};
  };
  Router router;
  ServeArtifacts(**store, std::move(rules), router);
  uint32_t port = 0;
  if (!absl::SimpleAtoi(argv[4], &port)) return 2;
  const auto server = HttpServer::Start(
      {.port = static_cast<uint16_t>(port), .registry = std::make_shared<prometheus::Registry>()},
      std::move(router));
  if (!server.ok()) {
    std::cerr << server.status() << "\n";
    return 2;
  }
  WriteBytes(argv[3], "");
  while (true) ::pause();
}

int UploadAsChild(char** argv) {
  const absl::StatusOr<Digest> digest = Digest::FromHex(argv[3]);
  if (!digest.ok()) return 2;
  net::HttpClient client(ClientOptions(1000));
  const absl::Status status =
      net::UploadArtifact(client, UploadTo(argv[2], 'a', 100000), *digest, argv[4]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::coordinator

int main(int argc, char** argv) {
  namespace coordinator = lockstep::coordinator;
  const absl::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "--upload" && argc == 5) return coordinator::UploadAsChild(argv);
  if (mode == "--serve" && argc == 5) return coordinator::ServeAsChild(argv);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
