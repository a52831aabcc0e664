// SPDX-License-Identifier: Apache-2.0
//
// GET /healthz and GET /metrics.
#ifndef LOCKSTEP_COORDINATOR_HTTP_HEALTH_H_
#define LOCKSTEP_COORDINATOR_HTTP_HEALTH_H_

#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "coordinator/http/metrics.h"
#include "coordinator/http/router.h"

namespace lockstep::coordinator {

// 200 "ok" while `health` is OK; otherwise 503. Why is for the server's log: strangers see this.
inline void ServeHealth(std::function<absl::Status()> health, Router& router) {
  router.Get("/healthz", [health = std::move(health)](const HttpRequest&) {
    return health().ok() ? TextResponse(200, "ok")
                         : TextResponse(503, "not serving; the server's log says why");
  });
}

inline void ServeMetrics(std::shared_ptr<const prometheus::Registry> registry, Router& router) {
  router.Get("/metrics", [registry = std::move(registry)](const HttpRequest&) {
    return ServeMetrics(*registry);
  });
}

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_HEALTH_H_
