// SPDX-License-Identifier: Apache-2.0
//
// See publish_options.h.
#include "cli/publish_options.h"

#include <utility>

#include "absl/strings/strip.h"
#include "base/status.h"
#include "trainer/trainer_key.h"

namespace lockstep::cli {

void AddPublishOptions(CLI::App& command, PublishOptions& options) {
  constexpr char kGroup[] = "Publishing";
  command
      .add_option("--coordinator", options.coordinator.url,
                  "tell this coordinator of steps and states: https://HOST:PORT, or http:// on "
                  "loopback")
      ->group(kGroup);
  command
      .add_option("--trainer-key", options.key_file,
                  "file of the key that signs the run's records, made at the first use "
                  "($XDG_CONFIG_HOME/lockstep/trainer.key)")
      ->group(kGroup);
  command
      .add_option("--mirror", options.mirrors,
                  "address of a mirror of the run's files, so that they need not be uploaded "
                  "(`lockstep artifacts sync` fills one; repeatable)")
      ->allow_extra_args(false)
      ->group(kGroup);
  command
      .add_option("--quorum", options.quorum.operators,
                  "a step is to be confirmed by so many operators: part of the registration")
      ->check(CLI::Range(1, audit::kQuorumOperatorsMax))
      ->capture_default_str()
      ->group(kGroup);
  command.add_option("--backends", options.quorum.backends, "and on so many classes of backend")
      ->check(CLI::Range(1, audit::kQuorumBackendsMax))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--openings", options.quorum.openings,
                  "parts of its computation that each attestation must open")
      ->check(CLI::Range(0, audit::kQuorumOpeningsMax))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--tls-ca", options.coordinator.ca_file,
                  "certificates to believe the coordinator by, PEM (the system's)")
      ->group(kGroup);
  command
      .add_option("--tls-certificate", options.coordinator.certificate,
                  "certificate to show to the coordinator, PEM")
      ->group(kGroup);
  command
      .add_option("--tls-certificate-key", options.coordinator.certificate_key,
                  "file of its key, PEM")
      ->group(kGroup);
}

absl::StatusOr<std::unique_ptr<trainer::Publisher>> StartPublisher(const engine::RunFolder& run,
                                                                   const PublishOptions& options) {
  std::string path = options.key_file;
  if (path.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(path, trainer::DefaultTrainerKeyPath());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Ed25519PrivateKey key, trainer::LoadOrCreateTrainerKey(path));
  trainer::PublisherOptions publisher;
  publisher.coordinator = options.coordinator;
  publisher.quorum = options.quorum;
  for (const std::string& mirror : options.mirrors) {
    publisher.mirrors.emplace_back(absl::StripSuffix(mirror, "/"));
  }
  return trainer::Publisher::Start(run, std::move(key), std::move(publisher));
}

}  // namespace lockstep::cli
