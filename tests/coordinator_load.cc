// SPDX-License-Identifier: Apache-2.0
//
// A trainer and auditors against a coordinator that is served somewhere, call by call in a fixed
// order, for tests that break the coordinator meanwhile (coordinator_faults_test.py). For tests
// only.
//
//   lockstep_coordinator_load HOST PUBLIC_PORT TRAINER_PORT ORIGIN ROUND ITERATIONS
//                             [OFFSET_MS [hold]]
//
// Each ROUND (from 0) is by two operators of its own; the run is the same in all rounds, and goes
// on where the coordinator has it. OFFSET_MS: how far the clients' clocks are ahead. Prints a line
// of JSON of the coordinator, {"log_key","time_ms"}, and with ITERATIONS -1 that is all; one for
// each entry that was acknowledged, {"index","leaf_hash"}; and at the end one with "end": "done",
// "unanswered" or "refused", and the "message" and "reason" of the last two. hold: with its first
// lease it prints {"lease"}, waits for a line with another OFFSET_MS, and sends a heartbeat.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "coordinator/testing/test_load.h"
#include "nlohmann/json.hpp"

namespace lockstep::coordinator {
namespace {

constexpr int kOperatorsARound = 2;

struct Options {
  std::string host;
  int public_port = 0;
  int trainer_port = 0;
  std::string origin;
  int round = 0;
  int iterations = 0;
  int64_t offset_ms = 0;
  bool hold = false;
};

void PrintLine(const nlohmann::json& json) {
  std::printf("%s\n", json.dump().c_str());
  std::fflush(stdout);
}

// Time passes on both sides while a lease is out.
absl::Status Hold(TestClient& client, int key, const std::string& lease_id, int64_t* offset_ms) {
  PrintLine({{"lease", HexEncode(AsBytes(lease_id))}});
  char line[64] = {};
  if (std::fgets(line, sizeof(line), stdin) == nullptr ||
      !absl::SimpleAtoi(absl::StripAsciiWhitespace(line), offset_ms)) {
    return rpc::WithReason(absl::InvalidArgumentError("expected an offset on stdin"), "USAGE");
  }
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_lease_id(lease_id);
  return client.Signed<v1::HeartbeatResponse>("Heartbeat", key, heartbeat).status();
}

absl::Status Load(Options options) {
  const auto acknowledged = [](uint64_t log_index, const std::string& envelope) {
    PrintLine({{"index", log_index}, {"leaf_hash", MerkleLeafHash(AsBytes(envelope)).ToHex()}});
  };
  TestClient client(
      options.public_port, options.trainer_port, options.origin,
      [&] { return absl::ToUnixMillis(RealClock().Now()) + options.offset_ms; }, options.host);
  client.SetRequests(static_cast<uint64_t>(options.round) << 32);
  const auto info = client.Call<v1::GetServerInfoResponse>(
      client.audit(), &v1::AuditService::Stub::GetServerInfo, v1::GetServerInfoRequest());
  if (!info.ok()) return info.status();
  PrintLine({{"log_key", info->log_key()}, {"time_ms", info->server_time_ms()}});
  if (options.iterations < 0) return absl::OkStatus();
  SmallNetwork network;
  std::vector<TestWorker> workers;
  std::vector<int> keys;
  for (int n = 0; n < kOperatorsARound; ++n) {
    const int number = options.round * kOperatorsARound + n;
    LOCKSTEP_RETURN_IF_ERROR(SubmitOperator(client, number, acknowledged));
    keys.push_back(audit::WorkerKey(number));
    workers.emplace_back(network, keys.back(), acknowledged);
  }
  TestTrainer trainer(network, acknowledged);
  LOCKSTEP_RETURN_IF_ERROR(trainer.Begin(client));
  for (int i = 0; i < options.iterations; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(trainer.Publish(client, 2));
    if (i % 2 == 0) LOCKSTEP_RETURN_IF_ERROR(trainer.Announce(client));
    for (size_t n = 0; n < workers.size(); ++n) {
      TestWorker& worker = workers[n];
      LOCKSTEP_RETURN_IF_ERROR(worker.Acquire(client));
      if (options.hold && worker.has_lease()) {
        options.hold = false;
        LOCKSTEP_RETURN_IF_ERROR(
            Hold(client, keys[n], worker.lease().lease_id(), &options.offset_ms));
      }
      while (worker.has_lease()) LOCKSTEP_RETURN_IF_ERROR(worker.Step(client));
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  const bool read = argc >= 7 && argc <= 9 && absl::SimpleAtoi(argv[2], &options.public_port) &&
                    absl::SimpleAtoi(argv[3], &options.trainer_port) &&
                    absl::SimpleAtoi(argv[5], &options.round) &&
                    absl::SimpleAtoi(argv[6], &options.iterations) &&
                    (argc == 7 || absl::SimpleAtoi(argv[7], &options.offset_ms));
  if (!read) {
    std::fprintf(
        stderr,
        "usage: %s HOST PUBLIC_PORT TRAINER_PORT ORIGIN ROUND ITERATIONS [OFFSET_MS [hold]]\n",
        argv[0]);
    return 2;
  }
  options.host = argv[1];
  options.origin = argv[4];
  options.hold = argc == 9 && absl::string_view(argv[8]) == "hold";
  const absl::Status status = Load(options);
  nlohmann::json end = {{"end", status.ok()            ? "done"
                                : IsUnanswered(status) ? "unanswered"
                                                       : "refused"}};
  if (!status.ok()) {
    end["message"] = std::string(status.message());
    end["reason"] = rpc::ReasonOf(status);
  }
  PrintLine(end);
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::coordinator

int main(int argc, char** argv) { return lockstep::coordinator::Main(argc, argv); }
