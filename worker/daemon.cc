// SPDX-License-Identifier: Apache-2.0
//
// The loop, and a lease from its beginning to its end.
#include "worker/daemon.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/logging.h"
#include "base/status.h"
#include "engine/backend/cpu_backend.h"
#include "net/rate_limiter.h"
#include "rpc/rpc_error.h"
#include "worker/attempt.h"
#include "worker/offer_state.h"
#include "worker/outbox_sender.h"
#include "worker/work_folder.h"

namespace lockstep::worker {
namespace {

constexpr size_t kLeaseBytesMax = size_t{64} << 20;

absl::Duration MonotonicNow() { return RealClock().Monotonic(); }

}  // namespace

Daemon::Daemon(DaemonOptions options) : options_(std::move(options)) { Alive(); }

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Create(DaemonOptions options) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options)));
  LOCKSTEP_RETURN_IF_ERROR(daemon->Open());
  return daemon;
}

absl::Status Daemon::Open() {
  WorkerConfig& config = options_.config;
  if (config.coordinators.empty()) {
    return absl::InvalidArgumentError(
        "expected a coordinator: --coordinators https://host:port, or coordinators in worker.toml");
  }
  if (config.threads == 0) {
    config.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  for (const std::string& folder :
       {config.data_folder + "/leases", config.cache_folder + "/artifacts",
        config.cache_folder + "/runs"}) {
    LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(folder));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(lock_, DirectoryLock::Take(config.data_folder),
                            "another lockstep-worker runs here");
  LOCKSTEP_ASSIGN_OR_RETURN(const KeyFolder keys, KeyFolder::Open(config.data_folder + "/keys"));
  LOCKSTEP_ASSIGN_OR_RETURN(key_, keys.Worker());
  LOCKSTEP_ASSIGN_OR_RETURN(key_entries_, keys.Entries());
  LOCKSTEP_ASSIGN_OR_RETURN(attempt_, CurrentAttempt(config.data_folder, ThisMachine()));
  LOCKSTEP_ASSIGN_OR_RETURN(outbox_, Outbox::Open(config.data_folder + "/outbox"));
  LOCKSTEP_ASSIGN_OR_RETURN(witness_, ThisWitness(config.threads));
  LOCKSTEP_ASSIGN_OR_RETURN(backend_, engine::CreateCpuBackend(config.threads));
  LOCKSTEP_ASSIGN_OR_RETURN(
      cache_, net::ArtifactCache::Open(config.cache_folder + "/artifacts",
                                       {.bytes_max = config.disk_bytes,
                                        .disk_free_bytes_min = config.guest.disk_free_bytes_min}));
  net::HttpOptions http;
  http.redirects_max = 0;
  http.ca_file = config.ca_file;
  http.interrupted = [this] { return Interrupted(lease_lost_); };
  if (config.bytes_per_second > 0) {
    http.rate_limiter = std::make_shared<net::RateLimiter>(config.bytes_per_second);
  }
  client_ = std::make_unique<net::HttpClient>(http);
  for (const std::string& address : config.coordinators) {
    Site site;
    site.address = address;
    LOCKSTEP_ASSIGN_OR_RETURN(site.coordinator, options_.connect(address, *key_, attempt_,
                                                                 [this] { return stop_.load(); }));
    site.backoff.emplace(options_.backoff, options_.random);
    site.due = MonotonicNow();
    sites_.push_back(std::move(site));
  }
  return absl::OkStatus();
}

absl::Status Daemon::Run() {
  while (!stop_ && !(options_.once && leases_ended_ > 0)) {
    Alive();
    const std::string why = PausedBecause();
    Site* const site = why.empty() ? DueSite() : nullptr;
    {
      const absl::MutexLock lock(&mutex_);
      doing_ = !why.empty() ? "paused" : site == nullptr ? "idle" : "asking";
    }
    if (site == nullptr) {
      Wait(options_.tick);
    } else {
      Visit(*site);
    }
  }
  return absl::OkStatus();
}

Daemon::Site* Daemon::DueSite() {
  const auto site = std::min_element(sites_.begin(), sites_.end(),
                                     [](const Site& a, const Site& b) { return a.due < b.due; });
  return site->due <= MonotonicNow() ? &*site : nullptr;
}

void Daemon::Visit(Site& site) {
  const absl::Status status = Approach(site);
  if (absl::IsCancelled(status)) return;
  {
    const absl::MutexLock lock(&mutex_);
    site.last_error = status.ok() ? "" : std::string(status.message());
  }
  if (status.ok()) {
    site.backoff->Reset();
  } else {
    LOCKSTEP_LOG_WARNING("{}: {}", site.address, status);
    site.due = MonotonicNow() + site.backoff->Next();
  }
}

absl::Status Daemon::Approach(Site& site) {
  LOCKSTEP_ASSIGN_OR_RETURN(ServerInfo server, site.coordinator->Connect());
  {
    const absl::MutexLock lock(&mutex_);
    site.server = std::move(server);
  }
  LOCKSTEP_RETURN_IF_ERROR(TellKeys(site));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<v1::Lease> lease, Acquire(site));
  if (lease) return RunLease(site, *lease);
  // What an earlier life left, of leases that are no more.
  SendReport report;
  return SendOutbox(
      *outbox_, *site.coordinator, *site.server, *key_, [this] { return stop_.load(); }, &report);
}

absl::Status Daemon::TellKeys(Site& site) {
  if (site.keys_told) return absl::OkStatus();
  for (const std::string& entry : key_entries_) {
    v1::SubmitKeyEventRequest request;
    request.set_envelope(entry);
    const absl::Status status = site.coordinator->SubmitKeyEvent(request).status();
    const std::string reason = rpc::ReasonOf(status);
    if (!status.ok() && reason != "KEY_EXISTS" && reason != "DUPLICATE") return status;
  }
  site.keys_told = true;
  return absl::OkStatus();
}

std::string Daemon::LeasePath(const std::string& origin) const {
  return absl::StrCat(options_.config.data_folder, "/leases/",
                      Sha256(AsBytes(origin)).ToHex().substr(0, 16));
}

// The one that a kill interrupted, or a new one; nullopt: there is no work.
absl::StatusOr<std::optional<v1::Lease>> Daemon::Acquire(Site& site) {
  const std::string path = LeasePath(site.server->origin);
  v1::Lease lease;
  if (const absl::StatusOr<std::string> kept = ReadFile(path, kLeaseBytesMax);
      kept.ok() && lease.ParseFromString(*kept)) {
    v1::HeartbeatRequest request;
    request.set_lease_id(lease.lease_id());
    request.set_next_step(lease.begin_step());
    const absl::StatusOr<v1::HeartbeatResponse> answer = site.coordinator->Heartbeat(request);
    if (absl::IsUnavailable(answer.status())) return answer.status();
    if (answer.ok() && answer->go_on()) return lease;
    ::unlink(path.c_str());
  }
  const WorkerConfig& config = options_.config;
  v1::AcquireLeaseRequest request;
  request.set_steps_max(config.steps_max);
  v1::Capabilities& capabilities = *request.mutable_capabilities();
  capabilities.set_backend_class(witness_.backend.backend_class);
  capabilities.set_memory_bytes(config.memory_bytes > 0
                                    ? config.memory_bytes
                                    : static_cast<uint64_t>(engine::MemoryForRun().value_or(0)));
  capabilities.set_disk_bytes(config.disk_bytes);
  capabilities.set_tokens_per_second(tokens_per_second_);
  if (const auto names = ListDirectory(config.cache_folder + "/runs"); names.ok()) {
    for (const std::string& name : *names) {
      const absl::StatusOr<Digest> run = Digest::FromHex(name);
      if (run.ok()) capabilities.add_cached(run->bytes.data(), run->bytes.size());
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const v1::AcquireLeaseResponse answer,
                            site.coordinator->AcquireLease(request));
  if (answer.has_lease()) {
    LOCKSTEP_RETURN_IF_ERROR(
        WriteFileDurably(path, AsBytes(answer.lease().SerializeAsString()), 0600));
    return answer.lease();
  }
  const absl::Duration wait =
      std::clamp(absl::Milliseconds(answer.retry_after_ms()), options_.tick, absl::Hours(1));
  site.due = MonotonicNow() + wait * (1 + options_.random() / 4);
  return std::optional<v1::Lease>();
}

absl::Status Daemon::RunLease(Site& site, const v1::Lease& message) {
  const absl::Cleanup clear = [this] {
    const absl::MutexLock lock(&mutex_);
    lease_.reset();
    ++leases_ended_;
  };
  const std::string path = LeasePath(site.server->origin);
  const absl::StatusOr<WorkLease> lease = ReadLease(message);
  if (!lease.ok()) {
    {
      const absl::MutexLock lock(&mutex_);
      last_failure_ = std::string(lease.status().message());
    }
    ++failures_;
    Release(site, message.lease_id(), v1::ReleaseLeaseRequest::REASON_INCONCLUSIVE,
            std::string(lease.status().message()));
    ::unlink(path.c_str());
    return lease.status();
  }
  {
    const absl::MutexLock lock(&mutex_);
    doing_ = "working";
    lease_ = {.origin = site.server->origin,
              .run_id = lease->run_id,
              .begin = lease->begin,
              .end = lease->end,
              .next = lease->begin};
  }
  LOCKSTEP_LOG_INFO("lease {}: steps {} to {} of run {}", lease->id_hex(), lease->begin,
                    lease->end - 1, lease->run_id.ToHex());
  Courier courier(*site.coordinator, *site.server, *outbox_, *key_, lease->begin,
                  {.lease_id = lease->id,
                   .heartbeat = lease->heartbeat,
                   .backoff = {.first = options_.backoff.first / 5,
                               .most = std::min(options_.backoff.most, absl::Minutes(1))},
                   .random = options_.random,
                   .stop = [this] { return stop_.load(); }});
  lease_lost_ = [&courier] { return !courier.lost().empty(); };
  given_up_ = false;
  const absl::Cleanup forget = [this] { lease_lost_ = nullptr; };
  const absl::Duration began = MonotonicNow();
  LeaseReport report = Replay(site, *lease, courier);
  // Whatever an interrupt looked like from inside.
  if (report.verdict == audit::Verdict::kInconclusive &&
      (stop_ || given_up_ || !courier.lost().empty())) {
    report.reason = absl::CancelledError(absl::StrCat("canceled: ", report.reason.message()));
  }
  Count(report, *lease, MonotonicNow() - began);
  // Attestations count only while the lease is ours: it is given back after the last.
  if (!courier.Finish()) return absl::OkStatus();  // and kept here, for the next start
  if (report.verdict != audit::Verdict::kInconclusive) {
    Release(site, lease->id, v1::ReleaseLeaseRequest::REASON_FINISHED, "");
  } else if (courier.lost().empty()) {
    Release(site, lease->id,
            absl::IsCancelled(report.reason) ? v1::ReleaseLeaseRequest::REASON_CANCELED
                                             : v1::ReleaseLeaseRequest::REASON_INCONCLUSIVE,
            std::string(report.reason.message()));
  }
  ::unlink(path.c_str());
  site.due = MonotonicNow();
  return report.reason;  // of no verdict: then not at once again
}

LeaseReport Daemon::Replay(Site& site, const WorkLease& lease, Courier& courier) {
  LeaseReport report;
  const WorkerConfig& config = options_.config;
  const absl::StatusOr<WorkFolder> folder = WorkFolder::Open(config.cache_folder, lease);
  if (!folder.ok()) {
    report.reason = folder.status();
    return report;
  }
  const absl::StatusOr<engine::MemoryChoices> memory = PlanMemory(lease);
  if (!memory.ok()) {
    report.reason = memory.status();
    return report;
  }
  // What other runs fetched goes first when the disk gets short.
  std::error_code error;
  const std::filesystem::space_info disk = std::filesystem::space(config.cache_folder, error);
  if (!error && disk.available < 2 * config.guest.disk_free_bytes_min) {
    const absl::Status dropped = folder->DropOtherRuns(config.cache_folder);
    if (!dropped.ok()) LOCKSTEP_LOG_WARNING("{}", dropped);
  }
  std::vector<std::string> mirrors;
  if (!site.server->artifact_url.empty()) {
    mirrors.push_back(ArtifactPlace(site.server->artifact_url));
  }
  mirrors.insert(mirrors.end(), config.mirrors.begin(), config.mirrors.end());
  const ReplaySetting setting = {.backend = *backend_,
                                 .folder = *folder,
                                 .cache = *cache_,
                                 .client = *client_,
                                 .outbox = *outbox_,
                                 .key = *key_,
                                 .witness = witness_,
                                 .origin = site.server->origin,
                                 .mirrors = mirrors,
                                 .memory = *memory,
                                 .checkpoint_every = config.checkpoint_every,
                                 .keep_last = config.offer_states};
  report = ReplayLease(setting, lease,
                       {.interrupted = [this] { return Interrupted(lease_lost_); },
                        .stepped =
                            [&](uint64_t next) {
                              Alive();
                              courier.SetNextStep(next);
                              const absl::MutexLock lock(&mutex_);
                              if (lease_) lease_->next = next;
                            }});
  if (report.state_kept && report.verdict == audit::Verdict::kMatch) Offer(site, lease, *folder);
  return report;
}

absl::StatusOr<engine::MemoryChoices> Daemon::PlanMemory(const WorkLease& lease) const {
  const uint64_t cap = options_.config.memory_bytes;
  const int64_t bytes = cap > 0
                            ? static_cast<int64_t>(cap)
                            : engine::MemoryForRun().value_or(std::numeric_limits<int64_t>::max());
  LOCKSTEP_ASSIGN_OR_RETURN(const engine::MemoryPlan plan,
                            engine::FitMemory(lease.registration.manifest, bytes));
  return plan.choices;
}

void Daemon::Offer(Site& site, const WorkLease& lease, const WorkFolder& folder) {
  const absl::Status status = OfferState(*site.coordinator, *site.server, *client_, *key_,
                                         folder.run().CheckpointPath(lease.end));
  if (!status.ok()) LOCKSTEP_LOG_WARNING("the state before step {}: {}", lease.end, status);
}

void Daemon::Count(const LeaseReport& report, const WorkLease& lease, absl::Duration took) {
  attested_ += report.attested;
  if (report.verdict == audit::Verdict::kMismatch) {
    ++mismatches_;
    failures_ = 0;
    const audit::Difference& d = *report.difference;
    LOCKSTEP_LOG_WARNING("mismatch at step {}: {} {}: published {}, replayed {}", d.step, d.field,
                         d.place, d.expected, d.found);
  } else if (report.verdict == audit::Verdict::kMatch) {
    ++matches_;
    failures_ = 0;
  } else if (!absl::IsCancelled(report.reason)) {
    // Not finished and nobody asked for it: the network away is no failure of this machine, but
    // five leases in a row that came to nothing are reason enough to ask its owner.
    ++failures_;
    const absl::MutexLock lock(&mutex_);
    last_failure_ = std::string(report.reason.message());
    LOCKSTEP_LOG_WARNING("lease without a verdict: {}", report.reason);
  }
  if (report.verdict == audit::Verdict::kMatch && report.attested > 0 &&
      took > absl::ZeroDuration()) {
    uint64_t tokens = 0;
    for (uint64_t i = 0; i < report.attested; ++i) {
      tokens += lease.records[lease.records.size() - 1 - i].tokens;
    }
    tokens_per_second_ = static_cast<double>(tokens) / absl::ToDoubleSeconds(took);
  }
}

void Daemon::Release(Site& site, const std::string& lease_id,
                     v1::ReleaseLeaseRequest::Reason reason, const std::string& detail) {
  v1::ReleaseLeaseRequest request;
  request.set_lease_id(lease_id);
  request.set_reason(reason);
  std::string text = detail.substr(0, 1024);
  // Protocol buffers carry UTF-8 only, and a cut may be in the middle of a character.
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  request.set_detail(text);
  const absl::Status status = site.coordinator->ReleaseLease(request).status();
  if (!status.ok()) LOCKSTEP_LOG_WARNING("giving the lease back: {}", status);
}

std::string Daemon::PausedBecause() {
  if (user_paused_) return "asked to";
  if (failures_ >= kFailuresMax) {
    const absl::MutexLock lock(&mutex_);
    return absl::StrCat(failures_.load(),
                        " leases in a row came to nothing, the last because: ", last_failure_);
  }
  const absl::MutexLock lock(&mutex_);
  const absl::Duration now = MonotonicNow();
  if (now - guest_at_ >= options_.tick) {
    guest_at_ = now;
    guest_ = DecideGuest(options_.config.guest, options_.probe->Read(), guest_.reason);
  }
  if (!guest_.paused()) return "";
  return absl::StrCat(PauseReasonName(guest_.reason), ": ", guest_.detail);
}

bool Daemon::Interrupted(const std::function<bool()>& lost) {
  const absl::Duration began = MonotonicNow();
  while (true) {
    Alive();
    if (stop_ || given_up_ || (lost && lost())) return true;
    if (PausedBecause().empty()) return false;
    // The lease is kept by heartbeats, for a while: a pause is mostly short.
    if (MonotonicNow() - began >= options_.config.release_after) {
      given_up_ = true;
      return true;
    }
    Wait(options_.tick);
  }
}

void Daemon::Wait(absl::Duration duration) {
  const absl::Duration end = MonotonicNow() + duration;
  for (absl::Duration left = duration; left > absl::ZeroDuration() && !stop_;
       left = end - MonotonicNow()) {
    std::this_thread::sleep_for(absl::ToChronoNanoseconds(std::min(left, absl::Milliseconds(100))));
  }
}

void Daemon::Pause() { user_paused_ = true; }

void Daemon::Resume() {
  user_paused_ = false;
  failures_ = 0;
}

void Daemon::Alive() { alive_ns_ = absl::ToInt64Nanoseconds(MonotonicNow()); }

absl::Duration Daemon::SinceAlive() const {
  return MonotonicNow() - absl::Nanoseconds(alive_ns_.load());
}

nlohmann::json Daemon::Status() const {
  const absl::MutexLock lock(&mutex_);
  nlohmann::json out = {
      {"version", witness_.engine.version},
      {"worker_key", key_->public_key().ToHex()},
      {"backend_class", witness_.backend.backend_class},
      {"steps_attested", attested_.load()},
      {"leases_matched", matches_.load()},
      {"leases_mismatched", mismatches_.load()},
      {"failures_in_a_row", failures_.load()},
      {"tokens_per_second", tokens_per_second_.load()},
      {"cache_bytes", cache_->bytes()},
      {"outbox", {{"pending", outbox_->Pending().size()}, {"refused", outbox_->refused()}}}};
  std::string why;
  if (user_paused_) {
    why = "asked to";
  } else if (failures_ >= kFailuresMax) {
    why = absl::StrCat("failures: ", last_failure_);
  } else if (guest_.paused()) {
    why = absl::StrCat(PauseReasonName(guest_.reason), ": ", guest_.detail);
  }
  out["state"] = stop_ ? "stopping" : !why.empty() ? "paused" : doing_;
  if (!why.empty()) out["reason"] = why;
  nlohmann::json sites = nlohmann::json::array();
  for (const Site& site : sites_) {
    nlohmann::json entry = {{"address", site.address}};
    if (site.server) entry["log"] = site.server->origin;
    if (!site.last_error.empty()) entry["last_error"] = site.last_error;
    sites.push_back(std::move(entry));
  }
  out["coordinators"] = std::move(sites);
  if (lease_) {
    out["lease"] = {{"log", lease_->origin},
                    {"run", lease_->run_id.ToHex()},
                    {"begin_step", lease_->begin},
                    {"end_step", lease_->end},
                    {"next_step", lease_->next}};
  }
  return out;
}

}  // namespace lockstep::worker
