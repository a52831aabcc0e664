// SPDX-License-Identifier: Apache-2.0
//
// A client of bare bytes over loopback, that can be as rude as a test wants. For tests only.
#ifndef LOCKSTEP_COORDINATOR_HTTP_TESTING_RAW_CLIENT_H_
#define LOCKSTEP_COORDINATOR_HTTP_TESTING_RAW_CLIENT_H_

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/logging.h"

namespace lockstep::coordinator::testing {

struct RawResponse {
  int status = 0;  // 0: the server closed before it had answered
  std::string head;
  std::string body;

  // The value of a header that is there once, or "".
  std::string Header(absl::string_view name) const {
    for (absl::string_view line : absl::StrSplit(head, "\r\n")) {
      const std::pair<absl::string_view, absl::string_view> both =
          absl::StrSplit(line, absl::MaxSplits(": ", 1));
      if (absl::AsciiStrToLower(both.first) == absl::AsciiStrToLower(name)) {
        return std::string(both.second);
      }
    }
    return "";
  }
};

class RawClient {
 public:
  // `receive_bytes`: of the socket's buffer; 0: as the system likes.
  explicit RawClient(uint16_t port, int receive_bytes = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_bytes > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    }
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int connected = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    LOCKSTEP_CHECK(fd_ >= 0 && connected == 0, "no connection");
  }
  ~RawClient() { Close(); }
  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}
  RawClient& operator=(RawClient&&) = delete;

  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  // Goodbye without ceremony.
  void Reset() {
    const linger at_once = {1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    Close();
  }

  // False if the other side does not take it.
  bool Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Waits for the next bytes; false at the end, or after `timeout_ms` without one.
  bool Receive(int timeout_ms = 20000) {
    pollfd ready = {fd_, POLLIN, 0};
    if (::poll(&ready, 1, timeout_ms) != 1) return false;
    char bytes[16384];
    const ssize_t got = ::recv(fd_, bytes, sizeof(bytes), 0);
    if (got <= 0) return false;
    buffer_.append(bytes, static_cast<size_t>(got));
    return true;
  }
  // What has come and was not taken yet.
  std::string& buffer() { return buffer_; }

  // Whether the server closes before `timeout_ms` pass without a byte.
  bool IsClosed(int timeout_ms = 20000) {
    while (true) {
      pollfd ready = {fd_, POLLIN, 0};
      if (::poll(&ready, 1, timeout_ms) != 1) return false;
      char byte[4096];
      if (::recv(fd_, byte, sizeof(byte), 0) <= 0) return true;
    }
  }

  bool ReceiveUntil(absl::string_view text) {
    while (buffer_.find(std::string(text)) == std::string::npos) {
      if (!Receive()) return false;
    }
    return true;
  }

  // One answer, with its body of Content-Length bytes unless `has_body` is false.
  RawResponse ReadResponse(bool has_body = true) {
    RawResponse response;
    if (!ReceiveUntil("\r\n\r\n")) return response;
    const size_t end = buffer_.find("\r\n\r\n") + 4;
    response.head = buffer_.substr(0, end);
    buffer_.erase(0, end);
    LOCKSTEP_CHECK(absl::SimpleAtoi(response.head.substr(9, 3), &response.status));
    size_t length = 0;
    if (!has_body || !absl::SimpleAtoi(response.Header("content-length"), &length)) return response;
    while (buffer_.size() < length && Receive()) {
    }
    response.body = buffer_.substr(0, length);
    buffer_.erase(0, std::min(length, buffer_.size()));
    return response;
  }

  RawResponse Get(absl::string_view path, absl::string_view headers = "") {
    Send(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n", headers, "\r\n"));
    return ReadResponse();
  }

  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  std::string buffer_;
};

}  // namespace lockstep::coordinator::testing

#endif  // LOCKSTEP_COORDINATOR_HTTP_TESTING_RAW_CLIENT_H_
