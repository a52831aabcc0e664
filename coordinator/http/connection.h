// SPDX-License-Identifier: Apache-2.0
//
// One connection of the server: a request's head, perhaps its body, its answer, and again. Private
// to the server: all but what says otherwise runs on the thread that minds the sockets, and no two
// steps of one connection at a time.
#ifndef LOCKSTEP_COORDINATOR_HTTP_CONNECTION_H_
#define LOCKSTEP_COORDINATOR_HTTP_CONNECTION_H_

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "coordinator/http/message.h"
#include "coordinator/http/metrics.h"
#include "coordinator/http/request_head.h"
#include "coordinator/http/router.h"
#include "coordinator/http/server.h"

namespace lockstep::coordinator {

class Connection;
class QueuedStream;

// What the connections of a server share. Of the thread that minds the sockets.
struct ServerState {
  const HttpServerOptions& options;
  const Router& router;
  HttpMetrics& metrics;
  boost::asio::io_context& io;
  boost::asio::thread_pool& handlers;
  boost::asio::thread_pool& uploads;
  std::function<void()> when_empty = nullptr;  // called when the last connection has gone
  bool stopping = false;
  size_t streams = 0;
  std::set<std::shared_ptr<Connection>> connections = {};
  std::map<std::string, size_t> by_address = {};
  std::list<Connection*> waiting = {};  // for a request, whole or not; longest first
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ServerState& state, boost::asio::ip::tcp::socket socket, std::string peer);
  ~Connection();

  void Start();
  // Breaks off whatever is under way.
  void End();
  // The server stops: no further request is taken.
  void OnStopping();

 private:
  friend class QueuedStream;
  using Next = void (Connection::*)();

  void ReadHead();
  void ReadHeadBytes();
  bool TakeHead();
  void Dispatch(RequestHead head);
  void RunHandler();
  void OpenUpload();
  void SendContinue();
  void ReadBody();
  void WriteBody();
  void FinishBody();
  void Respond(HttpResponse response);
  void SendBytes(std::string bytes, Next next);
  void SendMoreBytes();
  void SendBody();
  void SendFile();
  void OnFileSent(uint64_t sent, int error);
  void SendGenerated();
  void StartStream();
  void WatchReader();
  void ArmHeartbeat();
  void FlushStream();
  void OnStreamSent();
  void FinishResponse();
  void Linger();

  // A timer for the step under way; `reason` is counted if it runs out, and the connection ends.
  void Arm(absl::Duration patience, const char* reason);
  void ArmTransfer(absl::Duration stall, const char* reason);
  void Disarm();
  bool Failed(const boost::system::error_code& error);
  void SetWaiting(bool waiting);
  // Runs `work` on a pool's thread, then `then` with its result here, unless the connection ended.
  template <typename Work, typename Then>
  void RunOn(boost::asio::thread_pool& pool, Work work, Then then);

  ServerState& state_;
  boost::asio::ip::tcp::socket socket_;
  const std::string peer_;
  boost::asio::steady_timer deadline_;
  uint64_t deadline_count_ = 0;  // tells a timer that was set anew from the one before
  const char* deadline_reason_ = "";
  bool ended_ = false;
  std::optional<std::list<Connection*>::iterator> waiting_;

  std::string buffer_;   // read, and not used yet
  size_t searched_ = 0;  // in buffer_, for a head's end
  // The request.
  HttpRequest request_;
  const Router::Route* route_ = nullptr;
  bool http_1_1_ = true;
  bool keep_alive_ = true;
  bool unread_body_ = false;
  bool expects_continue_ = false;
  absl::Duration started_;  // RealClock().Monotonic()
  std::unique_ptr<RequestBody> body_;
  uint64_t body_left_ = 0;
  std::string body_bytes_;
  // Of the body or the answer under way, for the least speed.
  absl::Duration transfer_started_;
  uint64_t transferred_ = 0;
  // The answer.
  HttpResponse response_;
  std::string out_;
  size_t out_sent_ = 0;
  Next after_out_ = nullptr;
  uint64_t file_sent_ = 0;
  bool generated_all_ = false;
  std::shared_ptr<QueuedStream> stream_;
  std::string heartbeat_text_;
  boost::asio::steady_timer heartbeat_;
  bool stream_busy_ = false;   // being sent
  bool stream_quiet_ = false;  // nothing sent since the last heartbeat
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_CONNECTION_H_
