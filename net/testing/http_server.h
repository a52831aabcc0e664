// SPDX-License-Identifier: Apache-2.0
//
// A web server for tests, on a port of loopback that the system chooses: files with range requests,
// and whatever wrong answer a test wants instead. For tests only.
#ifndef LOCKSTEP_NET_TESTING_HTTP_SERVER_H_
#define LOCKSTEP_NET_TESTING_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::net::testing {

// The end of a range that has none.
inline constexpr uint64_t kToTheEnd = UINT64_MAX;

struct HttpRequest {
  std::string path;                                    // "/web/00000.tokens"
  std::optional<std::pair<uint64_t, uint64_t>> range;  // [begin, end)
  bool operator==(const HttpRequest&) const = default;
};

struct HttpReply {
  std::string bytes;  // as they go over the wire
  // And then: the next request, goodbye, a reset, silence, or a byte every ten milliseconds; the
  // last two until the other side gives up.
  enum { kKeep, kClose, kReset, kStall, kDrip } then = kKeep;
};

// "HTTP/1.1 CODE x", a length, further header lines ("A: b\r\n"), and the body.
HttpReply MakeReply(int code, const std::string& body, const std::string& headers = "");
// 206 for bytes begin ... begin + body.size() - 1 of a file of `size` bytes.
HttpReply MakePartialReply(const std::string& body, uint64_t begin, uint64_t size);

class HttpServer {
 public:
  // `fault` may answer in the server's stead; it is called by several threads.
  using Fault = std::function<std::optional<HttpReply>(const HttpRequest&)>;
  explicit HttpServer(std::map<std::string, std::string> files, Fault fault = nullptr);
  ~HttpServer();

  std::string address() const;  // "http://127.0.0.1:PORT"
  std::vector<HttpRequest> requests() const;
  int connections() const;

 private:
  void Accept();
  void Serve(int fd);
  HttpReply Answer(const HttpRequest& request) const;

  const std::map<std::string, std::string> files_;
  const Fault fault_;
  int listener_ = -1;
  int port_ = 0;
  std::thread acceptor_;
  mutable std::mutex mutex_;  // over all that follows
  bool stopping_ = false;
  int connections_ = 0;
  std::set<int> open_;
  std::vector<std::thread> threads_;
  std::vector<HttpRequest> requests_;
};

}  // namespace lockstep::net::testing

#endif  // LOCKSTEP_NET_TESTING_HTTP_SERVER_H_
