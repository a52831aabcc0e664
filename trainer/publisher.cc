// SPDX-License-Identifier: Apache-2.0
//
// Two loops, each a pass over what is to be done, with waits between failures.
#include "trainer/publisher.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "audit/evidence/log_entry.h"
#include "audit/evidence/run_registration.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/logging.h"
#include "base/status.h"
#include "engine/run/evaluations.h"
#include "net/artifact_upload.h"
#include "rpc/rpc_error.h"
#include "trainer/run_artifacts.h"

namespace lockstep::trainer {
namespace {

constexpr uint64_t kRecordsInACall = 256;
// Artifacts named in one registration, so that no corpus makes a message too long.
constexpr size_t kArtifactsInACall = 1000;

bool Forgotten(const absl::Status& status) { return rpc::ReasonOf(status) == "RUN_UNKNOWN"; }

// What no further try with the same folder and key would change.
bool IsFinal(const absl::Status& status) {
  const std::string reason = rpc::ReasonOf(status);
  if (reason == "RUN_EXISTS_DIFFERENTLY" || reason == "ENVELOPE_INVALID" ||
      reason == "SECOND_HISTORY" || reason == "CHAIN_BROKEN" || reason == "KEY_REVOKED") {
    return true;
  }
  // This machine's own: a damaged file, another key, another history.
  return reason.empty() && (absl::IsFailedPrecondition(status) || absl::IsDataLoss(status));
}

// Of a state or an evaluation: that the coordinator will never take it, and may take others.
bool IsRefusedForGood(const absl::Status& status) {
  const std::string reason = rpc::ReasonOf(status);
  return reason == "DUPLICATE" || reason == "ARTIFACT_DIFFERS";
}

// Without what only programs read.
std::string TextOf(const absl::Status& status) {
  return status.ToString(absl::StatusToStringMode::kWithNoExtraData);
}

double Random() {
  thread_local std::mt19937_64 random(std::random_device{}());
  return std::uniform_real_distribution<double>(0.5, 1)(random);
}

// How often a wait looks around. (Not a timed wait on the mutex: Abseil's are by the time of day,
// and would wait for a day if somebody set that back by one.)
constexpr std::chrono::milliseconds kLookEvery{20};

// Until `over` is true, or so long.
void WaitFor(absl::Duration duration, absl::FunctionRef<bool()> over) {
  const absl::Duration end = RealClock().Monotonic() + duration;
  while (!over() && RealClock().Monotonic() < end) std::this_thread::sleep_for(kLookEvery);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Publisher>> Publisher::Start(const engine::RunFolder& run,
                                                            Ed25519PrivateKey key,
                                                            PublisherOptions options) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<CoordinatorClient> client,
                            CoordinatorClient::Create(options.coordinator, options.deadline));
  LOCKSTEP_ASSIGN_OR_RETURN(PublishFolder folder, PublishFolder::Open(run));
  std::unique_ptr<Publisher> publisher(
      new Publisher(run, std::move(key), std::move(options), std::move(folder), std::move(client)));
  publisher->threads_.emplace_back([p = publisher.get()] { p->Run(p->records_part_); });
  publisher->threads_.emplace_back([p = publisher.get()] { p->Run(p->artifacts_part_); });
  return publisher;
}

Publisher::Publisher(const engine::RunFolder& run, Ed25519PrivateKey key, PublisherOptions options,
                     PublishFolder folder, std::unique_ptr<CoordinatorClient> client)
    : run_(run),
      key_(std::move(key)),
      options_(std::move(options)),
      client_(std::move(client)),
      http_(std::make_unique<net::HttpClient>(net::HttpOptions{
          .redirects_max = 0, .interrupted = [this] { return stopping_.load(); }})),
      folder_(std::move(folder)),
      records_part_{.name = "records", .pass = &Publisher::RecordsPass, .error = {}},
      artifacts_part_{.name = "artifacts", .pass = &Publisher::ArtifactsPass, .error = {}} {}

Publisher::~Publisher() {
  client_->Cancel();
  {
    const absl::MutexLock lock(&mutex_);  // so that waits see it
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

PublishStatus Publisher::status() const {
  const absl::MutexLock lock(&mutex_);
  return {.registered = server_.has_value(),
          .next_step = progress_.next_step,
          .checkpoints = announced_.size(),
          .evaluations = evaluated_.size(),
          .records = records_part_.error,
          .artifacts = artifacts_part_.error};
}

// ---- The loops

void Publisher::Run(Part& part) {
  int failures = 0;
  while (!stopping_) {
    uint64_t seen = 0;
    {
      const absl::MutexLock lock(&mutex_);
      seen = part.wakes;
    }
    const absl::StatusOr<bool> more = (this->*part.pass)();
    if (stopping_) return;
    const absl::Status& status = more.status();
    {
      const absl::MutexLock lock(&mutex_);
      part.error = status;
      if (status.ok()) {
        part.failing_since = std::nullopt;
        if (!*more) part.idle_at = seen;
      } else if (!part.failing_since) {
        part.failing_since = RealClock().Monotonic();
      }
      part.ended = !status.ok() && IsFinal(status);
    }
    if (Forgotten(status)) Forget();
    if (!status.ok() && &part == &artifacts_part_) {
      // The coordinator's address for files may be another by now: the records' thread asks.
      const absl::MutexLock lock(&mutex_);
      ++records_part_.wakes;
    }
    if (status.ok()) {
      if (failures > 0) LOCKSTEP_LOG_INFO("publishing {} goes on", part.name);
      failures = 0;
      if (!*more) Rest(part, seen, options_.poll);
      continue;
    }
    if (IsFinal(status)) {
      LOCKSTEP_LOG_ERROR("publishing {} has stopped; training goes on: {}", part.name,
                         TextOf(status));
      return;
    }
    if (failures == 0) {
      LOCKSTEP_LOG_WARNING("publishing {} waits, and tries again: {}", part.name, TextOf(status));
    }
    const int doublings = std::min(failures++, 20);
    // Waits are not cut short by news: those who train would else call a sick server at each step.
    const absl::Duration wait =
        std::min(options_.backoff * (int64_t{1} << doublings), options_.backoff_max) * Random();
    WaitFor(wait, [this] { return stopping_.load(); });
  }
}

// Until there is news since `seen`, or so long.
void Publisher::Rest(const Part& part, uint64_t seen, absl::Duration duration) {
  WaitFor(duration, [&] {
    const absl::MutexLock lock(&mutex_);
    return stopping_ || part.wakes != seen;
  });
}

absl::Status Publisher::Drain(absl::Duration patience, const std::function<bool()>& interrupted) {
  {
    const absl::MutexLock lock(&mutex_);
    ++records_part_.wakes;
    ++artifacts_part_.wakes;
  }
  for (;; std::this_thread::sleep_for(kLookEvery)) {
    if (interrupted && interrupted()) return absl::CancelledError("interrupted");
    const absl::MutexLock lock(&mutex_);
    bool idle = true;
    for (const Part* part : {&records_part_, &artifacts_part_}) {
      if (part->ended) return part->error;
      if (part->failing_since && RealClock().Monotonic() - *part->failing_since >= patience) {
        return part->error;
      }
      idle = idle && !part->failing_since && part->idle_at == part->wakes;
    }
    if (idle) return absl::OkStatus();
  }
}

// ---- Registration

// Nothing yet, of a run that has no state.
absl::StatusOr<std::optional<std::string>> Publisher::Registration() {
  {
    const absl::MutexLock lock(&mutex_);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> kept, folder_.ReadRegistration());
    if (kept) {
      LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogEntry entry, audit::LogEntry::Parse(*kept),
                                folder_.path(), "/registration.json");
      const auto* const registration = std::get_if<audit::RunRegistration>(&entry.payload());
      if (registration == nullptr || audit::RunIdOf(registration->manifest) != run_.run_id()) {
        return absl::DataLossError(
            absl::StrCat(folder_.path(), "/registration.json is not of this run"));
      }
      if (registration->trainer_key != key_.public_key()) {
        return absl::FailedPreconditionError(absl::StrCat(
            run_.path(), " was registered with the trainer's key ",
            registration->trainer_key.ToHex(), "; this one is ", key_.public_key().ToHex(),
            "; name the file of the other with --trainer-key"));
      }
      return kept;
    }
  }
  audit::RunRegistration registration{.manifest = run_.manifest(),
                                      .trainer_key = key_.public_key(),
                                      .genesis = std::nullopt,
                                      .quorum = options_.quorum};
  if (!run_.manifest().parent) {
    LOCKSTEP_ASSIGN_OR_RETURN(registration.genesis, ReadGenesis(run_));
    if (!registration.genesis) return std::optional<std::string>();
  }
  const Ed25519PrivateKey* const keys[] = {&key_};
  LOCKSTEP_ASSIGN_OR_RETURN(std::string entry, audit::MakeLogEntry(registration, keys));
  const absl::MutexLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(folder_.SaveRegistration(entry));
  return std::optional<std::string>(std::move(entry));
}

// The same log as ever, or the first.
absl::Status Publisher::CheckLog(const ServerInfo& info) {
  const std::string text = info.log_key.ToText();
  const absl::MutexLock lock(&mutex_);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> kept, folder_.ReadLogKey());
  if (!kept) return folder_.SaveLogKey(text);
  if (*kept == text) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("this run was published to the log ", *kept, "; the coordinator at ",
                   options_.coordinator.url, " has ", text, "; move ", folder_.path(),
                   " away if the run is to begin in another log"));
}

absl::Status Publisher::Register(const std::string& entry) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ServerInfo info, client_->GetServerInfo());
  LOCKSTEP_RETURN_IF_ERROR(CheckLog(info));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const CoordinatorClient::MaybeReceipt receipt,
      client_->RegisterRun(entry, /*artifacts=*/{}, /*mirrors=*/{}, info.log_key));
  Keep("run", receipt);
  LOCKSTEP_ASSIGN_OR_RETURN(const audit::LogEntry parsed, audit::LogEntry::Parse(entry));
  const auto& registration = std::get<audit::RunRegistration>(parsed.payload());
  records_.emplace(run_.StepLogPath(), registration.first_step(), registration.first_chain());
  const absl::MutexLock lock(&mutex_);
  server_ = info;
  ++artifacts_part_.wakes;
  return absl::OkStatus();
}

// ---- Records

absl::StatusOr<bool> Publisher::RecordsPass() {
  absl::Status status;
  uint64_t end = 0;
  bool registered = false;
  {
    const absl::MutexLock lock(&mutex_);
    registered = server_.has_value();
    // Whoever waits for the end of it wants to know from the coordinator itself.
    if (std::exchange(asked_at_, records_part_.wakes) != records_part_.wakes) synchronized_ = false;
  }
  if (RealClock().Monotonic() - synchronized_at_ > options_.resynchronize) synchronized_ = false;
  if (!registered) {
    synchronized_ = false;
    LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> entry, Registration());
    if (!entry) return false;
    LOCKSTEP_RETURN_IF_ERROR(Register(*entry));
  }
  const bool fresh = !synchronized_;
  if (fresh) status = Synchronize();
  if (status.ok()) {
    LOCKSTEP_ASSIGN_OR_RETURN(end, records_->EndStep());
    status = SendRecords(end);
  }
  if (!status.ok()) {
    // The coordinator is asked anew how far it is; it may have lost what it had.
    synchronized_ = false;
    if (!fresh && !rpc::ReasonOf(status).empty() && !Forgotten(status)) {
      return absl::UnavailableError(status.message());
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(status);
  const absl::MutexLock lock(&mutex_);
  return progress_.next_step < end;
}

// How far the coordinator is, if its log and its history are ours.
absl::Status Publisher::Synchronize() {
  LOCKSTEP_ASSIGN_OR_RETURN(const ServerInfo info, client_->GetServerInfo());
  LOCKSTEP_RETURN_IF_ERROR(CheckLog(info));
  LOCKSTEP_ASSIGN_OR_RETURN(const RunProgress there, client_->GetProgress(run_.run_id()));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t end, records_->EndStep());
  if (there.next_step < records_->first_step()) {
    return absl::InternalError(absl::StrCat("the coordinator has this run up to step ",
                                            there.next_step, ", and it begins at ",
                                            records_->first_step()));
  }
  if (there.next_step <= end) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Digest chain, records_->ChainBefore(there.next_step));
    if (chain != there.chain) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the coordinator has another history of this run: before step ", there.next_step,
          " its chain is ", there.chain.ToHex(), ", and that of ", run_.StepLogPath(), " ",
          chain.ToHex(), "; nothing was sent. A run that is trained anew is another run"));
    }
  } else if (!std::exchange(told_of_fewer_, true)) {
    LOCKSTEP_LOG_WARNING(
        "the coordinator has records up to step {}, and {} up to step {}: training will make them "
        "again; if they come out differently, they are not sent",
        there.next_step, run_.StepLogPath(), end);
  }
  {
    const absl::MutexLock lock(&mutex_);
    if (server_) server_ = info;
    const absl::StatusOr<std::optional<PublishProgress>> kept = folder_.ReadProgress();
    if (kept.ok() && *kept && (*kept)->next_step > there.next_step) {
      LOCKSTEP_LOG_WARNING(
          "the coordinator acknowledged records up to step {} and now has them up to step {}: it "
          "has lost or hidden some; its receipts are in {}/receipts. They are sent again",
          (*kept)->next_step, there.next_step, folder_.path());
      evaluated_.clear();
    }
    const std::set<uint64_t> announced(there.checkpoints.begin(), there.checkpoints.end());
    if (announced != announced_) ++artifacts_part_.wakes;
    announced_ = announced;
  }
  Acknowledge(there.next_step, there.chain);
  synchronized_ = true;
  synchronized_at_ = RealClock().Monotonic();
  return absl::OkStatus();
}

absl::Status Publisher::SendRecords(uint64_t end) {
  uint64_t begin = 0;
  ServerInfo info;
  {
    const absl::MutexLock lock(&mutex_);
    begin = progress_.next_step;
    info = *server_;
  }
  // Fewer here than there: a power failure took the end of the log, and training makes it again.
  if (begin >= end) return absl::OkStatus();
  end = std::min(end, begin + kRecordsInACall);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<audit::StepRecord> records,
                            records_->Read(begin, end));
  {
    const absl::MutexLock lock(&mutex_);
    if (records.front().previous_chain != progress_.chain) {
      return absl::FailedPreconditionError(
          absl::StrCat("the record of step ", begin, " in ", run_.StepLogPath(),
                       " does not follow the chain that the coordinator has, ",
                       progress_.chain.ToHex(), "; it was not sent"));
    }
  }
  std::vector<std::string> envelopes;
  const Ed25519PrivateKey* const keys[] = {&key_};
  for (const audit::StepRecord& record : records) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        std::string entry,
        audit::MakeLogEntry(audit::PublishedRecord{.run_id = run_.run_id(), .record = record},
                            keys));
    envelopes.push_back(std::move(entry));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const CoordinatorClient::Published published,
                            client_->PublishRecords(run_.run_id(), envelopes, info.log_key));
  if (published.next_step != end) {
    return absl::UnavailableError(absl::StrCat("the coordinator took records up to step ", end,
                                               " and says that it has them up to ",
                                               published.next_step));
  }
  Keep("records", published.last);
  Acknowledge(end, audit::ChainAfter(records.back()));
  return absl::OkStatus();
}

void Publisher::Acknowledge(uint64_t next_step, const Digest& chain) {
  const absl::MutexLock lock(&mutex_);
  const PublishProgress progress{.next_step = next_step, .chain = chain};
  if (progress == progress_) return;
  progress_ = progress;
  ++artifacts_part_.wakes;  // states may wait for it
  if (const absl::Status status = folder_.SaveProgress(progress); !status.ok()) {
    LOCKSTEP_LOG_WARNING("cannot remember how far the run is published: {}", status);
  }
}

void Publisher::Keep(absl::string_view name, const CoordinatorClient::MaybeReceipt& receipt) {
  const absl::MutexLock lock(&mutex_);
  if (!receipt) {
    if (!std::exchange(told_of_no_receipt_, true)) {
      LOCKSTEP_LOG_WARNING("the coordinator gives no receipts: it could not be held to its word");
    }
    return;
  }
  if (const absl::Status status = folder_.SaveReceipt(name, *receipt); !status.ok()) {
    LOCKSTEP_LOG_WARNING("cannot keep the coordinator's receipt: {}", status);
  }
}

// The coordinator does not know the run: it is told everything again.
void Publisher::Forget() {
  const absl::MutexLock lock(&mutex_);
  server_ = std::nullopt;
  announced_.clear();
  evaluated_.clear();
  inputs_there_ = false;
  ++generation_;
  ++records_part_.wakes;
  ++artifacts_part_.wakes;
}

// ---- Artifacts

absl::StatusOr<bool> Publisher::ArtifactsPass() {
  uint64_t next_step = 0;
  uint64_t generation = 0;
  bool inputs_there = false;
  std::optional<ServerInfo> info;
  {
    const absl::MutexLock lock(&mutex_);
    info = server_;
    next_step = progress_.next_step;
    inputs_there = inputs_there_;
    generation = generation_;
  }
  if (!info) return false;
  if (!inputs_there) {
    if (!inputs_) {
      LOCKSTEP_ASSIGN_OR_RETURN(inputs_, InputArtifacts(run_));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> entry, Registration());
    if (!entry) return false;
    for (size_t begin = 0; begin < inputs_->size(); begin += kArtifactsInACall) {
      const auto first = inputs_->begin() + static_cast<ptrdiff_t>(begin);
      const auto last = inputs_->begin() + static_cast<ptrdiff_t>(std::min(
                                               inputs_->size(), begin + kArtifactsInACall));
      LOCKSTEP_RETURN_IF_ERROR(
          client_->RegisterRun(*entry, {first, last}, options_.mirrors, info->log_key).status());
    }
    LOCKSTEP_RETURN_IF_ERROR(Upload(*inputs_));
    const absl::MutexLock lock(&mutex_);
    if (generation == generation_) inputs_there_ = true;
    return true;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> evaluations,
                            engine::ListEvaluations(run_));
  for (const std::string& name : evaluations) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool published, PublishEvaluation(name, next_step));
    if (published) return true;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<CheckpointPlace> places, CheckpointPlaces(run_));
  for (const CheckpointPlace& place : places) {
    {
      const absl::MutexLock lock(&mutex_);
      if (announced_.contains(place.step)) continue;
    }
    if (place.step > next_step || gone_.contains(place.step)) continue;
    return PublishCheckpoint(place.step, place.folder);
  }
  return false;
}

absl::Status Publisher::Upload(const std::vector<RunArtifact>& artifacts) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<RunArtifact> missing, client_->Missing(artifacts));
  net::UploadOptions options;
  {
    const absl::MutexLock lock(&mutex_);
    if (!server_) return absl::UnavailableError("the run is not registered");
    options.address = server_->artifact_url;
    options.audience = server_->log_key.name;
  }
  options.signer = {.key = key_.public_key().bytes,
                    .sign = [this](ByteSpan text) -> absl::StatusOr<Ed25519Signature> {
                      return key_.Sign(text);
                    }};
  for (const RunArtifact& artifact : missing) {
    if (artifact.path.empty() || options.address.empty()) {
      return absl::NotFoundError(absl::StrCat(
          artifact.name, " ", artifact.sha256.ToHex(), " is wanted by the coordinator, and ",
          artifact.path.empty() ? "is not on this machine" : "it takes no uploads",
          "; put it on a mirror (`lockstep artifacts sync`) and name that with --mirror"));
    }
    const absl::Status status =
        net::UploadArtifact(*http_, options, artifact.sha256, artifact.path);
    // The address's errors are no faults of this machine's files.
    if (absl::IsFailedPrecondition(status)) return absl::UnavailableError(status.message());
    LOCKSTEP_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Publisher::PublishCheckpoint(uint64_t step, const std::string& folder) {
  const auto pass_over = [&](const absl::Status& why) {
    LOCKSTEP_LOG_WARNING("the state before step {} is not published: {}", step, TextOf(why));
    gone_.insert(step);
    return true;
  };
  const absl::StatusOr<CheckpointArtifacts> checkpoint = ReadCheckpoint(run_, folder);
  if (!checkpoint.ok()) return pass_over(checkpoint.status());
  const absl::Status uploaded = Upload(checkpoint->files);
  // Its files are removed or damaged meanwhile; others may be whole.
  if (absl::IsNotFound(uploaded) || absl::IsDataLoss(uploaded)) return pass_over(uploaded);
  LOCKSTEP_RETURN_IF_ERROR(uploaded);
  const Ed25519PrivateKey* const keys[] = {&key_};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string entry,
                            audit::MakeLogEntry(checkpoint->announcement, keys));
  audit::NoteKey log_key;
  {
    const absl::MutexLock lock(&mutex_);
    if (!server_) return true;
    log_key = server_->log_key;
  }
  const absl::StatusOr<CoordinatorClient::MaybeReceipt> receipt =
      client_->AnnounceCheckpoint(entry, checkpoint->files, options_.mirrors, log_key);
  if (IsRefusedForGood(receipt.status())) return pass_over(receipt.status());
  LOCKSTEP_RETURN_IF_ERROR(receipt.status());
  Keep(absl::StrCat("checkpoint-", step), *receipt);
  const absl::MutexLock lock(&mutex_);
  announced_.insert(step);
  return true;
}

// False: there is nothing to be done about it now.
absl::StatusOr<bool> Publisher::PublishEvaluation(const std::string& name, uint64_t next_step) {
  audit::NoteKey log_key;
  {
    const absl::MutexLock lock(&mutex_);
    if (!server_ || evaluated_.contains(name)) return false;
    log_key = server_->log_key;
  }
  if (evaluations_gone_.contains(name)) return false;
  const auto pass_over = [&](const absl::Status& why) {
    LOCKSTEP_LOG_WARNING("the evaluation {} is not published: {}", name, TextOf(why));
    evaluations_gone_.insert(name);
    return false;
  };
  const absl::StatusOr<audit::Evaluation> evaluation = engine::ReadEvaluation(run_, name);
  if (!evaluation.ok()) return pass_over(evaluation.status());
  // Once the coordinator has the records before it.
  if (evaluation->next_step > next_step) return false;
  const Ed25519PrivateKey* const keys[] = {&key_};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string entry, audit::MakeLogEntry(*evaluation, keys));
  const absl::StatusOr<CoordinatorClient::MaybeReceipt> receipt =
      client_->PublishEvaluation(entry, log_key);
  // A chain that is not the run's: an evaluation of steps that were taken back.
  if (IsRefusedForGood(receipt.status()) || rpc::ReasonOf(receipt.status()) == "CHAIN_BROKEN") {
    return pass_over(receipt.status());
  }
  LOCKSTEP_RETURN_IF_ERROR(receipt.status());
  Keep(absl::StrCat("evaluation-", name), *receipt);
  const absl::MutexLock lock(&mutex_);
  evaluated_.insert(name);
  return true;
}

}  // namespace lockstep::trainer
