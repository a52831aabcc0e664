// SPDX-License-Identifier: Apache-2.0
//
// A trainer that sends what an honest one keeps back: signs the records of some steps of a run and
// sends them, whatever the coordinator has. For the tests of the network.
//
//   lockstep_dishonest_publisher RUN COORDINATOR KEY FIRST_STEP END_STEP
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "audit/evidence/log_entry.h"
#include "audit/step_log.h"
#include "base/ed25519.h"
#include "base/status.h"
#include "engine/run/run_folder.h"
#include "rpc/rpc_error.h"
#include "trainer/coordinator_client.h"

namespace lockstep::trainer {
namespace {

absl::Status Publish(const std::string& folder, const std::string& url, const std::string& key_file,
                     uint64_t first, uint64_t end) {
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::RunFolder run, engine::RunFolder::Open(folder));
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PrivateKey key, Ed25519PrivateKey::Load(key_file));
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::StepLog log, audit::StepLog::Open(run.StepLogPath()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<CoordinatorClient> client,
      CoordinatorClient::Create(
          {.url = url, .ca_file = "", .certificate = "", .certificate_key = ""},
          absl::Seconds(30)));
  LOCKSTEP_ASSIGN_OR_RETURN(const ServerInfo info, client->GetServerInfo());
  std::vector<std::string> envelopes;
  const Ed25519PrivateKey* const keys[] = {&key};
  for (const audit::StepRecord& record : log.records()) {
    if (record.step < first || record.step >= end) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(
        envelopes.emplace_back(),
        audit::MakeLogEntry(audit::PublishedRecord{.run_id = run.run_id(), .record = record},
                            keys));
  }
  if (envelopes.empty()) return absl::NotFoundError(absl::StrCat(folder, " has no such steps"));
  return client->PublishRecords(run.run_id(), envelopes, info.log_key).status();
}

}  // namespace
}  // namespace lockstep::trainer

int main(int argc, char** argv) {
  uint64_t first = 0;
  uint64_t end = 0;
  if (argc != 6 || !absl::SimpleAtoi(argv[4], &first) || !absl::SimpleAtoi(argv[5], &end)) {
    std::fprintf(stderr,
                 "usage: lockstep_dishonest_publisher RUN COORDINATOR KEY FIRST_STEP END_STEP\n");
    return 2;
  }
  const absl::Status status = lockstep::trainer::Publish(argv[1], argv[2], argv[3], first, end);
  if (status.ok()) return 0;
  std::fprintf(stderr, "lockstep_dishonest_publisher: %s: %s\n",
               lockstep::rpc::ReasonOf(status).c_str(), std::string(status.message()).c_str());
  return 1;
}
