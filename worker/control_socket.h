// SPDX-License-Identifier: Apache-2.0
//
// How the other commands talk to the running daemon: a socket in a folder that only its owner can
// enter. One JSON object on a line there, one back, and the connection ends.
#ifndef LOCKSTEP_WORKER_CONTROL_SOCKET_H_
#define LOCKSTEP_WORKER_CONTROL_SOCKET_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace lockstep::worker {

inline constexpr char kControlSocketName[] = "control.socket";

class ControlServer {
 public:
  using Handler = std::function<nlohmann::json(const nlohmann::json& request)>;

  // Makes the folder (mode 0700) if need be, and takes the place of a socket that a kill left: the
  // caller holds the daemon's lock. `handler` runs on the server's thread, one request at a time;
  // `idle`, may be empty, there too, about each second. InvalidArgument if the path is too long for
  // a socket.
  static absl::StatusOr<std::unique_ptr<ControlServer>> Start(const std::string& folder,
                                                              Handler handler,
                                                              std::function<void()> idle);
  // Ends the thread and removes the socket.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  ControlServer(std::string path, int fd, Handler handler, std::function<void()> idle)
      : path_(std::move(path)), fd_(fd), handler_(std::move(handler)), idle_(std::move(idle)) {}
  void Serve();
  void Answer(int connection);

  const std::string path_;
  const int fd_;
  const Handler handler_;
  const std::function<void()> idle_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// What is answered to a line, with the newline; empty: nothing, since it is no JSON object. The
// line is a stranger's.
std::string AnswerTo(absl::string_view line, const ControlServer::Handler& handler);

// The command of a request; empty if there is none.
std::string CommandOf(const nlohmann::json& request);

// Unavailable if no daemon listens there; DataLoss for an answer that is no JSON object.
absl::StatusOr<nlohmann::json> AskDaemon(const std::string& folder, const nlohmann::json& request,
                                         absl::Duration timeout = absl::Seconds(10));

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CONTROL_SOCKET_H_
