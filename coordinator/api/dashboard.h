// SPDX-License-Identifier: Apache-2.0
//
// The dashboard's files (web/, as built): held in memory, compressed beforehand, with a policy that
// lets their page load nothing from elsewhere. A name that is asked for is looked up among those
// that were read at the start, and never on the disk.

#ifndef LOCKSTEP_COORDINATOR_API_DASHBOARD_H_
#define LOCKSTEP_COORDINATOR_API_DASHBOARD_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/http/router.h"

namespace lockstep::coordinator {

// By path from the build's folder: "index.html", "assets/index-4f2a.js", ...
using DashboardFiles = std::map<std::string, std::string>;

// Those that were there when the program was built; none if the dashboard was not.
DashboardFiles BuiltInDashboard();

// All regular files below a folder. Links are not followed; names that no path of a request may
// have are left out. ResourceExhausted beyond 1,000 files or 64 MiB; NotFound without index.html.
absl::StatusOr<DashboardFiles> ReadDashboard(const std::string& folder);

// Serves what nobody else does. Without index.html: a page that says how to build the dashboard.
void ServeDashboard(DashboardFiles files, Router& router);

// gzip, at the best level, without a time.
std::string Gzip(absl::string_view bytes);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_API_DASHBOARD_H_
