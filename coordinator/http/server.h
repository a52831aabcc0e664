// SPDX-License-Identifier: Apache-2.0
//
// An HTTP/1.1 server for bulk bytes and small pages, to stand on loopback or behind a proxy that
// does TLS (docs/artifacts.md). One thread minds all sockets; handlers, files and uploads have
// threads of their own. Nothing a stranger sends makes it use more than the limits below.
#ifndef LOCKSTEP_COORDINATOR_HTTP_SERVER_H_
#define LOCKSTEP_COORDINATOR_HTTP_SERVER_H_

#include <prometheus/registry.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/http/router.h"

namespace lockstep::coordinator {

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // of this machine, in numbers
  uint16_t port = 0;                  // 0: the system chooses one

  // A new connection beyond these takes the place of the one that has waited longest without a
  // whole request; if all are at work, it is answered 503.
  size_t connections_max = 2048;
  // Of one address; more are closed at once. Not of loopback, where a proxy stands, unless said so.
  size_t connections_per_address_max = 256;
  bool limit_loopback = false;
  size_t streams_max = 512;  // answers without an end at the same time; more get 503

  size_t head_bytes_max = 16 << 10;                        // of a request; more is 431
  absl::Duration idle_timeout = absl::Seconds(60);         // for a request's first byte
  absl::Duration head_timeout = absl::Seconds(10);         // from there to the head's end
  absl::Duration body_stall_timeout = absl::Seconds(20);   // without a byte of an upload
  absl::Duration write_stall_timeout = absl::Seconds(30);  // in which the reader takes nothing
  // Of uploads and of readers of answers, on average, after the first stall timeout.
  int64_t bytes_per_second_min = 1024;
  size_t stream_bytes_max = 256 << 10;  // queued for a reader of a stream who does not keep up
  absl::Duration heartbeat = absl::Seconds(15);

  int handler_threads = 4;  // also send files, piece by piece
  int upload_threads = 2;
  std::shared_ptr<prometheus::Registry> registry;  // where it counts; not null
};

class HttpServer {
 public:
  // Listens, and answers from now on. Errors: the address is taken, or none of this machine's.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                           Router router);
  // As Stop with no patience.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;

  // Takes no more connections, closes those without a request, ends streams, and lets answers and
  // uploads under way go on for up to `patience`; then closes all and waits for the handlers that
  // run. Called once.
  void Stop(absl::Duration patience);

 private:
  class Core;
  explicit HttpServer(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_SERVER_H_
