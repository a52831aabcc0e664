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
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/directory.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/logging.h"
#include "base/status.h"
#include "engine/backend/cpu_backend.h"
#include "net/rate_limiter.h"
#include "rpc/rpc_error.h"
#include "worker/advice.h"
#include "worker/attempt.h"
#include "worker/offer_state.h"
#include "worker/outbox_sender.h"
#include "worker/work_folder.h"

namespace lockstep::worker {
namespace {

constexpr size_t kLeaseBytesMax = size_t{64} << 20;

// The lease is no more: there is nothing to give back or to go on with.
bool HasEnded(const absl::Status& status) {
  const std::string reason = rpc::ReasonOf(status);
  return reason == "LEASE_UNKNOWN" || reason == "LEASE_EXPIRED" || reason == "LEASE_FOREIGN";
}

// A coordinator shows it to everybody: not where things lie on this machine, nor so its owner's
// name.
std::string WithoutPaths(absl::string_view text) {
  std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  for (absl::string_view& word : words) {
    const size_t first = word.find_first_not_of("\"'(<");
    if (first != absl::string_view::npos && word[first] == '/') word = "(a path)";
  }
  return absl::StrJoin(words, " ");
}

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
    site.due = Now();
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
  return options_.once && leases_ended_ > 0 ? last_visit_ : absl::OkStatus();
}

Daemon::Site* Daemon::DueSite() {
  const absl::MutexLock lock(&mutex_);
  const auto site = std::min_element(sites_.begin(), sites_.end(),
                                     [](const Site& a, const Site& b) { return a.due < b.due; });
  return site->due <= Now() ? &*site : nullptr;
}

void Daemon::SetDue(Site& site, absl::Duration wait) {
  const absl::MutexLock lock(&mutex_);
  site.due = Now() + wait;
}

void Daemon::Visit(Site& site) {
  const absl::Status status = Approach(site);
  if (absl::IsCancelled(status)) return;
  last_visit_ = status;
  {
    const absl::MutexLock lock(&mutex_);
    site.last_error = status.ok() ? "" : std::string(status.message());
    site.advice = AdviceOn(status);
  }
  if (status.ok()) {
    site.backoff->Reset();
    return;
  }
  LOCKSTEP_LOG_WARNING("{}: {}", site.address, Words(status));
  if (!site.advice.empty()) LOCKSTEP_LOG_WARNING("{}: {}", site.address, site.advice);
  const absl::Duration wait = site.backoff->Next();
  SetDue(site, std::max(wait, RetryAfter(status).value_or(absl::ZeroDuration())));
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

// The lease that a kill interrupted, if it is still ours.
absl::StatusOr<std::optional<v1::Lease>> Daemon::TakeUp(Site& site) {
  const std::string path = LeasePath(site.server->origin);
  v1::Lease lease;
  const absl::StatusOr<std::string> kept = ReadFile(path, kLeaseBytesMax);
  if (!kept.ok() || !lease.ParseFromString(*kept)) return std::optional<v1::Lease>();
  v1::HeartbeatRequest request;
  request.set_lease_id(lease.lease_id());
  request.set_next_step(lease.begin_step());
  const absl::StatusOr<v1::HeartbeatResponse> answer = site.coordinator->Heartbeat(request);
  if (answer.ok() && answer->go_on()) return lease;
  if (answer.ok()) {
    Release(site, lease.lease_id(), v1::ReleaseLeaseRequest::REASON_CANCELED, "settled");
  } else if (!HasEnded(answer.status())) {
    return answer.status();
  }
  ::unlink(path.c_str());
  return std::optional<v1::Lease>();
}

// The one that a kill interrupted, or a new one; nullopt: there is no work.
absl::StatusOr<std::optional<v1::Lease>> Daemon::Acquire(Site& site) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::optional<v1::Lease> kept, TakeUp(site));
  if (kept) return kept;
  const std::string path = LeasePath(site.server->origin);
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
    const absl::Status kept_now =
        WriteFileDurably(path, AsBytes(answer.lease().SerializeAsString()), 0600);
    if (kept_now.ok()) return answer.lease();
    // What cannot be kept would be taken again and again.
    Release(site, answer.lease().lease_id(), v1::ReleaseLeaseRequest::REASON_CANCELED,
            std::string(kept_now.message()));
    return kept_now;
  }
  {
    const absl::MutexLock lock(&mutex_);
    site.no_work = answer.no_work_reason();
  }
  const absl::Duration wait =
      std::clamp(absl::Milliseconds(answer.retry_after_ms()), options_.tick, absl::Hours(1));
  SetDue(site, wait * (1 + options_.random() / 4));
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
                   .stop = [this] { return stop_.load(); },
                   .delivered =
                       [this](const absl::Status& status) {
                         const absl::MutexLock lock(&mutex_);
                         delivery_error_ = status.ok() ? "" : Words(status);
                       },
                   .patience = options_.once ? absl::InfiniteDuration() : options_.patience,
                   .clock = options_.clock});
  lease_lost_ = [&courier] { return !courier.lost().empty(); };
  given_up_ = false;
  const absl::Cleanup forget = [this] { lease_lost_ = nullptr; };
  const absl::Duration began = Now();
  const bool waiting = !outbox_->Pending(site.server->origin).empty();
  LeaseReport report = Replay(site, *lease, courier);
  if (report.verdict == audit::Verdict::kMatch && report.attested == 0 && !waiting) {
    // Else the two would go round for ever.
    report.verdict = audit::Verdict::kInconclusive;
    report.reason = absl::FailedPreconditionError(
        absl::StrCat("the coordinator asks for steps ", lease->begin, " to ", lease->end - 1,
                     ", and this machine has its receipts for all of them: their attestations are "
                     "lost or hidden there. `lockstep verify LOG --receipts ",
                     options_.config.data_folder, "/outbox/receipts` shows it"));
  }
  // Whatever an interrupt looked like from inside.
  if (report.verdict == audit::Verdict::kInconclusive &&
      (stop_ || given_up_ || !courier.lost().empty())) {
    report.reason = absl::CancelledError(absl::StrCat("canceled: ", report.reason.message()));
  }
  Count(report, *lease, Now() - began);
  // Attestations count only while the lease is ours: it is given back after the last.
  // Where that has to wait it is kept here, for the next visit or the next start.
  if (const absl::Status sent = courier.Finish(); !sent.ok()) return sent;
  if (report.verdict == audit::Verdict::kMatch && !report.kept_state.empty()) {
    Offer(site, lease->end, report.kept_state);
  }
  if (report.verdict != audit::Verdict::kInconclusive) {
    Release(site, lease->id, v1::ReleaseLeaseRequest::REASON_FINISHED, "");
  } else if (courier.dismissed()) {
    Release(site, lease->id, v1::ReleaseLeaseRequest::REASON_CANCELED, courier.lost());
  } else if (courier.lost().empty()) {
    Release(site, lease->id,
            absl::IsCancelled(report.reason) ? v1::ReleaseLeaseRequest::REASON_CANCELED
                                             : v1::ReleaseLeaseRequest::REASON_INCONCLUSIVE,
            std::string(report.reason.message()));
  }
  ::unlink(path.c_str());
  SetDue(site, absl::ZeroDuration());
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
  for (const std::string& mirror : config.mirrors) mirrors.push_back(ArtifactPlace(mirror));
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

// After the attestation of the step before it: without that a coordinator does not take it.
void Daemon::Offer(Site& site, uint64_t step, const std::string& state) {
  const absl::Status status = OfferState(*site.coordinator, *site.server, *client_, *key_, state);
  if (!status.ok()) LOCKSTEP_LOG_WARNING("the state before step {}: {}", step, status);
}

void Daemon::Count(const LeaseReport& report, const WorkLease& lease, absl::Duration took) {
  attested_ += report.attested;
  if (report.verdict == audit::Verdict::kMismatch) {
    failures_ = 0;
    const audit::Difference& d = *report.difference;
    if (lease.trainer_signed[d.step - lease.start_step]) {
      ++mismatches_;
      LOCKSTEP_LOG_WARNING("mismatch at step {}: {} {}: published {}, replayed {}", d.step, d.field,
                           d.place, d.expected, d.found);
    } else {
      ++tests_;
      LOCKSTEP_LOG_INFO("the record of step {} was not the trainer's, and wrong: a test, passed",
                        d.step);
    }
  } else if (report.verdict == audit::Verdict::kMatch) {
    ++matches_;
    failures_ = 0;
  } else if (!absl::IsCancelled(report.reason)) {
    // Not finished and nobody asked for it: the network away is no failure of this machine, but
    // five leases in a row that came to nothing are reason enough to ask its owner.
    ++failures_;
    const absl::MutexLock lock(&mutex_);
    last_failure_ = std::string(report.reason.message());
    LOCKSTEP_LOG_WARNING("lease without a verdict: {}", Words(report.reason));
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
  std::string text = WithoutPaths(detail).substr(0, 1024);
  // Protocol buffers carry UTF-8 only, and a cut may be in the middle of a character.
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  request.set_detail(text);
  const absl::Status status = site.coordinator->ReleaseLease(request).status();
  // (A lease whose last step is attested has ended by itself.)
  if (!status.ok() && !HasEnded(status))
    LOCKSTEP_LOG_WARNING("giving the lease back: {}", Words(status));
}

std::string Daemon::PausedBecause() {
  const absl::MutexLock lock(&mutex_);
  const absl::Duration now = Now();
  if (now - guest_at_ >= options_.tick) {
    guest_at_ = now;
    guest_ = DecideGuest(options_.config.guest, options_.probe->Read(), guest_.reason);
  }
  return WhyPaused();
}

std::string Daemon::WhyPaused() const {
  if (user_paused_) return "asked to";
  if (failures_ >= kFailuresMax) {
    return absl::StrCat(failures_.load(),
                        " leases in a row came to nothing, the last because: ", last_failure_);
  }
  if (!guest_.paused()) return "";
  return absl::StrCat(PauseReasonName(guest_.reason), ": ", guest_.detail);
}

bool Daemon::Interrupted(const std::function<bool()>& lost) {
  const absl::Duration began = Now();
  while (true) {
    Alive();
    if (stop_ || given_up_ || (lost && lost())) return true;
    if (PausedBecause().empty()) return false;
    // The lease is kept by heartbeats, for a while: a pause is mostly short.
    if (Now() - began >= options_.config.release_after) {
      given_up_ = true;
      return true;
    }
    Wait(options_.tick);
  }
}

void Daemon::Wait(absl::Duration duration) {
  const absl::Duration end = Now() + duration;
  for (absl::Duration left = duration; left > absl::ZeroDuration() && !stop_; left = end - Now()) {
    std::this_thread::sleep_for(absl::ToChronoNanoseconds(std::min(left, absl::Milliseconds(100))));
  }
}

void Daemon::Pause() { user_paused_ = true; }

void Daemon::Resume() {
  user_paused_ = false;
  failures_ = 0;
  const absl::MutexLock lock(&mutex_);
  for (Site& site : sites_) site.due = Now();
}

void Daemon::Alive() { alive_ns_ = absl::ToInt64Nanoseconds(Now()); }

absl::Duration Daemon::SinceAlive() const { return Now() - absl::Nanoseconds(alive_ns_.load()); }

nlohmann::json Daemon::Status() const {
  const absl::MutexLock lock(&mutex_);
  nlohmann::json out = {
      {"version", witness_.engine.version},
      {"worker_key", key_->public_key().ToHex()},
      {"backend_class", witness_.backend.backend_class},
      {"steps_attested", attested_.load()},
      {"leases_matched", matches_.load()},
      {"leases_mismatched", mismatches_.load()},
      {"tests_passed", tests_.load()},
      {"failures_in_a_row", failures_.load()},
      {"tokens_per_second", tokens_per_second_.load()},
      {"cache_bytes", cache_->bytes()},
      {"outbox", {{"pending", outbox_->Pending().size()}, {"refused", outbox_->refused()}}}};
  if (!delivery_error_.empty()) out["outbox"]["last_error"] = delivery_error_;
  const std::string why = WhyPaused();
  // doing_ is its thread's, which looks at the reasons now and then.
  const std::string doing = doing_ == "paused" ? "idle" : doing_;
  out["state"] = stop_ ? "stopping" : !why.empty() ? "paused" : doing;
  if (!why.empty()) out["reason"] = why;
  if (user_paused_ || failures_ >= kFailuresMax) {
    out["hint"] = "`lockstep-worker resume` has it go on";
  }
  nlohmann::json sites = nlohmann::json::array();
  for (const Site& site : sites_) {
    nlohmann::json entry = {{"address", site.address}};
    if (site.server) entry["log"] = site.server->origin;
    if (!site.last_error.empty()) entry["last_error"] = site.last_error;
    if (!site.advice.empty()) entry["advice"] = site.advice;
    if (site.last_error.empty() && !site.no_work.empty()) entry["no_work"] = site.no_work;
    if (site.due > Now()) entry["asked_again_in_ms"] = absl::ToInt64Milliseconds(site.due - Now());
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
