// SPDX-License-Identifier: Apache-2.0
//
// JSON on standard output, as --json asks for: one line. Bytes that are no UTF-8 (names of files
// may be any) are replaced.
#ifndef LOCKSTEP_CLI_PRINT_JSON_H_
#define LOCKSTEP_CLI_PRINT_JSON_H_

#include <cstdio>
#include <nlohmann/json.hpp>

namespace lockstep::cli {

inline void PrintJson(const nlohmann::json& json) {
  std::puts(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_PRINT_JSON_H_
