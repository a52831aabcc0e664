// SPDX-License-Identifier: Apache-2.0
//
// Sockets and a little of HTTP/1.1. See http_server.h.
#include "net/testing/http_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/logging.h"

namespace lockstep::net::testing {
namespace {

// Up to the blank line; nullopt when the other side has closed.
std::optional<std::string> ReadHead(int fd) {
  std::string head;
  char byte;
  while (!absl::EndsWith(head, "\r\n\r\n")) {
    if (::recv(fd, &byte, 1, 0) != 1) return std::nullopt;
    head.push_back(byte);
  }
  return head;
}

HttpRequest ParseHead(const std::string& head) {
  HttpRequest request;
  const std::vector<std::string> lines = absl::StrSplit(head, "\r\n");
  const std::vector<std::string> words = absl::StrSplit(lines[0], ' ');
  request.path = words.size() > 1 ? words[1] : "";
  for (absl::string_view line : lines) {
    if (!absl::ConsumePrefix(&line, "Range: bytes=")) continue;
    const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(line, '-');
    uint64_t first = 0, last = kToTheEnd - 1;
    LOCKSTEP_CHECK(absl::SimpleAtoi(ends.first, &first) &&
                   (ends.second.empty() || absl::SimpleAtoi(ends.second, &last)));
    request.range = {first, last + 1};
  }
  return request;
}

}  // namespace

HttpReply MakeReply(int code, const std::string& body, const std::string& headers) {
  return {absl::StrCat("HTTP/1.1 ", code, " x\r\nContent-Length: ", body.size(), "\r\n", headers,
                       "\r\n", body)};
}

HttpReply MakePartialReply(const std::string& body, uint64_t begin, uint64_t size) {
  return MakeReply(206, body,
                   absl::StrCat("Content-Range: bytes ", begin, "-", begin + body.size() - 1, "/",
                                size, "\r\n"));
}

HttpServer::HttpServer(std::map<std::string, std::string> files, Fault fault)
    : files_(std::move(files)), fault_(std::move(fault)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  LOCKSTEP_CHECK(::bind(listener_, generic, size) == 0 && ::listen(listener_, 64) == 0 &&
                 ::getsockname(listener_, generic, &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

HttpServer::~HttpServer() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    for (int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  ::close(listener_);
}

std::string HttpServer::address() const { return absl::StrCat("http://127.0.0.1:", port_); }

std::vector<HttpRequest> HttpServer::requests() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return requests_;
}

int HttpServer::connections() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return connections_;
}

void HttpServer::Accept() {
  while (true) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) {
      ::close(fd);
      return;
    }
    ++connections_;
    open_.insert(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void HttpServer::Serve(int fd) {
  while (const std::optional<std::string> head = ReadHead(fd)) {
    const HttpRequest request = ParseHead(*head);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      requests_.push_back(request);
    }
    std::optional<HttpReply> reply;
    if (fault_) reply = fault_(request);
    if (!reply) reply = Answer(request);
    size_t sent = 0;
    while (sent < reply->bytes.size()) {
      const ssize_t n =
          ::send(fd, reply->bytes.data() + sent, reply->bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) break;
      sent += static_cast<size_t>(n);
    }
    if (reply->then == HttpReply::kClose) break;
    if (reply->then == HttpReply::kReset) {
      const linger at_once = {1, 0};
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      break;
    }
    pollfd other = {fd, POLLIN, 0};
    while (reply->then == HttpReply::kDrip && ::poll(&other, 1, 10) == 0) {
      ::send(fd, "x", 1, MSG_NOSIGNAL);
    }
    if (reply->then == HttpReply::kDrip) break;
    char byte;
    if (reply->then == HttpReply::kStall && ::recv(fd, &byte, 1, 0) <= 0) break;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  open_.erase(fd);
  ::close(fd);
}

HttpReply HttpServer::Answer(const HttpRequest& request) const {
  const auto file = files_.find(request.path);
  if (file == files_.end()) return MakeReply(404, "no such file");
  const std::string& bytes = file->second;
  if (!request.range) return MakeReply(200, bytes);
  const auto [begin, end] = *request.range;
  if (begin >= bytes.size()) {
    return MakeReply(416, "", absl::StrCat("Content-Range: bytes */", bytes.size(), "\r\n"));
  }
  return MakePartialReply(bytes.substr(begin, end - begin), begin, bytes.size());
}

}  // namespace lockstep::net::testing
