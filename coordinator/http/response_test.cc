// SPDX-License-Identifier: Apache-2.0
//
// Conditions and ranges of files, routes, and the heads of answers, without a socket.
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "coordinator/http/file_response.h"
#include "coordinator/http/folder.h"
#include "coordinator/http/response_head.h"
#include "coordinator/http/router.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class FileResponseTest : public ::testing::Test {
 protected:
  FileResponseTest() { WriteBytes(folder_ / "f", std::string(100, 'x')); }

  using Headers = std::vector<std::pair<std::string, std::string>>;
  HttpResponse Get(Headers headers, HttpMethod method = HttpMethod::kGet) {
    HttpRequest request;
    request.method = method;
    request.headers = std::move(headers);
    return FileResponse(request, *(*Folder::Open(folder_.path()))->OpenBeneath("f"),
                        {.content_type = "a/b", .cache_control = "c", .etag = "tag"});
  }
  static std::string Header(const HttpResponse& response, const std::string& name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }
  TemporaryFolder folder_;
};

TEST_F(FileResponseTest, Whole) {
  const HttpResponse response = Get({});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(Header(response, "ETag"), "\"tag\"");
  EXPECT_EQ(Header(response, "Accept-Ranges"), "bytes");
  EXPECT_EQ(std::get<FileBody>(response.body).size, 100u);
}

TEST_F(FileResponseTest, Part) {
  const HttpResponse response = Get({{"range", "bytes=90-"}});
  EXPECT_EQ(response.status, 206);
  EXPECT_EQ(Header(response, "Content-Range"), "bytes 90-99/100");
  EXPECT_EQ(std::get<FileBody>(response.body).begin, 90u);
  EXPECT_EQ(std::get<FileBody>(response.body).size, 10u);
}

TEST_F(FileResponseTest, Unsatisfiable) {
  const HttpResponse response = Get({{"range", "bytes=100-"}});
  EXPECT_EQ(response.status, 416);
  EXPECT_EQ(Header(response, "Content-Range"), "bytes */100");
}

TEST_F(FileResponseTest, WhatIsIgnored) {
  EXPECT_EQ(Get({{"range", "bytes=0-1,3-4"}}).status, 200);
  EXPECT_EQ(Get({{"range", "lines=0-1"}}).status, 200);
  EXPECT_EQ(Get({{"range", "bytes=0-1"}, {"range", "bytes=3-4"}}).status, 200);
  EXPECT_EQ(Get({{"range", "bytes=0-1"}}, HttpMethod::kHead).status, 200);
}

TEST_F(FileResponseTest, IfRange) {
  const std::pair<std::string, std::string> range = {"range", "bytes=0-1"};
  EXPECT_EQ(Get({range, {"if-range", "\"tag\""}}).status, 206);
  EXPECT_EQ(Get({range, {"if-range", "\"other\""}}).status, 200);
  EXPECT_EQ(Get({range, {"if-range", "W/\"tag\""}}).status, 200);  // strong comparison
  EXPECT_EQ(Get({range, {"if-range", "Sat, 01 Jan 2000 00:00:00 GMT"}}).status, 200);
}

TEST_F(FileResponseTest, Conditions) {
  EXPECT_EQ(Get({{"if-none-match", "\"tag\""}}).status, 304);
  EXPECT_EQ(Get({{"if-none-match", "\"a\", W/\"tag\""}}).status, 304);
  EXPECT_EQ(Get({{"if-none-match", "*"}}).status, 304);
  EXPECT_EQ(Get({{"if-none-match", "\"a\""}}).status, 200);
  EXPECT_EQ(Get({{"if-match", "\"tag\""}}).status, 200);
  EXPECT_EQ(Get({{"if-match", "\"a\""}}).status, 412);
  EXPECT_EQ(Get({{"if-match", "W/\"tag\""}}).status, 412);
}

TEST(RouterTest, TheLongestPatternWins) {
  Router router;
  for (const char* pattern : {"/a", "/a/", "/a/b/", "/a/b/c"}) router.Get(pattern, nullptr);
  const auto found = [&](const char* path) {
    const Router::Route* route = router.Find(path);
    return route == nullptr ? "none" : route->pattern;
  };
  EXPECT_EQ(found("/a"), "/a");
  EXPECT_EQ(found("/a/"), "/a/");
  EXPECT_EQ(found("/a/x/y"), "/a/");
  EXPECT_EQ(found("/a/b/"), "/a/b/");
  EXPECT_EQ(found("/a/b/x"), "/a/b/");
  EXPECT_EQ(found("/a/b/c"), "/a/b/c");
  EXPECT_EQ(found("/a/b/c/d"), "/a/b/");
  EXPECT_EQ(found("/"), "none");
  EXPECT_EQ(found("/b"), "none");
  router.Get("/", nullptr);
  EXPECT_EQ(found("/b"), "/");
  EXPECT_EQ(found("/"), "/");
}

TEST(ResponseHeadTest, Framing) {
  const absl::Time when = absl::FromUnixSeconds(784111777);
  const HttpResponse response = TextResponse(404, "x");
  const std::string head = FormatResponseHead(response, {.content_length = 2}, when);
  EXPECT_THAT(head,
              StartsWith("HTTP/1.1 404 Not Found\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nContent-Length: 2\r\nConnection: keep-alive\r\n"));
  EXPECT_THAT(head, ::testing::EndsWith("\r\n\r\n"));
  EXPECT_THAT(FormatResponseHead(response, {.chunked = true, .keep_alive = false}, when),
              HasSubstr("\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"));
  HttpResponse page;
  page.status = 304;
  page.content_security_policy = "default-src 'self'";
  const std::string not_modified = FormatResponseHead(page, {.content_length = 0}, when);
  EXPECT_THAT(not_modified, HasSubstr("Content-Security-Policy: default-src 'self'\r\n"));
  EXPECT_THAT(not_modified, Not(HasSubstr("Content-Length")));
}

}  // namespace
}  // namespace lockstep::coordinator
