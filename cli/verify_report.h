// SPDX-License-Identifier: Apache-2.0
//
// What `lockstep verify` prints: everything that a verified log shows, for people and as JSON.
#ifndef LOCKSTEP_CLI_VERIFY_REPORT_H_
#define LOCKSTEP_CLI_VERIFY_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/evidence/quorum.h"
#include "audit/ledger/trust_list.h"
#include "audit/ledger/verify_log.h"
#include "cli/command.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {

// Steps first ... last of a run, all of one state.
struct StepRange {
  uint64_t first = 0;
  uint64_t last = 0;
  audit::StepState state = audit::StepState::kUnaudited;
  bool operator==(const StepRange&) const = default;
};
std::vector<StepRange> RangesOf(const audit::RunReport& run);

// 5 if anything was found amiss with the log, else 3 if a step is disputed, else 0.
ExitCode VerdictOf(const audit::LogReport& report);

// `trusted`: the verifier's own list, if there is one.
std::string ReportText(const audit::LogReport& report,
                       const std::optional<std::vector<audit::TrustedOperator>>& trusted);
nlohmann::json ReportJson(const audit::LogReport& report,
                          const std::optional<std::vector<audit::TrustedOperator>>& trusted);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_VERIFY_REPORT_H_
