// SPDX-License-Identifier: Apache-2.0
//
// See metrics.h.
#include "coordinator/http/metrics.h"

#include <prometheus/text_serializer.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::coordinator {
namespace {

template <typename Builder>
auto& Make(Builder builder, const char* name, const char* help, prometheus::Registry& registry) {
  return builder.Name(name).Help(help).Register(registry);
}

}  // namespace

HttpMetrics::HttpMetrics(std::shared_ptr<prometheus::Registry> registry)
    : registry_(std::move(registry)),
      requests_(Make(prometheus::BuildCounter(), "lockstep_http_requests_total",
                     "Requests answered, by route and status code.", *registry_)),
      seconds_(Make(prometheus::BuildHistogram(), "lockstep_http_request_seconds",
                    "Time from a request's head to the end of its answer, by route.", *registry_)),
      dropped_(Make(prometheus::BuildCounter(), "lockstep_http_connections_dropped_total",
                    "Connections that the server refused or gave up, by reason.", *registry_)),
      sent_(Make(prometheus::BuildCounter(), "lockstep_http_sent_bytes_total",
                 "Bytes of answers' bodies sent.", *registry_)
                .Add({})),
      received_(Make(prometheus::BuildCounter(), "lockstep_http_received_bytes_total",
                     "Bytes of requests' bodies received.", *registry_)
                    .Add({})),
      connections_(Make(prometheus::BuildGauge(), "lockstep_http_connections",
                        "Connections open now.", *registry_)
                       .Add({})) {}

void HttpMetrics::CountRequest(const std::string& route, int status, absl::Duration duration) {
  requests_.Add({{"route", route}, {"code", absl::StrCat(status)}}).Increment();
  seconds_
      .Add({{"route", route}},
           prometheus::Histogram::BucketBoundaries{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600})
      .Observe(absl::ToDoubleSeconds(duration));
}

void HttpMetrics::CountDropped(const std::string& reason) {
  dropped_.Add({{"reason", reason}}).Increment();
}

HttpResponse ServeMetrics(const prometheus::Registry& registry) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = prometheus::TextSerializer().Serialize(registry.Collect())};
}

}  // namespace lockstep::coordinator
