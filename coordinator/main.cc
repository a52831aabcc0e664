// SPDX-License-Identifier: Apache-2.0
//
// The `lockstep-coordinator` program: parses the command line, runs one command, reports its error.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "base/exit_code.h"
#include "base/logging.h"
#include "coordinator/serve.h"

namespace lockstep::coordinator {
namespace {

using Action = std::function<absl::Status()>;

void AddTls(CLI::App& command, const std::string& prefix, const std::string& whose,
            TlsOptions* tls) {
  const std::string group = "TLS";
  command
      .add_option("--" + prefix + "tls-certificate", tls->certificate,
                  "PEM file, of the server for " + whose)
      ->group(group);
  command.add_option("--" + prefix + "tls-key", tls->key, "PEM file, its key")->group(group);
  command
      .add_option("--" + prefix + "tls-client-ca", tls->client_ca,
                  "PEM file: clients must show a certificate signed by it")
      ->group(group);
}

void AddServe(CLI::App& app, Action* action, ServeOptions* options) {
  CLI::App& serve = *app.add_subcommand(
      "serve",
      "Serves a data directory, and makes it, with its keys, if it is not there: gRPC for auditors "
      "and the\npublic, gRPC for trainers, HTTP for the dashboard and its API, artifacts, the "
      "log's "
      "files, /metrics, /healthz\nand /events. Ends on SIGTERM, with what was acknowledged on the "
      "disk. Prints the ports as "
      "a line of JSON.");
  serve.add_option("--data", options->data, "the directory")->required();
  serve.add_option(
      "--origin", options->origin,
      "the log's name, such as example.com/lockstep; for ever: only at the first start");
  serve.add_option("--listen", options->grpc.public_address, "gRPC for everybody: ADDRESS:PORT")
      ->capture_default_str();
  serve
      .add_option("--trainer-listen", options->grpc.trainer_address,
                  "gRPC for trainers: ADDRESS:PORT")
      ->capture_default_str();
  serve.add_option("--http-address", options->http_address, "HTTP: an address in numbers")
      ->capture_default_str();
  serve.add_flag("--http-plaintext-anywhere", options->http_plaintext_anywhere,
                 "serve HTTP, without TLS, beyond loopback too: for a proxy on another machine");
  serve.add_option("--http-port", options->http_port, "HTTP: a port; 0: any")
      ->capture_default_str();
  serve.add_option("--artifact-url", options->artifact_url,
                   "where workers reach the HTTP server, if it is behind a proxy");
  serve.add_option("--public-url", options->public_url,
                   "where workers reach the gRPC server for everybody, if it is behind a proxy: "
                   "the dashboard tells them");
  serve.add_option("--web-root", options->web_root,
                   "a folder with the dashboard's build (web/dist), in the place of the built-in "
                   "one; read once");
  serve
      .add_option("--artifact-bytes-max", options->artifact_bytes_max, "that all uploads may have")
      ->capture_default_str();
  serve
      .add_option("--operator-bytes-max", options->operator_bytes_max,
                  "that one operator's uploads may have")
      ->capture_default_str();
  serve.add_option("--threads", options->grpc.threads_max, "for gRPC calls, at most")
      ->capture_default_str()
      ->check(CLI::Range(4, 4096));
  serve
      .add_option("--calls-per-second", options->grpc.calls.limits.calls_per_second,
                  "of one address, on average")
      ->capture_default_str();
  serve.add_flag("--trust-proxy", options->grpc.calls.trust_proxy,
                 "believe x-forwarded-for of callers on loopback");
  serve
      .add_option("--retry-ms", options->retry_ms_min,
                  "before a worker that got no work asks again, at least; up to six times that")
      ->capture_default_str()
      ->check(CLI::Range(10, 3'600'000));
  AddTls(serve, "", "everybody", &options->grpc.public_tls);
  AddTls(serve, "trainer-", "trainers", &options->grpc.trainer_tls);
  serve.callback([=] { *action = [=] { return Serve(*options); }; });
}

struct BackupOptions {
  std::string data;
  std::string path;
};

void AddBackup(CLI::App& app, Action* action, BackupOptions* options) {
  CLI::App& backup = *app.add_subcommand(
      "backup",
      "Copies the store of a data directory that nobody serves. The log is in DIR/log: copy it "
      "too, at the\nsame moment. A store or a log older than the other is refused at the start.");
  backup.add_option("--data", options->data, "the directory")->required();
  backup.add_option("FILE", options->path, "the copy; must not exist")->required();
  backup.callback([=] { *action = [=] { return BackUp(options->data, options->path); }; });
}

int Main(int argc, char** argv) {
  CLI::App app(
      "lockstep-coordinator: keeps the public log of an audit network, and gives out its work.\n"
      "It is trusted for availability only: whatever it says can be checked from the log.",
      "lockstep-coordinator");
  app.require_subcommand(1);
  app.set_version_flag("--version", LOCKSTEP_VERSION);
  std::string log_level;
  std::string log_format = "json";
  app.add_option("--log-level", log_level, "debug, info, warning, error or off");
  app.add_option("--log-format", log_format, "json or text")->capture_default_str();
  Action action;
  ServeOptions serve;
  serve.grpc.public_address = "127.0.0.1:7440";
  serve.grpc.trainer_address = "127.0.0.1:7441";
  serve.grpc.audit.version = LOCKSTEP_VERSION;
  BackupOptions backup;
  AddServe(app, &action, &serve);
  AddBackup(app, &action, &backup);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  absl::Status status = SetUpLogging(log_level, log_format);
  const bool usage = !status.ok();
  if (status.ok()) status = action();
  if (status.ok()) return 0;
  std::fprintf(stderr, "lockstep-coordinator: %s\n", std::string(status.message()).c_str());
  return usage ? kExitUsage : kExitFailure;
}

}  // namespace
}  // namespace lockstep::coordinator

int main(int argc, char** argv) { return lockstep::coordinator::Main(argc, argv); }
