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

// 200 "ok" while `health` is OK; otherwise 503 with its message, which strangers see.
inline void ServeHealth(std::function<absl::Status()> health, Router& router) {
  router.Get("/healthz", [health = std::move(health)](const HttpRequest&) {
    const absl::Status status = health();
    return status.ok() ? TextResponse(200, "ok") : TextResponse(503, status.message());
  });
}

inline void ServeMetrics(std::shared_ptr<const prometheus::Registry> registry, Router& router) {
  router.Get("/metrics", [registry = std::move(registry)](const HttpRequest&) {
    return ServeMetrics(*registry);
  });
}

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_HEALTH_H_
