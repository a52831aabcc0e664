// SPDX-License-Identifier: Apache-2.0
//
// A line on the control socket, at either end: the daemon answers it with a line or with nothing,
// and whoever asked makes words of whatever came back.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "base/logging.h"
#include "worker/control_socket.h"
#include "worker/status_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace worker = lockstep::worker;
  const absl::string_view line(reinterpret_cast<const char*>(data), size);
  std::string command;
  const std::string answer = worker::AnswerTo(line, [&](const nlohmann::json& request) {
    command = worker::CommandOf(request);
    return nlohmann::json{{"command", command}};
  });
  // One line, whatever bytes the command has.
  LOCKSTEP_CHECK(answer.empty() || answer.find('\n') == answer.size() - 1);

  const nlohmann::json status =
      nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (status.is_discarded()) return 0;
  LOCKSTEP_CHECK(!worker::StatusText(status).empty());
  LOCKSTEP_CHECK(!worker::StatusLine(status).empty());
  return 0;
}
