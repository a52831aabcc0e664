// SPDX-License-Identifier: Apache-2.0
//
// What the server counts of itself, and the page where Prometheus reads everything that is counted.
// Labels have few values: routes are patterns, never paths.
#ifndef LOCKSTEP_COORDINATOR_HTTP_METRICS_H_
#define LOCKSTEP_COORDINATOR_HTTP_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "coordinator/http/message.h"

namespace lockstep::coordinator {

// Any thread may call.
class HttpMetrics {
 public:
  explicit HttpMetrics(std::shared_ptr<prometheus::Registry> registry);

  // `route` is a pattern, or "none".
  void CountRequest(const std::string& route, int status, absl::Duration duration);
  void CountSent(uint64_t bytes) { sent_.Increment(static_cast<double>(bytes)); }
  void CountReceived(uint64_t bytes) { received_.Increment(static_cast<double>(bytes)); }
  // Of connections: "full", "evicted", "address", "head_timeout", "body_timeout", "write_timeout",
  // "bad_request".
  void CountDropped(const std::string& reason);
  void SetConnections(size_t count) { connections_.Set(static_cast<double>(count)); }

 private:
  const std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Counter>& dropped_;
  prometheus::Counter& sent_;
  prometheus::Counter& received_;
  prometheus::Gauge& connections_;
};

// The answer to GET /metrics: all of the registry, in Prometheus's text format.
HttpResponse ServeMetrics(const prometheus::Registry& registry);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_METRICS_H_
