// SPDX-License-Identifier: Apache-2.0
//
// Which paths are files of the log, and how they are answered.
#include "coordinator/http/log_files.h"

#include <string>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

TEST(LogPathTest, Kinds) {
  EXPECT_EQ(KindOfLogPath("/checkpoint"), LogFileKind::kCheckpoint);
  for (const char* path : {"/tile/0/000", "/tile/0/067", "/tile/63/999", "/tile/entries/000",
                           "/tile/1/x001/x234/067", "/tile/0/x999/x999/x999/x999/x999/999"}) {
    EXPECT_EQ(KindOfLogPath(path), LogFileKind::kFullTile) << path;
  }
  for (const char* path :
       {"/tile/0/000.p/1", "/tile/entries/x001/067.p/255", "/tile/8/x001/x000/000.p/99"}) {
    EXPECT_EQ(KindOfLogPath(path), LogFileKind::kPartialTile) << path;
  }
}

TEST(LogPathTest, AnyOtherSpellingIsNone) {
  for (const char* path : {"",
                           "/",
                           "checkpoint",
                           "/checkpoint/",
                           "/tile",
                           "/tile/",
                           "/tile/0",
                           "/tile/0/",
                           "/tile/00/000",
                           "/tile/64/000",
                           "/tile/-1/000",
                           "/tile/a/000",
                           "/tile/data/000",
                           "/tile/0/0",
                           "/tile/0/0000",
                           "/tile/0/00a",
                           "/tile/0/x001",
                           "/tile/0/001/002",
                           "/tile/0/x000/001",
                           "/tile/0/x01/002",
                           "/tile/0/xx001/002",
                           "/tile/0/000/",
                           "/tile/0/000.p",
                           "/tile/0/000.p/",
                           "/tile/0/000.p/0",
                           "/tile/0/000.p/01",
                           "/tile/0/000.p/256",
                           "/tile/0/000.p/1/2",
                           "/tile/0/x001.p/002",
                           "/tile/0/000.p/1.p/2",
                           "/tile/entries",
                           "/tile/entries/entries/000",
                           "/tile/0/../000",
                           "/tile/0/x001/../002",
                           "/tile/0/x001/x001/x001/x001/x001/x001/001"}) {
    EXPECT_EQ(KindOfLogPath(path), LogFileKind::kNone) << path;
  }
}

class LogFilesTest : public ::testing::Test {
 protected:
  LogFilesTest() {
    WriteBytes(folder_ / "checkpoint", "origin\n5\n");
    WriteBytes(folder_ / "tile/0/x001/067", "full");
    WriteBytes(folder_ / "tile/0/068.p/5", "partial");
    WriteBytes(folder_ / "tile/secret", "s");
    WriteBytes(folder_ / "secret", "s");
    ServeLogFiles(*Folder::Open(folder_.path()), router_);
  }
  HttpResponse Get(const std::string& path) {
    HttpRequest request;
    request.path = path;
    const Router::Route* route = router_.Find(path);
    return route == nullptr ? TextResponse(404, "") : route->get(request);
  }
  TemporaryFolder folder_;
  Router router_;
};

TEST_F(LogFilesTest, CheckpointsAreNotKeptAndTilesAre) {
  const HttpResponse checkpoint = Get("/checkpoint");
  EXPECT_EQ(checkpoint.status, 200);
  EXPECT_EQ(checkpoint.cache_control, "no-cache, no-store");
  EXPECT_EQ(checkpoint.content_type, "text/plain; charset=utf-8");
  EXPECT_EQ(std::get<FileBody>(checkpoint.body).size, 9u);
  EXPECT_EQ(Get("/tile/0/x001/067").cache_control, "public, max-age=31536000, immutable");
  EXPECT_EQ(Get("/tile/0/068.p/5").cache_control, "public, max-age=60");
}

TEST_F(LogFilesTest, NothingElseIsServed) {
  for (const char* path : {"/secret", "/tile/secret", "/tile/0/069", "/tile/0/x001", "/tile/0/",
                           "/tile/0/068.p/6", "/tile/0/068"}) {
    EXPECT_EQ(Get(path).status, 404) << path;
  }
}

}  // namespace
}  // namespace lockstep::coordinator
