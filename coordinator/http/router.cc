// SPDX-License-Identifier: Apache-2.0
//
// See router.h.
#include "coordinator/http/router.h"

#include <utility>

#include "base/logging.h"

namespace lockstep::coordinator {

void Router::Get(const std::string& pattern, HttpHandler handler, Origins origins) {
  Route& route = routes_[pattern];
  LOCKSTEP_CHECK(!route.get, "{} has two handlers", pattern);
  route.pattern = pattern;
  route.get = std::move(handler);
  route.origins = origins;
}

void Router::Put(const std::string& pattern, UploadHandler handler) {
  Route& route = routes_[pattern];
  LOCKSTEP_CHECK(!route.put, "{} has two handlers", pattern);
  route.pattern = pattern;
  route.put = std::move(handler);
}

const Router::Route* Router::Find(absl::string_view path) const {
  std::string pattern(path);
  if (const auto exact = routes_.find(pattern); exact != routes_.end()) return &exact->second;
  // "/a/b/c", then "/a/b/", "/a/", "/".
  while (!pattern.empty()) {
    const size_t slash = pattern.rfind('/', pattern.size() - 2);
    if (slash == std::string::npos) return nullptr;
    pattern.resize(slash + 1);
    if (const auto below = routes_.find(pattern); below != routes_.end()) return &below->second;
    if (slash == 0) return nullptr;
  }
  return nullptr;
}

}  // namespace lockstep::coordinator
