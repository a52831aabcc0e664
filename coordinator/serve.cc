// SPDX-License-Identifier: Apache-2.0
//
// Up and down again. See serve.h.

#include "coordinator/serve.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/directory.h"
#include "base/directory_lock.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/logging.h"
#include "base/status.h"
#include "coordinator/api/api.h"
#include "coordinator/api/dashboard.h"
#include "coordinator/core/coordinator.h"
#include "coordinator/core/random_bytes.h"
#include "coordinator/http/artifacts.h"
#include "coordinator/http/event_hub.h"
#include "coordinator/http/folder.h"
#include "coordinator/http/health.h"
#include "coordinator/http/log_files.h"
#include "coordinator/http/server.h"
#include "coordinator/service/address_limiter.h"
#include "coordinator/store/sqlite_store.h"
#include "prometheus/gauge.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kEventBytesKept = 128 << 10;
constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr absl::Duration kPatienceFailed = absl::Seconds(1);
constexpr int kTickMs = 1'000;
constexpr absl::Duration kWorkersFilesKept = absl::Hours(14 * 24);

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

// What ends the program: SIGTERM or SIGINT, in all threads that are begun after this, or what went
// wrong first, from whichever thread.
class End {
 public:
  End() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT}) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signals_ = signalfd(-1, &set, SFD_CLOEXEC);
    failed_ = eventfd(0, EFD_CLOEXEC);
  }
  ~End() {
    close(signals_);
    close(failed_);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void Fail(const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok()) return;
    failure_ = status;
    eventfd_write(failed_, 1);
  }
  absl::Status failure() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
  }
  // True if it has come, within the time.
  bool Wait(int timeout_ms) const {
    pollfd waiting[] = {{.fd = signals_, .events = POLLIN, .revents = 0},
                        {.fd = failed_, .events = POLLIN, .revents = 0}};
    return poll(waiting, std::size(waiting), timeout_ms) > 0;
  }

 private:
  int signals_;
  int failed_;
  mutable std::mutex mutex_;
  absl::Status failure_;
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
                       .quota_bytes = uploader.trains ? UINT64_MAX : operator_bytes_max,
                       .trainer = uploader.trains};
  };
  rules.wants = [&coordinator](const std::array<uint8_t, 32>& bytes, const Digest& digest,
                               uint64_t size) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const Ed25519PublicKey key, Ed25519PublicKey::FromBytes(bytes));
    return coordinator.CheckUpload(key, digest, size);
  };
  return rules;
}

// What workers brought goes with the states that it is of.
void RemoveOldArtifacts(Coordinator& coordinator, ArtifactStore& store) {
  std::vector<std::pair<Digest, bool>> artifacts;
  for (const auto& [digest, age] : store.OfWorkers()) {
    artifacts.emplace_back(digest, age > kWorkersFilesKept);
  }
  if (artifacts.empty()) return;
  const absl::StatusOr<std::vector<Digest>> gone = coordinator.GiveUpArtifacts(artifacts);
  if (!gone.ok()) return;
  for (const Digest& digest : *gone) {
    const absl::Status removed = store.Remove(digest);
    if (!removed.ok()) LOCKSTEP_LOG_WARNING("a worker's file stays: {}", removed);
  }
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

// What the API tells of where things are, once all servers are up.
class Addresses {
 public:
  void Set(std::string artifact_url, std::string worker_url) {
    const std::lock_guard<std::mutex> lock(mutex_);
    artifact_url_ = std::move(artifact_url);
    worker_url_ = std::move(worker_url);
  }
  std::string artifact_url() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return artifact_url_;
  }
  std::string worker_url() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return worker_url_;
  }

 private:
  mutable std::mutex mutex_;
  std::string artifact_url_;
  std::string worker_url_;
};

// A proxy in front of it may be on another machine.
absl::Status CheckHttpAddress(const ServeOptions& options) {
  if (IsLoopback(options.http_address)) return absl::OkStatus();
  if (!options.http_plaintext_anywhere) {
    return absl::FailedPreconditionError(
        absl::StrCat("--http-address ", options.http_address,
                     ": HTTP is not encrypted here, and only loopback is served: put a proxy with "
                     "TLS in front of 127.0.0.1; or, if it is on another machine of a network that "
                     "you trust, add --http-plaintext-anywhere"));
  }
  LOCKSTEP_LOG_WARNING("HTTP is served without TLS on {}: see that only your proxy reaches it",
                       options.http_address);
  return absl::OkStatus();
}

// Whose stream of events it is; empty: of this machine, without limit.
std::string AddressOf(const HttpRequest& request, bool trust_proxy) {
  if (!IsLoopback(request.peer)) return AddressGroup(request.peer);
  std::string address;
  if (!trust_proxy) return address;
  for (const auto& [name, value] : request.headers) {
    if (name != "x-forwarded-for") continue;
    const absl::string_view list = value;
    const size_t comma = list.rfind(',');
    const absl::string_view last = comma == absl::string_view::npos ? list : list.substr(comma + 1);
    address = AddressGroup(absl::StripAsciiWhitespace(last));
  }
  return address;
}

std::string HttpUrl(const ServeOptions& options, uint16_t port) {
  const bool v6 = absl::StrContains(options.http_address, ':');
  return absl::StrCat("http://", v6 ? "[" : "", options.http_address, v6 ? "]" : "", ":", port);
}

// The gRPC server's, by the address that it was told to listen on and the port that it has.
std::string WorkerUrl(const ServeOptions& options, int port) {
  const absl::string_view address = options.grpc.public_address;
  const bool tls = !options.grpc.public_tls.certificate.empty();
  return absl::StrCat(tls ? "https://" : "http://", address.substr(0, address.rfind(':')), ":",
                      port);
}

// All that the HTTP server answers.
struct Pages {
  const Coordinator& coordinator;
  ArtifactStore& artifacts;
  EventHub& events;
  const Addresses& addresses;
  std::shared_ptr<prometheus::Registry> registry;
};
absl::StatusOr<Router> MakeRouter(const ServeOptions& options, const Pages& pages) {
  Router router;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<const Folder> log_files,
                            Folder::Open(LogWriter::PublicDirectory(options.data + "/log")));
  ServeLogFiles(log_files, router);
  ServeArtifacts(pages.artifacts, MakeUploadRules(pages.coordinator, options.operator_bytes_max),
                 router);
  ServeHealth([&coordinator = pages.coordinator] { return coordinator.health(); }, router);
  ServeMetrics(pages.registry, router);
  router.Get(
      "/events",
      [&events = pages.events](const HttpRequest& request) { return events.Listen(request); },
      Router::Origins::kAny);
  ServeApi(pages.coordinator,
           {.version = options.grpc.audit.version,
            .event_epoch = pages.events.epoch(),
            .artifact_url = [&addresses = pages.addresses] { return addresses.artifact_url(); },
            .worker_url = [&addresses = pages.addresses] { return addresses.worker_url(); }},
           router);
  DashboardFiles dashboard = BuiltInDashboard();
  if (!options.web_root.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(dashboard, ReadDashboard(options.web_root));
  }
  ServeDashboard(std::move(dashboard), router);
  return router;
}

}  // namespace

absl::Status Serve(const ServeOptions& options) {
  // Debian's Abseil looks for deadlocks under one lock of all threads: for tests, not for here.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  LOCKSTEP_RETURN_IF_ERROR(CheckHttpAddress(options));
  End end;
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(options.data));
  LOCKSTEP_ASSIGN_OR_RETURN(const DirectoryLock lock, DirectoryLock::Take(options.data));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string origin, OriginOf(options));
  const auto registry = std::make_shared<prometheus::Registry>();

  ArtifactStoreOptions artifact_options;
  artifact_options.bytes_max = options.artifact_bytes_max;
  artifact_options.workers_bytes_max = options.artifact_bytes_max / 4;
  const std::string artifact_folder = options.data + "/artifacts";
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(artifact_folder));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactStore> artifacts,
                            ArtifactStore::Open(artifact_folder, artifact_options));
  EventHub events(HexEncode(RandomBytes<8>()), kEventBytesKept,
                  [trust_proxy = options.grpc.calls.trust_proxy](const HttpRequest& request) {
                    return AddressOf(request, trust_proxy);
                  });

  CoordinatorOptions core;
  core.directory = options.data;
  core.origin = origin;
  core.policy.retry_ms_min = options.retry_ms_min;
  core.has_artifact = [&](const Digest& digest) { return artifacts->Find(digest).ok(); };
  core.on_failure = [&](const absl::Status& error) { end.Fail(error); };
  core.on_event = [&](absl::string_view kind, const std::string& json) {
    events.Publish(kind, json);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Coordinator> coordinator,
                            Coordinator::Open(std::move(core)));

  Addresses addresses;
  LOCKSTEP_ASSIGN_OR_RETURN(Router router, MakeRouter(options, {.coordinator = *coordinator,
                                                                .artifacts = *artifacts,
                                                                .events = events,
                                                                .addresses = addresses,
                                                                .registry = registry}));
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
  addresses.Set(grpc_options.audit.artifact_url, options.public_url.empty()
                                                     ? WorkerUrl(options, grpc->public_port())
                                                     : options.public_url);
  std::printf("{\"origin\":\"%s\",\"public_port\":%d,\"trainer_port\":%d,\"http_port\":%d}\n",
              origin.c_str(), grpc->public_port(), grpc->trainer_port(), http->port());
  std::fflush(stdout);
  LOCKSTEP_LOG_INFO("serving {} as {}: {} entries; public {}, trainers {}, HTTP {}", options.data,
                    coordinator->log_key().ToText(), coordinator->log().size(), grpc->public_port(),
                    grpc->trainer_port(), http->port());

  Gauges gauges(*registry);
  for (int ticks = 0; !end.Wait(kTickMs); ++ticks) {
    if (const absl::Status ticked = coordinator->Tick(); !ticked.ok()) {
      LOCKSTEP_LOG_WARNING("what has run out could not be ended: {}", ticked);
    }
    if (ticks % 60 == 0) artifacts->Expire();
    if (ticks % 3'600 == 0) RemoveOldArtifacts(*coordinator, *artifacts);
    gauges.Update(*coordinator);
  }
  const bool failed = !end.failure().ok();
  if (!failed) LOCKSTEP_LOG_INFO("ending, as asked");
  grpc->Stop(failed ? kPatienceFailed : kPatience);
  http->Stop(failed ? kPatienceFailed : kPatience);
  coordinator->Stop();
  const absl::Status error = end.failure();
  if (error.ok()) return error;
  return absl::Status(
      error.code(),
      absl::StrCat(
          "nothing could be written any more, and the coordinator has ended: ", error.message(),
          ". What was acknowledged is safe. See to the disk, then start it again."));
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
