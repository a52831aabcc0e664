// SPDX-License-Identifier: Apache-2.0
//
// The dashboard's files over a real server: what is cached how, compressed forms, and that nothing
// but them can be had.

#include "coordinator/api/dashboard.h"

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "coordinator/http/server.h"
#include "coordinator/http/testing/raw_client.h"
#include "coordinator/testing/scratch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using testing::RawClient;
using testing::RawResponse;

std::string Gunzip(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

const std::string kPage = "<!doctype html><title>the page</title>" + std::string(500, ' ');
const std::string kScript(2000, 'x');

class DashboardTest : public ::testing::Test {
 protected:
  void Serve(DashboardFiles files) {
    Router router;
    router.Get("/api/", [](const HttpRequest&) { return TextResponse(404, "the API's"); });
    ServeDashboard(std::move(files), router);
    server_ =
        HttpServer::Start({.registry = std::make_shared<prometheus::Registry>()}, std::move(router))
            .value();
  }
  void ServeAll() {
    Serve({{"index.html", kPage},
           {"assets/main-1a2b.js", kScript},
           {"assets/main-1a2b.js.br", "as brotli"},
           {"assets/style-3c.css", "a{}"},
           {"favicon.svg", "<svg>" + std::string(300, ' ')},
           {"logo.png", std::string(500, 'p')}});
  }
  RawResponse Get(absl::string_view path, absl::string_view headers = "") {
    return RawClient(server_->port()).Get(path, headers);
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(DashboardTest, PagesAndTheirPolicy) {
  ServeAll();
  for (const char* const path : {"/", "/index.html", "/runs", "/runs/abc/steps/12", "/a/b/"}) {
    const RawResponse page = Get(path);
    EXPECT_EQ(page.status, 200) << path;
    EXPECT_EQ(page.body, kPage) << path;
    EXPECT_EQ(page.Header("Content-Type"), "text/html; charset=utf-8");
    EXPECT_EQ(page.Header("Cache-Control"), "no-cache");
    EXPECT_EQ(page.Header("Content-Security-Policy"),
              "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; "
              "form-action 'none'; img-src 'self' data:");
    EXPECT_EQ(page.Header("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(page.Header("Referrer-Policy"), "no-referrer");
    EXPECT_EQ(page.Header("Cross-Origin-Opener-Policy"), "same-origin");
    EXPECT_EQ(page.Header("Cross-Origin-Resource-Policy"), "same-origin");
    EXPECT_EQ(page.Header("Access-Control-Allow-Origin"), "");
    EXPECT_EQ(page.Header("Vary"), "Accept-Encoding");
  }
  const std::string etag = Get("/").Header("ETag");
  EXPECT_EQ(Get("/runs", absl::StrCat("If-None-Match: ", etag, "\r\n")).status, 304);
  RawClient client(server_->port());
  client.Send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.ReadResponse(false).Header("Content-Length"), absl::StrCat(kPage.size()));
  EXPECT_EQ(client.Get("/").body, kPage);
}

TEST_F(DashboardTest, AssetsAreImmutableAndCompressed) {
  ServeAll();
  const std::string path = "/assets/main-1a2b.js";
  const RawResponse plain = Get(path);
  EXPECT_EQ(plain.body, kScript);
  EXPECT_EQ(plain.Header("Content-Encoding"), "");
  EXPECT_EQ(plain.Header("Content-Type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(plain.Header("Cache-Control"), "public, max-age=31536000, immutable");
  const RawResponse gzip = Get(path, "Accept-Encoding: deflate, gzip\r\n");
  EXPECT_EQ(gzip.Header("Content-Encoding"), "gzip");
  EXPECT_EQ(gzip.Header("Vary"), "Accept-Encoding");
  EXPECT_EQ(Gunzip(gzip.body), kScript);
  const RawResponse brotli = Get(path, "Accept-Encoding: gzip, deflate, br;q=0.5\r\n");
  EXPECT_EQ(brotli.Header("Content-Encoding"), "br");
  EXPECT_EQ(brotli.body, "as brotli");
  EXPECT_NE(plain.Header("ETag"), gzip.Header("ETag"));
  EXPECT_NE(brotli.Header("ETag"), gzip.Header("ETag"));
  for (const char* const none : {"br;q=0, gzip;q=0.0", "identity", "gzipped, abr", ""}) {
    const RawResponse response = Get(path, absl::StrCat("Accept-Encoding: ", none, "\r\n"));
    EXPECT_EQ(response.Header("Content-Encoding"), "") << none;
    EXPECT_EQ(response.body, kScript) << none;
  }
  // What compression would only make longer, and what is compressed already.
  EXPECT_EQ(Get("/assets/style-3c.css", "Accept-Encoding: gzip\r\n").body, "a{}");
  EXPECT_EQ(Get("/logo.png", "Accept-Encoding: gzip\r\n").Header("Content-Encoding"), "");
  EXPECT_EQ(Get("/favicon.svg").Header("Content-Type"), "image/svg+xml");
  EXPECT_EQ(Get("/favicon.svg").Header("Cache-Control"), "no-cache");
}

TEST_F(DashboardTest, NothingElse) {
  ServeAll();
  for (const char* const path : {"/assets/other.js", "/assets/", "/assets", "/main.js",
                                 "/assets/main-1a2b.js.br", "/runs/a.b", "/etc/passwd.txt"}) {
    EXPECT_EQ(Get(path).status, absl::string_view(path) == "/assets" ? 200 : 404) << path;
  }
  for (const char* const path : {"/../index.html", "/assets/../../x", "/%2e%2e/x", "//x", "/./x"}) {
    EXPECT_EQ(Get(path).status, 400) << path;
  }
  EXPECT_THAT(Get("/api/v1/none").body, HasSubstr("the API's"));
}

TEST_F(DashboardTest, WithoutABuildItSaysHowToMakeOne) {
  Serve({});
  const RawResponse page = Get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("npm run build"));
  EXPECT_EQ(page.Header("Content-Security-Policy"), "default-src 'none'; frame-ancestors 'none'");
  EXPECT_EQ(Get("/x.js").status, 404);
}

TEST(DashboardFilesTest, AFolderAndNothingBesideIt) {
  namespace fs = std::filesystem;
  const Scratch scratch;
  const std::string root = scratch.Path("dist");
  const auto write = [](const std::string& path, const std::string& bytes) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << bytes;
  };
  EXPECT_THAT(ReadDashboard(root), StatusIs(absl::StatusCode::kNotFound));
  write(root + "/assets/a.js", "a");
  EXPECT_THAT(ReadDashboard(root), StatusIs(absl::StatusCode::kNotFound, HasSubstr("index.html")));
  write(root + "/index.html", "page");
  write(root + "/a name.txt", "no path of a request");
  write(scratch.Path("secret/key.txt"), "secret");
  fs::create_symlink(scratch.Path("secret/key.txt"), root + "/key.txt");
  fs::create_directory_symlink(scratch.Path("secret"), root + "/folder");
  const absl::StatusOr<DashboardFiles> files = ReadDashboard(root);
  ASSERT_THAT(files, IsOk());
  EXPECT_THAT(*files, ElementsAre(Key("assets/a.js"), Key("index.html")));
  for (int i = 0; i < 1'000; ++i) write(absl::StrCat(root, "/many/", i), "");
  EXPECT_THAT(ReadDashboard(root), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(DashboardFilesTest, WhatIsBuiltInIsADashboardOrNothing) {
  const DashboardFiles files = BuiltInDashboard();
  if (files.empty()) return;
  ASSERT_EQ(files.count("index.html"), 1u);
  EXPECT_THAT(files.at("index.html"), HasSubstr("<html"));
}

}  // namespace
}  // namespace lockstep::coordinator
