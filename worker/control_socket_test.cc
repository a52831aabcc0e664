// SPDX-License-Identifier: Apache-2.0
#include "worker/control_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

class ControlSocketTest : public ::testing::Test {
 protected:
  std::unique_ptr<ControlServer> Serve() {
    return ControlServer::Start(
               folder_ / "run",
               [](const nlohmann::json& request) {
                 return nlohmann::json{{"heard", request.value("command", "")}};
               },
               nullptr)
        .value();
  }
  // Sends bytes as they are, and hangs up.
  void SendRaw(absl::string_view bytes) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ / "run/control.socket";
    std::memcpy(address.sun_path, path.data(), path.size());
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    close(fd);
  }

  TemporaryFolder folder_;
};

TEST_F(ControlSocketTest, AsksAndAnswers) {
  const auto server = Serve();
  for (int i = 0; i < 3; ++i) {
    const auto answer = AskDaemon(folder_ / "run", {{"command", "status"}});
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ((*answer)["heard"], "status");
  }
  struct stat file;
  ASSERT_EQ(stat((folder_ / "run").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0700u);
  ASSERT_EQ(stat((folder_ / "run/control.socket").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST_F(ControlSocketTest, NobodyThere) {
  EXPECT_THAT(AskDaemon(folder_ / "run", {}), StatusIs(absl::StatusCode::kUnavailable));
  Serve().reset();
  EXPECT_THAT(AskDaemon(folder_ / "run", {}), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(AskDaemon(folder_ / std::string(200, 'x'), {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ControlSocketTest, WhatAKillLeftIsReplaced) {
  WriteBytes(folder_ / "run/control.socket", "");
  const auto server = Serve();
  EXPECT_THAT(AskDaemon(folder_ / "run", {{"command", "x"}}), IsOk());
}

TEST_F(ControlSocketTest, RubbishIsLetGo) {
  const auto server = Serve();
  for (const char* bytes : {"", "\n", "no json\n", "[1]\n", "{\"half\":"}) SendRaw(bytes);
  EXPECT_THAT(AskDaemon(folder_ / "run", {{"command", "x"}}), IsOk());
}

}  // namespace
}  // namespace lockstep::worker
