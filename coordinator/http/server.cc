// SPDX-License-Identifier: Apache-2.0
//
// Listening, limits on connections, and the end. See server.h.
#include "coordinator/http/server.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/logging.h"
#include "coordinator/http/connection.h"
#include "coordinator/http/metrics.h"
#include "coordinator/http/response_head.h"

namespace lockstep::coordinator {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr size_t kFilesBesideConnections = 1024;

// sendfile has no way to ask for an error instead of a signal; threads started meanwhile have the
// signal blocked.
class PipeSignalBlocked {
 public:
  PipeSignalBlocked() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~PipeSignalBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// As many descriptors as the connections may need, if the system lets us.
void RaiseFileLimit(size_t connections_max) {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = 2 * connections_max + kFilesBesideConnections;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted) {
    LOCKSTEP_LOG_WARNING("http: expected to be allowed {} open files, found {}; raise ulimit -n",
                         wanted, limit.rlim_cur);
  }
}

}  // namespace

class HttpServer::Core {
 public:
  Core(const HttpServerOptions& options, Router router)
      : options_(options),
        router_(std::move(router)),
        metrics_(options.registry),
        acceptor_(io_),
        accept_pause_(io_) {}
  ~Core() { Stop(absl::ZeroDuration()); }

  absl::Status Start();
  uint16_t port() const { return port_; }
  void Stop(absl::Duration patience);

 private:
  absl::Status Listen();
  void Accept();
  void OnAccept(error_code error, tcp::socket socket);
  void Welcome(tcp::socket socket);
  bool MakeRoom();
  void ForEachConnection(void (Connection::*call)());

  const HttpServerOptions options_;
  const Router router_;
  HttpMetrics metrics_;
  asio::io_context io_{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> keep_running_;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_pause_;
  std::optional<asio::thread_pool> handlers_, uploads_;
  std::optional<ServerState> state_;
  std::thread thread_;
  uint16_t port_ = 0;
  std::mutex mutex_;  // over the next two
  std::condition_variable emptied_;
  bool empty_ = false;
};

absl::Status HttpServer::Core::Listen() {
  error_code error;
  const auto address = asio::ip::make_address(options_.address, error);
  const std::string where = absl::StrCat(options_.address, ", port ", options_.port);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected an address in numbers, found \"", options_.address, "\""));
  }
  const tcp::endpoint endpoint(address, options_.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("listen on ", where));
  port_ = acceptor_.local_endpoint(error).port();
  return absl::OkStatus();
}

absl::Status HttpServer::Core::Start() {
  if (absl::Status status = Listen(); !status.ok()) return status;
  RaiseFileLimit(options_.connections_max);
  const PipeSignalBlocked blocked;
  handlers_.emplace(std::max(options_.handler_threads, 1));
  uploads_.emplace(std::max(options_.upload_threads, 1));
  state_.emplace(ServerState{.options = options_,
                             .router = router_,
                             .metrics = metrics_,
                             .io = io_,
                             .handlers = *handlers_,
                             .uploads = *uploads_});
  keep_running_.emplace(io_.get_executor());
  Accept();
  thread_ = std::thread([this] { io_.run(); });
  return absl::OkStatus();
}

void HttpServer::Core::Accept() {
  acceptor_.async_accept(
      [this](error_code error, tcp::socket socket) { OnAccept(error, std::move(socket)); });
}

void HttpServer::Core::OnAccept(error_code error, tcp::socket socket) {
  if (!acceptor_.is_open()) return;
  if (error == asio::error::no_descriptors || error == asio::error::no_buffer_space ||
      error == asio::error::no_memory || error.value() == ENFILE) {
    // Somebody has to go before the next can come.
    MakeRoom();
    accept_pause_.expires_after(kAcceptPause);
    accept_pause_.async_wait([this](error_code canceled) {
      if (!canceled && acceptor_.is_open()) Accept();
    });
    return;
  }
  if (!error) Welcome(std::move(socket));
  Accept();
}

// Closes the connection that has waited longest without a whole request. False if none waits.
bool HttpServer::Core::MakeRoom() {
  if (state_->waiting.empty()) return false;
  metrics_.CountDropped("evicted");
  state_->waiting.front()->End();
  return true;
}

void HttpServer::Core::Welcome(tcp::socket socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;  // gone already
  const std::string address = peer.address().to_string();
  if (options_.limit_loopback || !peer.address().is_loopback()) {
    const auto count = state_->by_address.find(address);
    if (count != state_->by_address.end() &&
        count->second >= options_.connections_per_address_max) {
      metrics_.CountDropped("address");
      return;
    }
  }
  if (state_->connections.size() >= options_.connections_max && !MakeRoom()) {
    metrics_.CountDropped("full");
    HttpResponse busy = TextResponse(503, "all connections are in use; try again later");
    busy.headers.emplace_back("Retry-After", "5");
    const std::string& text = std::get<std::string>(busy.body);
    const std::string bytes =
        FormatResponseHead(busy, {.content_length = text.size(), .keep_alive = false},
                           absl::Now()) +
        text;
    ::send(socket.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return;
  }
  auto connection = std::make_shared<Connection>(*state_, std::move(socket), address);
  state_->connections.insert(connection);
  ++state_->by_address[address];
  metrics_.SetConnections(state_->connections.size());
  connection->Start();
}

void HttpServer::Core::ForEachConnection(void (Connection::*call)()) {
  const std::vector<std::shared_ptr<Connection>> all(state_->connections.begin(),
                                                     state_->connections.end());
  for (const auto& connection : all) (connection.get()->*call)();
}

void HttpServer::Core::Stop(absl::Duration patience) {
  if (!thread_.joinable()) return;
  asio::post(io_, [this] {
    error_code ignored;
    acceptor_.close(ignored);
    accept_pause_.cancel();
    state_->stopping = true;
    state_->when_empty = [this] {
      const std::lock_guard<std::mutex> lock(mutex_);
      empty_ = true;
      emptied_.notify_all();
    };
    ForEachConnection(&Connection::OnStopping);
    if (state_->connections.empty()) state_->when_empty();
  });
  {
    std::unique_lock<std::mutex> lock(mutex_);
    emptied_.wait_for(lock, absl::ToChronoNanoseconds(patience), [this] { return empty_; });
  }
  asio::post(io_, [this] { ForEachConnection(&Connection::End); });
  {
    std::unique_lock<std::mutex> lock(mutex_);
    emptied_.wait(lock, [this] { return empty_; });
  }
  handlers_->join();
  uploads_->join();
  keep_running_.reset();
  thread_.join();
}

HttpServer::HttpServer(std::unique_ptr<Core> core) : core_(std::move(core)) {}
HttpServer::~HttpServer() = default;
uint16_t HttpServer::port() const { return core_->port(); }
void HttpServer::Stop(absl::Duration patience) { core_->Stop(patience); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                              Router router) {
  auto core = std::make_unique<Core>(options, std::move(router));
  if (absl::Status status = core->Start(); !status.ok()) return status;
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(core)));
}

}  // namespace lockstep::coordinator
