// SPDX-License-Identifier: Apache-2.0
#include "worker/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/testing/temporary_folder.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

TEST(ServiceManager, SpeaksToTheSocketThatIsNamed) {
  const TemporaryFolder folder;
  const std::string path = folder / "notify";
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  setenv("WATCHDOG_USEC", "30000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  const ServiceManager manager = ServiceManager::FromEnvironment();
  EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
  EXPECT_EQ(manager.watchdog(), absl::Seconds(30));
  manager.Notify("READY=1");
  char buffer[64];
  const ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
  ASSERT_GT(got, 0);
  EXPECT_EQ(std::string(buffer, static_cast<size_t>(got)), "READY=1");
  close(fd);
}

TEST(ServiceManager, NoManagerAndAnothersWatchdog) {
  unsetenv("NOTIFY_SOCKET");
  setenv("WATCHDOG_USEC", "30000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  const ServiceManager manager = ServiceManager::FromEnvironment();
  EXPECT_EQ(manager.watchdog(), std::nullopt);
  manager.Notify("READY=1");
}

}  // namespace
}  // namespace lockstep::worker
