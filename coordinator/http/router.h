// SPDX-License-Identifier: Apache-2.0
//
// Which handler answers which path. Filled before the server starts, and then only read.
#ifndef LOCKSTEP_COORDINATOR_HTTP_ROUTER_H_
#define LOCKSTEP_COORDINATOR_HTTP_ROUTER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "coordinator/http/message.h"

namespace lockstep::coordinator {

// Runs on a thread where it may block for a short while; several at once.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;
// Decides, on a thread where it may block, whether to take the body of a PUT, before it is sent.
using UploadAnswer = std::variant<HttpResponse, std::unique_ptr<RequestBody>>;
using UploadHandler = std::function<UploadAnswer(const HttpRequest&)>;

class Router {
 public:
  // Patterns are paths; one that ends in "/" stands for all below it, and the longest wins. GET
  // handlers answer HEAD too: the server leaves the body away. A pattern is given once a method.
  // kAny: pages of all origins may read what GET gives (public data; there are no cookies).
  enum class Origins { kOwn, kAny };
  void Get(const std::string& pattern, HttpHandler handler, Origins origins = Origins::kOwn);
  void Put(const std::string& pattern, UploadHandler handler);

  struct Route {
    std::string pattern;  // names the route in the metrics
    HttpHandler get;      // empty: not allowed
    UploadHandler put;
    Origins origins = Origins::kOwn;
  };
  // nullptr if no pattern fits.
  const Route* Find(absl::string_view path) const;

 private:
  std::map<std::string, Route> routes_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_ROUTER_H_
