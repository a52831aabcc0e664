// SPDX-License-Identifier: Apache-2.0
//
// `lockstep verify`: what a log is worth, without network and without a model.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "audit/evidence/quorum.h"
#include "audit/ledger/hash_tiles.h"
#include "audit/ledger/trust_list.h"
#include "audit/ledger/verify_log.h"
#include "audit/log/log_proof.h"
#include "base/file.h"
#include "base/merkle.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/log_source.h"
#include "cli/output.h"
#include "cli/threads.h"
#include "cli/verify_report.h"

namespace lockstep::cli {
namespace {

struct VerifyArgs {
  std::string log;
  std::string log_key;
  int quorum = -1;  // -1: the run's
  int backends = -1;
  int openings = -1;
  std::string trust;
  std::vector<std::string> known_checkpoints;
  std::vector<std::string> receipts;
  std::vector<std::string> receipt_folders;
  bool json = false;
};

using TrustList = std::vector<audit::TrustedOperator>;

// What the steps of a run are held to: the run's own numbers, where the verifier has no others.
audit::VerifierPolicy PolicyFor(const VerifyArgs& args, const std::optional<TrustList>& trusted,
                                const audit::RunRegistration& run) {
  audit::VerifierPolicy policy;
  policy.quorum = run.quorum;
  if (args.quorum >= 0) policy.quorum.operators = args.quorum;
  if (args.backends >= 0) policy.quorum.backends = args.backends;
  if (args.openings >= 0) policy.quorum.openings = args.openings;
  if (trusted) {
    policy.trusted_operators.emplace();
    for (const audit::TrustedOperator& mine : *trusted) policy.trusted_operators->insert(mine.key);
  }
  return policy;
}

// A receipt, or a bare proof: without its entry it still shows what the log was at its head.
absl::Status ReadReceipt(const std::string& path, bool of_any_log, audit::VerifyOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, audit::kReceiptBytesMax));
  if (absl::StartsWith(text, "c2sp.org/")) {
    LOCKSTEP_ASSIGN_OR_RETURN(audit::LogProof proof, audit::ParseLogProof(text), path);
    options.known_checkpoints.push_back(
        {.name = path, .note = std::move(proof.checkpoint), .may_be_of_another_log = of_any_log});
    return absl::OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(audit::Receipt receipt, audit::ParseReceipt(text), path);
  options.receipts.push_back(
      {.name = path, .receipt = std::move(receipt), .may_be_of_another_log = of_any_log});
  return absl::OkStatus();
}

// In order; without hidden ones, which may be half written.
absl::StatusOr<std::vector<std::string>> FilesBeneath(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> paths;
  std::filesystem::recursive_directory_iterator files(folder, error);
  for (; !error && files != std::filesystem::recursive_directory_iterator();
       files.increment(error)) {
    const bool hidden = absl::StartsWith(files->path().filename().string(), ".");
    if (hidden) files.disable_recursion_pending();
    if (!hidden && files->is_regular_file(error)) paths.push_back(files->path().string());
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("read the folder ", folder));
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::StatusOr<audit::VerifyOptions> ReadOptions(const VerifyArgs& args) {
  audit::VerifyOptions options;
  if (!args.log_key.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.log_key, ParseLogKey(args.log_key));
  }
  for (const std::string& path : args.known_checkpoints) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string note, ReadFile(path, audit::kNoteBytesMax));
    options.known_checkpoints.push_back({.name = path, .note = std::move(note)});
  }
  for (const std::string& path : args.receipts) {
    LOCKSTEP_RETURN_IF_ERROR(ReadReceipt(path, /*of_any_log=*/false, options));
  }
  for (const std::string& folder : args.receipt_folders) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FilesBeneath(folder));
    for (const std::string& path : paths) {
      LOCKSTEP_RETURN_IF_ERROR(ReadReceipt(path, /*of_any_log=*/true, options));
    }
  }
  return options;
}

// The log could not be read to its end: whatever the reason is called, it is the log's.
absl::Status AsBadLog(const absl::Status& status) {
  const bool its_own = absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                       absl::IsResourceExhausted(status) || absl::IsFailedPrecondition(status);
  return its_own ? absl::DataLossError(status.message()) : status;
}

absl::Status RunVerify(const VerifyArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(audit::VerifyOptions options, ReadOptions(args));
  std::optional<TrustList> trusted;
  if (!args.trust.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                              ReadFile(args.trust, audit::kTrustListBytesMax));
    LOCKSTEP_ASSIGN_OR_RETURN(trusted, audit::ParseTrustList(text), args.trust);
  }
  options.policy = [&](const audit::RunRegistration& run) { return PolicyFor(args, trusted, run); };
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<audit::LogSource> source, OpenLog(args.log));
  if (!options.log_key && source->named_key().empty()) {
    std::fprintf(stderr, "lockstep: tiles do not name the log's key: give --log-key\n");
    return ExitWith(kExitUsage);
  }
  const std::optional<std::string> folder = TileFolder(args.log);
  MerkleTree tree;
  if (folder) source = audit::HashingSource(std::move(source), &tree);
  ThreadPool pool(DefaultThreads());
  absl::StatusOr<audit::LogReport> report = audit::VerifyLog(*source, options, pool);
  if (!report.ok()) return WithContext(AsBadLog(report.status()), args.log);
  if (folder) {
    for (std::string& fault : audit::CheckHashTiles(*folder, tree)) {
      report->findings.push_back({audit::Finding::Kind::kTile, std::move(fault)});
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(args.json ? PrintJson(ReportJson(*report, trusted))
                                     : Print(ReportText(*report, trusted)));
  const ExitCode code = VerdictOf(*report);
  return code == kExitOk ? absl::OkStatus() : ExitWith(code);
}

}  // namespace

void AddVerifyCommand(CLI::App& app, Action* chosen) {
  auto args = std::make_shared<VerifyArgs>();
  CLI::App* verify = app.add_subcommand(
      "verify",
      "Reads a log from its first entry to its last and says what has been checked by whom, and\n"
      "what is amiss. Needs no network and trusts no server.\n"
      "Exit codes: 0 sound, 3 a step is disputed, 5 the log or its copy is not sound.");
  verify
      ->add_option("log", args->log,
                   "a bundle, or a folder with `checkpoint` and tiles (a coordinator's `public`)")
      ->required();
  verify->add_option("--log-key", args->log_key,
                     "whose log it should be: NAME+ID+BASE64, or a file that holds it");
  verify
      ->add_option("--quorum", args->quorum,
                   "a step is confirmed by so many operators; without it, as the run says")
      ->check(CLI::Range(1, audit::kQuorumOperatorsMax));
  verify->add_option("--backends", args->backends, "and on so many classes of backend")
      ->check(CLI::Range(1, audit::kQuorumBackendsMax));
  verify
      ->add_option("--openings", args->openings,
                   "and each attestation has opened so many parts of its computation")
      ->check(CLI::Range(0, audit::kQuorumOpeningsMax));
  verify->add_option("--trust", args->trust,
                     "a file with the keys and names of the operators to listen to, and no others");
  verify
      ->add_option("--known-checkpoint", args->known_checkpoints,
                   "a head of this log that you have seen before (repeatable)")
      ->allow_extra_args(false);
  verify
      ->add_option("--receipt", args->receipts,
                   "an entry and the log's promise to hold it, as workers and trainers keep it "
                   "(repeatable)")
      ->allow_extra_args(false);
  verify
      ->add_option("--receipts", args->receipt_folders,
                   "a folder of such files; those of other logs are passed over (repeatable)")
      ->allow_extra_args(false);
  verify->add_flag("--json", args->json, "print JSON");
  verify->callback([args, chosen] { *chosen = [args] { return RunVerify(*args); }; });
}

}  // namespace lockstep::cli
