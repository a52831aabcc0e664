// SPDX-License-Identifier: Apache-2.0
//
// What handlers see of HTTP: a request whose head was checked, and answers of the four kinds there
// are: text, bytes of a file, bytes made on the way, and a stream that somebody writes to. No
// sockets in here.
#ifndef LOCKSTEP_COORDINATOR_HTTP_MESSAGE_H_
#define LOCKSTEP_COORDINATOR_HTTP_MESSAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/bytes.h"
#include "coordinator/http/folder.h"

namespace lockstep::coordinator {

enum class HttpMethod { kGet, kHead, kPut };

struct HttpRequest {
  HttpMethod method = HttpMethod::kGet;
  std::string path;   // safe: IsSafePath (request_head.h)
  std::string query;  // what is behind "?", as sent; ParseQuery (request_head.h)
  std::string peer;   // the address at the other end of the connection; may be a proxy's
  uint64_t content_length = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  // The value of a header that is there exactly once. `name` is in lower case.
  std::optional<absl::string_view> Header(absl::string_view name) const;
};

// The server's end of an answer that has no end yet. Any thread may call.
class ResponseStream {
 public:
  virtual ~ResponseStream() = default;
  // Queues bytes to be sent. False, now and ever after, if the reader is gone, or has not kept up:
  // then the connection is closed rather than memory filled.
  virtual bool Write(std::string bytes) = 0;
  // Ends the answer after what is queued.
  virtual void Close() = 0;
};

struct FileBody {
  std::shared_ptr<const OpenFile> file;
  uint64_t begin = 0;
  uint64_t size = 0;
};

struct StreamBody {
  // Called once the head is on its way, on a handler's thread; whoever writes keeps the stream.
  std::function<void(std::shared_ptr<ResponseStream>)> start;
  std::string heartbeat;  // written where nothing else was for the server's heartbeat interval
};

// Bytes that are made while they are sent: for answers too long to hold.
struct GeneratedBody {
  // The next bytes, or none at the end. Called on a handler's thread when what it gave before was
  // sent. An error breaks the connection off, so that the reader sees that something is missing.
  std::function<absl::StatusOr<std::string>()> next;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string cache_control = "no-store";
  // Instead of "default-src 'none'; ..."; for pages.
  std::string content_security_policy = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
  bool cross_origin = false;  // pages of other origins may read it; set by the server, by route
  std::variant<std::string, FileBody, StreamBody, GeneratedBody> body = std::string();
};

// A line of text for people, with a line feed.
HttpResponse TextResponse(int status, absl::string_view text);

// Who takes the body of a PUT. Calls come one at a time, each on a thread where it may block.
// Destroyed without Finish: the body ended early.
class RequestBody {
 public:
  virtual ~RequestBody() = default;
  // An answer ends the request: the rest of the body is not read.
  virtual std::optional<HttpResponse> Write(ByteSpan bytes) = 0;
  virtual HttpResponse Finish() = 0;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_MESSAGE_H_
