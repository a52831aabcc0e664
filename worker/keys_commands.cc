// SPDX-License-Identifier: Apache-2.0
//
// `lockstep-worker keys`. Keys are named by file, never given on the command line.
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/directory_lock.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "worker/command.h"
#include "worker/keys.h"
#include "worker/outbox.h"

namespace lockstep::worker {
namespace {

struct KeysArgs {
  std::unique_ptr<ConfigOptions> config;
  std::string name;
  std::string contact;
  std::string revocation;
  std::string operator_key;
  std::string hardware;
  std::string key;
  std::string with;
  std::string reason;
  bool json = false;
};

absl::StatusOr<KeyFolder> OpenKeys(const WorkerConfig& config) {
  return KeyFolder::Open(config.data_folder + "/keys");
}

absl::Status PrintKeys(const KeyFolder& keys, bool json) {
  const absl::StatusOr<Ed25519PrivateKey> worker = keys.Worker();
  const absl::StatusOr<Ed25519PrivateKey> operator_key = keys.Operator();
  for (const absl::Status& status : {worker.status(), operator_key.status()}) {
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> entries, keys.Entries());
  nlohmann::json out = {{"entries", entries.size()}};
  std::string text;
  if (worker.ok()) {
    out["worker"] = worker->public_key().ToHex();
    absl::StrAppend(&text, "worker    ", worker->public_key().ToHex(), "\n");
  }
  if (operator_key.ok()) {
    out["operator"] = operator_key->public_key().ToHex();
    absl::StrAppend(&text, "operator  ", operator_key->public_key().ToHex(), "\n");
  }
  absl::StrAppend(&text, "entries   ", entries.size(), "\n");
  return PrintOut(json ? out.dump() + "\n" : text);
}

absl::StatusOr<ExitCode> Init(const KeysArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerConfig config, args.config->Load());
  if (args.name.empty() != args.revocation.empty()) {
    return absl::InvalidArgumentError(
        "expected --operator NAME and --revocation-key FILE together: an operator who loses the "
        "first key ends it with the second");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const KeyFolder keys, OpenKeys(config));
  LOCKSTEP_RETURN_IF_ERROR(keys.InitWorker());
  if (!args.name.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(keys.InitOperator(args.name, args.contact, args.revocation));
  }
  LOCKSTEP_RETURN_IF_ERROR(PrintKeys(keys, args.json));
  return kExitOk;
}

absl::StatusOr<ExitCode> Show(const KeysArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerConfig config, args.config->Load());
  LOCKSTEP_ASSIGN_OR_RETURN(const KeyFolder keys, OpenKeys(config));
  LOCKSTEP_RETURN_IF_ERROR(PrintKeys(keys, args.json));
  return kExitOk;
}

absl::StatusOr<ExitCode> Certify(const KeysArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerConfig config, args.config->Load());
  LOCKSTEP_ASSIGN_OR_RETURN(const KeyFolder keys, OpenKeys(config));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Ed25519PrivateKey key,
      args.operator_key.empty() ? keys.Operator() : Ed25519PrivateKey::Load(args.operator_key));
  LOCKSTEP_RETURN_IF_ERROR(keys.Certify(key, args.hardware));
  LOCKSTEP_RETURN_IF_ERROR(PrintKeys(keys, args.json));
  return kExitOk;
}

absl::StatusOr<ExitCode> Rotate(const KeysArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerConfig config, args.config->Load());
  LOCKSTEP_ASSIGN_OR_RETURN(const KeyFolder keys, OpenKeys(config));
  LOCKSTEP_ASSIGN_OR_RETURN(const DirectoryLock lock, DirectoryLock::Take(config.data_folder),
                            "stop the daemon first");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Outbox> outbox,
                            Outbox::Open(config.data_folder + "/outbox"));
  if (const size_t pending = outbox->Pending().size(); pending > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        pending,
        " attestations under the old key are not sent yet, and would not be taken after "
        "it has ended: run the daemon until they are"));
  }
  LOCKSTEP_RETURN_IF_ERROR(keys.RotateWorker());
  LOCKSTEP_RETURN_IF_ERROR(PrintKeys(keys, args.json));
  return kExitOk;
}

absl::StatusOr<ExitCode> Revoke(const KeysArgs& args) {
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerConfig config, args.config->Load());
  LOCKSTEP_ASSIGN_OR_RETURN(const KeyFolder keys, OpenKeys(config));
  LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PublicKey key, Ed25519PublicKey::FromHex(args.key),
                            "--key");
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Ed25519PrivateKey signer,
      args.with.empty() ? keys.Operator() : Ed25519PrivateKey::Load(args.with));
  LOCKSTEP_RETURN_IF_ERROR(keys.Revoke(signer, key, args.reason));
  // At once, to all: a daemon tells it only when it starts.
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> entries, keys.Entries());
  for (const std::string& address : config.coordinators) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Coordinator> coordinator,
                              ConnectTo(config, address, signer, std::string(16, '\0'), nullptr));
    v1::SubmitKeyEventRequest request;
    request.set_envelope(entries.back());
    LOCKSTEP_RETURN_IF_ERROR(coordinator->SubmitKeyEvent(request).status(), address);
  }
  LOCKSTEP_RETURN_IF_ERROR(PrintKeys(keys, args.json));
  return kExitOk;
}

}  // namespace

void AddKeysCommands(CLI::App& app, Action* chosen) {
  CLI::App* const keys = app.add_subcommand("keys", "The keys of this machine and its operator.");
  keys->require_subcommand(1);
  const auto add = [&](const char* name, const char* help,
                       absl::StatusOr<ExitCode> (*run)(const KeysArgs&)) {
    CLI::App* const command = keys->add_subcommand(name, help);
    const auto args = std::make_shared<KeysArgs>();
    args->config = std::make_unique<ConfigOptions>(*command);
    command->add_flag("--json", args->json, "print JSON");
    command->callback([args, chosen, run] { *chosen = [args, run] { return run(*args); }; });
    return std::pair{command, args.get()};
  };
  const auto [init, init_args] = add(
      "init", "Makes the worker's key, and on an operator's first machine the operator's.", Init);
  init->add_option("--operator", init_args->name, "the operator's public name");
  init->add_option("--contact", init_args->contact, "a public address of the operator");
  init->add_option("--revocation-key", init_args->revocation,
                   "new file for the key that ends the operator's: take it off this machine");
  add("show", "Prints public keys.", Show);
  const auto [certify, certify_args] =
      add("certify", "Ties the worker's key to its operator, under both signatures.", Certify);
  certify->add_option("--hardware", certify_args->hardware, "what machine this is, for the public")
      ->required();
  certify->add_option("--operator-key", certify_args->operator_key,
                      "file of the operator's key; the one of keys init if not given");
  add("rotate", "A new worker's key in the place of the old one, which ends.", Rotate);
  const auto [revoke, revoke_args] =
      add("revoke", "Ends a key; of an operator's key, all its workers' too.", Revoke);
  revoke->add_option("--key", revoke_args->key, "public key, in hexadecimal")->required();
  revoke->add_option(
      "--with", revoke_args->with,
      "file of the key that signs: the operator's (if not given), its revocation key, "
      "or the key itself");
  revoke->add_option("--reason", revoke_args->reason, "for the public")->required();
}

}  // namespace lockstep::worker
