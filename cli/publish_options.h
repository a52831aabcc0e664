// SPDX-License-Identifier: Apache-2.0
//
// What the commands that publish a run have in common: whom to tell, with which key, and who else
// has the files.
#ifndef LOCKSTEP_CLI_PUBLISH_OPTIONS_H_
#define LOCKSTEP_CLI_PUBLISH_OPTIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "audit/evidence/quorum.h"
#include "engine/run/run_folder.h"
#include "trainer/publisher.h"

namespace lockstep::cli {

struct PublishOptions {
  trainer::CoordinatorAddress coordinator;  // an empty URL: nobody is told
  std::string key_file;                     // empty: DefaultTrainerKeyPath
  std::vector<std::string> mirrors;
  audit::Quorum quorum;
};

void AddPublishOptions(CLI::App& command, PublishOptions& options);

// Makes the key if there is none yet.
absl::StatusOr<std::unique_ptr<trainer::Publisher>> StartPublisher(const engine::RunFolder& run,
                                                                   const PublishOptions& options);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_PUBLISH_OPTIONS_H_
