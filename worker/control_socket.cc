// SPDX-License-Identifier: Apache-2.0
//
// Lines over a Unix socket.
#include "worker/control_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/status.h"

namespace lockstep::worker {
namespace {

constexpr size_t kLineBytesMax = size_t{1} << 20;
constexpr absl::Duration kRequestTimeout = absl::Seconds(2);

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("runtime_folder: expected a path of the control socket below ",
                     sizeof(address.sun_path), " bytes; found ", path));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// False once the time is up or the other side fails.
bool WaitFor(int fd, short events, absl::Duration deadline) {
  const absl::Duration left = deadline - RealClock().Monotonic();
  if (left <= absl::ZeroDuration()) return false;
  pollfd poll_fd = {.fd = fd, .events = events, .revents = 0};
  return ::poll(&poll_fd, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) > 0;
}

bool SendAll(int fd, absl::string_view text, absl::Duration deadline) {
  while (!text.empty()) {
    if (!WaitFor(fd, POLLOUT, deadline)) return false;
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// A line without its end; empty if none came.
std::string ReceiveLine(int fd, absl::Duration deadline) {
  std::string line;
  char buffer[4096];
  while (line.size() < kLineBytesMax && WaitFor(fd, POLLIN, deadline)) {
    const ssize_t got = ::recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) break;
    line.append(buffer, static_cast<size_t>(got));
    if (const size_t end = line.find('\n'); end != std::string::npos) return line.substr(0, end);
  }
  return "";
}

std::string Line(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlServer>> ControlServer::Start(const std::string& folder,
                                                                    Handler handler,
                                                                    std::function<void()> idle) {
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(folder));
  if (::chmod(folder.c_str(), 0700) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("make ", folder, " its owner's only"));
  }
  const std::string path = absl::StrCat(folder, "/", kControlSocketName);
  LOCKSTEP_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::ErrnoToStatus(errno, "control socket");
  ::unlink(path.c_str());
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(fd, 8) != 0) {
    const int error = errno;
    ::close(fd);
    return absl::ErrnoToStatus(error, absl::StrCat("listen at ", path));
  }
  std::unique_ptr<ControlServer> server(
      new ControlServer(path, fd, std::move(handler), std::move(idle)));
  server->thread_ = std::thread([raw = server.get()] { raw->Serve(); });
  return server;
}

ControlServer::~ControlServer() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  ::close(fd_);
  ::unlink(path_.c_str());
}

void ControlServer::Serve() {
  absl::Duration idle_at = RealClock().Monotonic();
  while (!stop_) {
    if (idle_ && RealClock().Monotonic() >= idle_at) {
      idle_();
      idle_at = RealClock().Monotonic() + absl::Seconds(1);
    }
    if (!WaitFor(fd_, POLLIN, RealClock().Monotonic() + absl::Milliseconds(100))) continue;
    const int connection = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    Answer(connection);
    ::close(connection);
  }
}

void ControlServer::Answer(int connection) {
  const absl::Duration deadline = RealClock().Monotonic() + kRequestTimeout;
  const std::string answer = AnswerTo(ReceiveLine(connection, deadline), handler_);
  SendAll(connection, answer, RealClock().Monotonic() + kRequestTimeout);
}

std::string AnswerTo(absl::string_view line, const ControlServer::Handler& handler) {
  const nlohmann::json request =
      nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  return request.is_object() ? Line(handler(request)) : "";
}

std::string CommandOf(const nlohmann::json& request) {
  const auto command = request.find("command");
  return command != request.end() && command->is_string() ? command->get<std::string>() : "";
}

absl::StatusOr<nlohmann::json> AskDaemon(const std::string& folder, const nlohmann::json& request,
                                         absl::Duration timeout) {
  const std::string path = absl::StrCat(folder, "/", kControlSocketName);
  LOCKSTEP_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::ErrnoToStatus(errno, "control socket");
  const absl::Cleanup close = [fd] { ::close(fd); };
  const absl::Duration deadline = RealClock().Monotonic() + timeout;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::UnavailableError(
        absl::StrCat("no daemon listens at ", path, "; `lockstep-worker run` starts one"));
  }
  if (!SendAll(fd, Line(request), deadline)) {
    return absl::UnavailableError(absl::StrCat("the daemon at ", path, " does not listen"));
  }
  nlohmann::json answer = nlohmann::json::parse(ReceiveLine(fd, deadline), nullptr,
                                                /*allow_exceptions=*/false);
  if (!answer.is_object()) {
    return absl::DataLossError(absl::StrCat(path, ": expected a JSON object for an answer"));
  }
  return answer;
}

}  // namespace lockstep::worker
