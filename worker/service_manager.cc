// SPDX-License-Identifier: Apache-2.0
//
// Datagrams to the service manager.
#include "worker/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"

namespace lockstep::worker {

ServiceManager ServiceManager::FromEnvironment() {
  ServiceManager manager;
  if (const char* const socket = std::getenv("NOTIFY_SOCKET")) manager.socket_ = socket;
  int64_t microseconds = 0;
  int pid = 0;
  const char* const watchdog = std::getenv("WATCHDOG_USEC");
  const char* const watched = std::getenv("WATCHDOG_PID");
  const bool ours = watched == nullptr || (absl::SimpleAtoi(watched, &pid) && pid == ::getpid());
  if (watchdog != nullptr && ours && absl::SimpleAtoi(watchdog, &microseconds) &&
      microseconds > 0) {
    manager.watchdog_ = absl::Microseconds(microseconds);
  }
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
  return manager;
}

void ServiceManager::Notify(absl::string_view message) const {
  sockaddr_un address{};
  if (socket_.size() < 2 || socket_.size() >= sizeof(address.sun_path)) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // an abstract one
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  ::sendto(fd, message.data(), message.size(), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address), length);
  ::close(fd);
}

}  // namespace lockstep::worker
