// SPDX-License-Identifier: Apache-2.0
//
// `lockstep publish`: a run that is there, told to a coordinator. `lockstep artifacts sync`: its
// files, put where a web server can serve them.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/directory.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/publish_options.h"
#include "engine/run/run_folder.h"
#include "trainer/publisher.h"
#include "trainer/run_artifacts.h"

namespace lockstep::cli {
namespace {

struct PublishArgs {
  std::string folder;
  PublishOptions publish;
  double patience_seconds = 60;
  bool json = false;
};

absl::Status RunPublish(const PublishArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::RunFolder run, engine::RunFolder::Open(args.folder));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<trainer::Publisher> publisher,
                            StartPublisher(run, args.publish));
  const absl::Status drained = publisher->Drain(absl::Seconds(args.patience_seconds), Interrupted);
  const trainer::PublishStatus status = publisher->status();
  if (args.json) {
    LOCKSTEP_RETURN_IF_ERROR(PrintJson({{"run", run.run_id().ToHex()},
                                        {"registered", status.registered},
                                        {"next_step", status.next_step},
                                        {"checkpoints", status.checkpoints},
                                        {"complete", drained.ok() && status.registered}}));
  } else if (status.registered) {
    LOCKSTEP_RETURN_IF_ERROR(
        Print(absl::StrFormat("%s: the coordinator has the records before step %d, and %d states\n",
                              args.folder, status.next_step, status.checkpoints)));
  }
  LOCKSTEP_RETURN_IF_ERROR(drained, "not everything is published");
  if (!status.registered) {
    return absl::FailedPreconditionError(absl::StrCat(
        args.folder, " has no state yet, so there is nothing to publish; train it first"));
  }
  return absl::OkStatus();
}

struct SyncArgs {
  std::string mirror;
  std::string run;
  bool json = false;
};

// All that an auditor of the run may ask for, as it is there now.
absl::StatusOr<std::vector<trainer::RunArtifact>> AllArtifacts(const engine::RunFolder& run) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<trainer::RunArtifact> artifacts,
                            trainer::InputArtifacts(run));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<trainer::CheckpointPlace> places,
                            trainer::CheckpointPlaces(run));
  for (const trainer::CheckpointPlace& place : places) {
    const auto checkpoint = trainer::ReadCheckpoint(run, place.folder);
    if (absl::IsNotFound(checkpoint.status())) continue;  // removed by a run that is at work
    LOCKSTEP_RETURN_IF_ERROR(checkpoint.status());
    artifacts.insert(artifacts.end(), checkpoint->files.begin(), checkpoint->files.end());
  }
  return artifacts;
}

absl::Status RunSync(const SyncArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::RunFolder run, engine::RunFolder::Open(args.run));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<trainer::RunArtifact> artifacts, AllArtifacts(run));
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(args.mirror + "/artifact"));
  uint64_t bytes = 0;
  for (const trainer::RunArtifact& artifact : artifacts) bytes += artifact.bytes;
  uint64_t copied = 0;
  {
    Progress progress("copy", static_cast<int64_t>(bytes), "B", args.json);
    for (const trainer::RunArtifact& artifact : artifacts) {
      if (Interrupted()) return absl::CancelledError("interrupted; the same command goes on");
      LOCKSTEP_ASSIGN_OR_RETURN(
          const bool was_copied,
          trainer::CopyToMirror(artifact, args.mirror, [&](int64_t n) { progress.Add(n); }));
      if (was_copied) ++copied;
      if (!was_copied) progress.Skip(static_cast<int64_t>(artifact.bytes));
    }
  }
  if (args.json) {
    return PrintJson({{"mirror", args.mirror},
                      {"artifacts", artifacts.size()},
                      {"copied", copied},
                      {"bytes", bytes}});
  }
  return Print(absl::StrFormat("%s/artifact: %d artifacts of the run, %d of them new\n",
                               args.mirror, artifacts.size(), copied));
}

}  // namespace

void AddPublishCommands(CLI::App& app, Action* chosen) {
  auto args = std::make_shared<PublishArgs>();
  CLI::App* publish = app.add_subcommand(
      "publish",
      "Tells a coordinator of a run: its registration, the record of every step, its states.\n"
      "Goes on where the coordinator is; may be repeated, killed, and run beside training.");
  publish->add_option("folder", args->folder, "folder of the run")->required();
  AddPublishOptions(*publish, args->publish);
  publish->get_option("--coordinator")->required();
  publish
      ->add_option("--patience", args->patience_seconds,
                   "give up after so many seconds in which the coordinator cannot be had")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  publish->add_flag("--json", args->json, "print JSON");
  publish->callback([args, chosen] { *chosen = [args] { return RunPublish(*args); }; });

  CLI::App* artifacts =
      app.add_subcommand("artifacts", "Files of a run by content, for those who audit it.");
  artifacts->require_subcommand(1);
  auto sync = std::make_shared<SyncArgs>();
  CLI::App* command = artifacts->add_subcommand(
      "sync",
      "Fills a static mirror, DIR/artifact/<sha256>, with all that an auditor of the run needs.\n"
      "Any web server that serves DIR will do; name its address with --mirror.");
  command->add_option("dir", sync->mirror, "folder of the mirror, made if need be")->required();
  command->add_option("--run", sync->run, "folder of the run")->required();
  command->add_flag("--json", sync->json, "print JSON");
  command->callback([sync, chosen] { *chosen = [sync] { return RunSync(*sync); }; });
}

}  // namespace lockstep::cli
