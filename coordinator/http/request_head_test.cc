// SPDX-License-Identifier: Apache-2.0
//
// Heads as they should be, and the ways to smuggle a second request, another path or another host
// past a server or the proxy before it.
#include "coordinator/http/request_head.h"

#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;

RequestHead Parsed(const std::string& head) {
  auto result = ParseRequestHead(head);
  if (const auto* refusal = std::get_if<HttpResponse>(&result)) {
    ADD_FAILURE() << refusal->status << " for " << head;
    return {};
  }
  return std::get<RequestHead>(std::move(result));
}

// The status code of the answer to a bad head; 0 for a good one.
int Refused(const std::string& head) {
  const auto result = ParseRequestHead(head);
  const auto* refusal = std::get_if<HttpResponse>(&result);
  return refusal == nullptr ? 0 : refusal->status;
}
int RefusedWith(const std::string& headers, const std::string& line = "GET / HTTP/1.1") {
  return Refused(absl::StrCat(line, "\r\nHost: x\r\n", headers, "\r\n"));
}

TEST(RequestHeadTest, AHead) {
  const RequestHead head = Parsed(
      "GET /tile/0/x001/067?a=b HTTP/1.1\r\nHost: h:80\r\nRange: bytes=0-1\r\nrange-X:  a b "
      "\r\n\r\n");
  EXPECT_EQ(head.request.method, HttpMethod::kGet);
  EXPECT_EQ(head.request.path, "/tile/0/x001/067");
  EXPECT_EQ(head.request.query, "a=b");
  EXPECT_EQ(head.request.content_length, 0u);
  EXPECT_THAT(head.request.headers, ElementsAre(Pair("host", "h:80"), Pair("range", "bytes=0-1"),
                                                Pair("range-x", "a b")));
  EXPECT_TRUE(head.http_1_1);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_FALSE(head.expects_continue);
}

TEST(RequestHeadTest, KeepAlive) {
  EXPECT_FALSE(Parsed("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").keep_alive);
  EXPECT_FALSE(Parsed("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(Parsed("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
}

TEST(RequestHeadTest, Put) {
  const RequestHead head = Parsed(
      "PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551614\r\n"
      "Expect: 100-Continue\r\n\r\n");
  EXPECT_EQ(head.request.method, HttpMethod::kPut);
  EXPECT_EQ(head.request.content_length, 18446744073709551614u);
  EXPECT_TRUE(head.expects_continue);
}

TEST(RequestHeadTest, BodiesOfUnclearLengthAreRefused) {
  const std::string put = "PUT / HTTP/1.1";
  EXPECT_EQ(RefusedWith("", put), 411);
  EXPECT_EQ(RefusedWith("Transfer-Encoding: chunked\r\n", put), 501);
  EXPECT_EQ(RefusedWith("Transfer-Encoding: chunked\r\n"), 501);
  EXPECT_NE(RefusedWith("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", put), 0);
  EXPECT_NE(RefusedWith("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", put), 0);
  EXPECT_NE(RefusedWith("Transfer-Encoding: identity\r\nContent-Length: 3\r\n", put), 0);
  EXPECT_NE(RefusedWith("Content-Length: 3\r\nContent-Length: 4\r\n", put), 0);
  EXPECT_NE(RefusedWith("Content-Length: 3\r\nContent-Length: 3\r\n", put), 0);
  EXPECT_NE(RefusedWith("Content-Length: 3, 3\r\n", put), 0);
  EXPECT_NE(RefusedWith("Content-Length: +3\r\n", put), 0);
  EXPECT_NE(RefusedWith("Content-Length: -3\r\n", put), 0);
  EXPECT_NE(RefusedWith("Content-Length: 0x3\r\n", put), 0);
  EXPECT_NE(RefusedWith("Content-Length: 18446744073709551616\r\n", put), 0);
  EXPECT_NE(RefusedWith("Content-Length : 3\r\n", put), 0);
  EXPECT_EQ(RefusedWith("Content-Length: 3\r\n"), 400);  // of a GET
  EXPECT_EQ(RefusedWith("Content-Length: 0\r\n"), 0);
}

TEST(RequestHeadTest, HostsThatAreNotSaidOnce) {
  EXPECT_EQ(Refused("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(Refused("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(Refused("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(Refused("GET / HTTP/1.0\r\n\r\n"), 0);
}

TEST(RequestHeadTest, MethodsVersionsAndExpectations) {
  EXPECT_EQ(RefusedWith("", "POST / HTTP/1.1"), 501);
  EXPECT_EQ(RefusedWith("", "CONNECT x:1 HTTP/1.1"), 501);
  EXPECT_NE(RefusedWith("", "get / HTTP/1.1"), 0);
  EXPECT_NE(RefusedWith("", "GET / HTTP/2.0"), 0);
  EXPECT_NE(RefusedWith("", "GET / HTTP/1.2"), 0);
  EXPECT_NE(RefusedWith("", "GET /"), 0);
  EXPECT_EQ(RefusedWith("Expect: a pony\r\n"), 417);
  EXPECT_EQ(RefusedWith("Upgrade: websocket\r\n"), 501);
}

TEST(RequestHeadTest, WhatIsNoHeadIsRefused) {
  for (const char* head :
       {"\r\n\r\n", "hello\r\n\r\n", "GET / HTTP/1.1\r\nHost x\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: x\r\n\r\n", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\nHost: x\n\r\n\r\n", "GET / HTTP/1.1\r\nHo\x01st: x\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02\x00\r\n\r\n"}) {
    EXPECT_EQ(Refused(head), 400) << head;
  }
  EXPECT_EQ(Refused(absl::StrCat("GET /a", std::string(1, '\0'), "b HTTP/1.1\r\nHost: x\r\n\r\n")),
            400);
}

TEST(RequestHeadTest, ManyHeadersAndLongTargetsAreRefused) {
  std::string headers;
  for (int i = 0; i < 64; ++i) absl::StrAppend(&headers, "A", i, ": b\r\n");
  EXPECT_EQ(RefusedWith(headers), 431);
  EXPECT_EQ(RefusedWith("", absl::StrCat("GET /", std::string(5000, 'a'), " HTTP/1.1")), 414);
}

TEST(RequestHeadTest, PathsThatMayMeanAnotherPlace) {
  for (const char* path :
       {"/..",   "/../etc/passwd", "/a/../b", "/a/./b", "/.",   "//",         "//a", "/a//b",
        "/a%2e", "/%2e%2e/",       "/a\\b",   "/a;b",   "/a:b", "http://x/a", "*",   "a",
        "/a b",  "/\xc3\xa4",      "/a'b",    "/a\"b"}) {
    EXPECT_FALSE(IsSafePath(path)) << path;
    EXPECT_NE(RefusedWith("", absl::StrCat("GET ", path, " HTTP/1.1")), 0) << path;
  }
  for (const char* path :
       {"/", "/a", "/a/", "/...", "/a..b", "/.a", "/x001/067.p/5", "/A-b_c~1.d"}) {
    EXPECT_TRUE(IsSafePath(path)) << path;
  }
  EXPECT_FALSE(IsSafePath(""));
}

TEST(RequestHeadTest, FindsTheEndWhereverReadsAreCut) {
  const std::string bytes = "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET";
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const auto first = FindHeadEnd(absl::string_view(bytes).substr(0, cut), 0);
    EXPECT_EQ(first.has_value(), cut >= 27);
    EXPECT_THAT(first ? first : FindHeadEnd(bytes, cut), Optional(27u)) << cut;
  }
}

TEST(QueryTest, Parameters) {
  EXPECT_THAT(ParseQuery(""), Optional(IsEmpty()));
  EXPECT_THAT(
      ParseQuery("a=1&b=x%20y+z&c&d=%3D="),
      Optional(ElementsAre(Pair("a", "1"), Pair("b", "x y z"), Pair("c", ""), Pair("d", "=="))));
  EXPECT_THAT(ParseQuery("%C3%A4=%c3%b6"), Optional(ElementsAre(Pair("ä", "ö"))));
}

TEST(QueryTest, BadOnes) {
  for (const char* query : {"a=%", "a=%1", "a=%1g", "%zz", "a=%00", "a=%ff", "%c3=1"}) {
    EXPECT_EQ(ParseQuery(query), std::nullopt) << query;
  }
  std::string many;
  for (int i = 0; i < 33; ++i) absl::StrAppend(&many, "&a=", i);
  EXPECT_EQ(ParseQuery(many.substr(1)), std::nullopt);
}

}  // namespace
}  // namespace lockstep::coordinator
