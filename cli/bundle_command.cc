// SPDX-License-Identifier: Apache-2.0
//
// `lockstep bundle`: a log in one file, from its tiles or from a coordinator.
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "audit/ledger/bundle.h"
#include "audit/log/log_checkpoint.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/log_source.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "net/http_client.h"

namespace lockstep::cli {
namespace {

struct BundleArgs {
  std::string from;
  std::string out;
  std::string log_key;
  bool json = false;
};

absl::Status RunBundle(const BundleArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::NoteKey key, ParseLogKey(args.log_key));
  net::HttpClient client({.interrupted = Interrupted});
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<audit::LogSource> source,
      IsAddress(args.from) ? OpenRemoteLog(client, std::string(absl::StripSuffix(args.from, "/")))
                           : OpenLog(args.from));
  uint64_t entries = 0;
  {
    Progress progress("entries", 0, "entries", args.json);
    LOCKSTEP_ASSIGN_OR_RETURN(source, CheckedLog(std::move(source), key, [&] {
                                ++entries;
                                progress.Add(1);
                              }));
    LOCKSTEP_RETURN_IF_ERROR(audit::WriteBundle(*source, key, args.out));
  }
  if (args.json) {
    return PrintJson({{"bundle", args.out}, {"log", key.name}, {"entries", entries}});
  }
  return Print(absl::StrFormat("%s: %d entries of %s; `lockstep verify %s` says what they show\n",
                               args.out, entries, key.name, args.out));
}

}  // namespace

void AddBundleCommand(CLI::App& app, Action* chosen) {
  auto args = std::make_shared<BundleArgs>();
  CLI::App* bundle = app.add_subcommand(
      "bundle",
      "Makes one file of a log, to verify without a network.\n"
      "The file is written only if the log's key has signed for exactly these entries.");
  bundle
      ->add_option("from", args->from,
                   "a coordinator's address (http or https), or a folder with the log's tiles")
      ->required();
  bundle->add_option("--out", args->out, "the file to make")->required();
  bundle
      ->add_option("--log-key", args->log_key,
                   "the log's key, NAME+ID+BASE64, or a file that holds it")
      ->required();
  bundle->add_flag("--json", args->json, "print JSON");
  bundle->callback([args, chosen] { *chosen = [args] { return RunBundle(*args); }; });
}

}  // namespace lockstep::cli
