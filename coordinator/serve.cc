// SPDX-License-Identifier: Apache-2.0
//
// Up and down again. See serve.h.

#include "coordinator/serve.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/directory_lock.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/logging.h"
#include "base/status.h"
#include "coordinator/core/coordinator.h"
#include "coordinator/core/random_bytes.h"
#include "coordinator/http/artifacts.h"
#include "coordinator/http/event_hub.h"
#include "coordinator/http/folder.h"
#include "coordinator/http/health.h"
#include "coordinator/http/log_files.h"
#include "coordinator/http/server.h"
#include "coordinator/store/sqlite_store.h"
#include "prometheus/gauge.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kEventBytesKept = 128 << 10;
constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr int kTickMs = 1'000;

// The log's name: it is in every signature of the log, and never changes.
absl::StatusOr<std::string> OriginOf(const ServeOptions& options) {
  const std::string path = options.data + "/origin";
  const absl::StatusOr<std::string> stored = ReadFile(path, 1024);
  if (stored.ok()) {
    const std::string origin(absl::StripAsciiWhitespace(*stored));
    if (options.origin.empty() || options.origin == origin) return origin;
    return absl::FailedPreconditionError(
        absl::StrCat("the log in ", options.data, " is ", origin, ", and cannot become ",
                     options.origin, ": leave --origin away, or begin another directory"));
  }
  if (!absl::IsNotFound(stored.status())) return stored.status();
  const std::string origin = !options.origin.empty()
                                 ? options.origin
                                 : absl::StrCat("lockstep.local/", HexEncode(RandomBytes<8>()));
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(path, AsBytes(origin + "\n")));
  return origin;
}

// SIGTERM and SIGINT as something to wait for, in all threads that are begun after this.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT}) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    signal(SIGPIPE, SIG_IGN);
    fd_ = signalfd(-1, &set, SFD_CLOEXEC);
  }
  ~Signals() { close(fd_); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // True if one has come, within the time.
  bool Wait(int timeout_ms) const {
    pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&waiting, 1, timeout_ms) > 0;
  }

 private:
  int fd_;
};

// What went wrong first, from whichever thread.
class Failure {
 public:
  void Set(const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok()) status_ = status;
  }
  absl::Status Get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }

 private:
  mutable std::mutex mutex_;
  absl::Status status_;
};

UploadRules MakeUploadRules(const Coordinator& coordinator, uint64_t operator_bytes_max) {
  UploadRules rules;
  rules.audience = coordinator.origin();
  rules.authorize = [&coordinator, operator_bytes_max](
                        const net::RequestSignature& signature,
                        const std::string& text) -> absl::StatusOr<UploadGrant> {
    const absl::StatusOr<Ed25519PublicKey> key = Ed25519PublicKey::FromBytes(signature.key);
    if (!key.ok() || !VerifyEd25519(*key, AsBytes(text), signature.signature)) {
      return absl::UnauthenticatedError("the signature is not the key's over this request");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const Uploader uploader, coordinator.UploaderOf(*key));
    // A trainer brings what its run needs: the store's own limit is enough.
    return UploadGrant{.owner = uploader.owner.ToHex(),
                       .quota_bytes = uploader.trains ? UINT64_MAX : operator_bytes_max};
  };
  return rules;
}

class Gauges {
 public:
  explicit Gauges(prometheus::Registry& registry)
      : entries_(Add(registry, "lockstep_log_entries", "Entries of the log")),
        leases_(Add(registry, "lockstep_leases_live", "Leases that are out")),
        rows_(Add(registry, "lockstep_writer_rows_queued", "Rows that wait to be written")) {}

  void Update(const Coordinator& coordinator) {
    entries_.Set(static_cast<double>(coordinator.log().size()));
    leases_.Set(static_cast<double>(coordinator.LiveLeases()));
    rows_.Set(static_cast<double>(coordinator.RowsQueued()));
  }

 private:
  static prometheus::Gauge& Add(prometheus::Registry& registry, const char* name,
                                const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
  }
  prometheus::Gauge& entries_;
  prometheus::Gauge& leases_;
  prometheus::Gauge& rows_;
};

std::string HttpUrl(const ServeOptions& options, uint16_t port) {
  return absl::StrCat("http://", options.http_address, ":", port);
}

}  // namespace

absl::Status Serve(const ServeOptions& options) {
  const Signals signals;
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(options.data));
  LOCKSTEP_ASSIGN_OR_RETURN(const DirectoryLock lock, DirectoryLock::Take(options.data));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string origin, OriginOf(options));
  const auto registry = std::make_shared<prometheus::Registry>();

  ArtifactStoreOptions artifact_options;
  artifact_options.bytes_max = options.artifact_bytes_max;
  const std::string artifact_folder = options.data + "/artifacts";
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(artifact_folder));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactStore> artifacts,
                            ArtifactStore::Open(artifact_folder, artifact_options));
  EventHub events(HexEncode(RandomBytes<8>()), kEventBytesKept);

  Failure failure;
  CoordinatorOptions core;
  core.directory = options.data;
  core.origin = origin;
  core.has_artifact = [&](const Digest& digest) { return artifacts->Find(digest).ok(); };
  core.on_failure = [&](const absl::Status& error) { failure.Set(error); };
  core.on_event = [&](absl::string_view kind, const std::string& json) {
    events.Publish(kind, json);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Coordinator> coordinator,
                            Coordinator::Open(std::move(core)));

  Router router;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<const Folder> log_files,
                            Folder::Open(LogWriter::PublicDirectory(options.data + "/log")));
  ServeLogFiles(log_files, router);
  ServeArtifacts(*artifacts, MakeUploadRules(*coordinator, options.operator_bytes_max), router);
  ServeHealth([&] { return coordinator->health(); }, router);
  ServeMetrics(registry, router);
  router.Get("/events", [&](const HttpRequest& request) { return events.Listen(request); });
  HttpServerOptions http_options;
  http_options.address = options.http_address;
  http_options.port = options.http_port;
  http_options.registry = registry;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> http,
                            HttpServer::Start(http_options, std::move(router)));

  GrpcServerOptions grpc_options = options.grpc;
  grpc_options.registry = registry;
  grpc_options.audit.artifact_url =
      options.artifact_url.empty() ? HttpUrl(options, http->port()) : options.artifact_url;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcServers> grpc,
                            GrpcServers::Start(*coordinator, grpc_options));
  std::printf("{\"origin\":\"%s\",\"public_port\":%d,\"trainer_port\":%d,\"http_port\":%d}\n",
              origin.c_str(), grpc->public_port(), grpc->trainer_port(), http->port());
  std::fflush(stdout);
  LOCKSTEP_LOG_INFO("serving {} as {}: {} entries; public {}, trainers {}, HTTP {}", options.data,
                    coordinator->log_key().ToText(), coordinator->log().size(), grpc->public_port(),
                    grpc->trainer_port(), http->port());

  Gauges gauges(*registry);
  bool ended = false;
  for (int ticks = 0; !ended && failure.Get().ok(); ++ticks) {
    ended = signals.Wait(kTickMs);
    if (const absl::Status ticked = coordinator->Tick(); !ticked.ok()) {
      LOCKSTEP_LOG_WARNING("what has run out could not be ended: {}", ticked);
    }
    if (ticks % 60 == 0) artifacts->Expire();
    gauges.Update(*coordinator);
  }
  if (ended) LOCKSTEP_LOG_INFO("ending, as asked");
  grpc->Stop(ended ? kPatience : absl::Seconds(1));
  http->Stop(ended ? kPatience : absl::Seconds(1));
  coordinator->Stop();
  const absl::Status error = failure.Get();
  if (error.ok()) return error;
  return absl::Status(
      error.code(),
      absl::StrCat(
          "nothing could be written any more, and the coordinator has ended: ", error.message(),
          ". What was acknowledged is safe. See to the disk, then start it "
          "again."));
}

absl::Status BackUp(const std::string& data, const std::string& path) {
  LOCKSTEP_RETURN_IF_ERROR(FileBytes(data + "/store.sqlite").status());
  LOCKSTEP_ASSIGN_OR_RETURN(const DirectoryLock lock, DirectoryLock::Take(data),
                            "a coordinator is serving this directory: stop it first");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteStore> store,
                            SqliteStore::Open(data + "/store.sqlite"));
  return store->Backup(path);
}

}  // namespace lockstep::coordinator
