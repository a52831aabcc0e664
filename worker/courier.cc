// SPDX-License-Identifier: Apache-2.0
//
// Heartbeats and deliveries.
#include "worker/courier.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/logging.h"
#include "rpc/rpc_error.h"
#include "worker/advice.h"
#include "worker/outbox_sender.h"

namespace lockstep::worker {

Courier::Courier(Coordinator& coordinator, const ServerInfo& server, Outbox& outbox,
                 const Ed25519PrivateKey& key, uint64_t next_step, const CourierOptions& options)
    : coordinator_(coordinator),
      server_(server),
      outbox_(outbox),
      key_(key),
      options_(options),
      backoff_(options.backoff, options.random),
      next_step_(next_step),
      send_at_(options.clock->Monotonic()),
      thread_([this] { Work(); }) {}

Courier::~Courier() {
  {
    const absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  thread_.join();
}

void Courier::SetNextStep(uint64_t step) {
  const absl::MutexLock lock(&mutex_);
  next_step_ = step;
  to_send_ = true;
}

std::string Courier::lost() const {
  const absl::MutexLock lock(&mutex_);
  return lost_;
}

bool Courier::dismissed() const {
  const absl::MutexLock lock(&mutex_);
  return dismissed_;
}

absl::Status Courier::Finish() {
  const absl::MutexLock lock(&mutex_);
  finishing_ = to_send_ = true;
  give_up_at_ = options_.clock->Monotonic() + options_.patience;
  mutex_.Await(absl::Condition(&ended_));
  return outcome_;
}

void Courier::Work() {
  const absl::Duration every = options_.heartbeat / 3;
  absl::Duration heartbeat_at = options_.clock->Monotonic();
  while (true) {
    const absl::Duration now = options_.clock->Monotonic();
    if (now >= heartbeat_at && lost().empty()) {
      Heartbeat();
      heartbeat_at = options_.clock->Monotonic() + every;
    }
    bool send = false;
    {
      const absl::MutexLock lock(&mutex_);
      send = to_send_ && now >= send_at_;
    }
    if (send) Send(heartbeat_at);
    const bool empty = outbox_.Pending(server_.origin).empty();
    const bool stop = options_.stop && options_.stop();
    absl::Duration rest = std::min(every, absl::Milliseconds(50));
    mutex_.Lock();
    if (finishing_) {
      const bool late = options_.clock->Monotonic() >= *give_up_at_;
      const bool failed = !failure_.ok() && (late || !absl::IsUnavailable(failure_));
      ended_ = empty || stop || failed;
      if (ended_ && !empty) outcome_ = stop ? absl::CancelledError("interrupted") : failure_;
    }
    const bool ended = ended_;
    if (to_send_) rest = std::min(rest, absl::Milliseconds(20));
    mutex_.Unlock();
    if (ended) return;
    // Looks around again soon, since nobody wakes it. (Not a timed wait on the mutex: Abseil's are
    // by the time of day, and would wait for a day if somebody set that back by one.)
    std::this_thread::sleep_for(absl::ToChronoNanoseconds(rest));
  }
}

void Courier::Heartbeat() {
  v1::HeartbeatRequest request;
  request.set_lease_id(options_.lease_id);
  {
    const absl::MutexLock lock(&mutex_);
    request.set_next_step(next_step_);
  }
  const absl::StatusOr<v1::HeartbeatResponse> answer = coordinator_.Heartbeat(request);
  std::string lost;
  const bool dismissed = answer.ok() && !answer->go_on();
  if (dismissed) {
    lost = "the coordinator has no use for it any more";
  } else if (!answer.ok()) {
    const std::string reason = rpc::ReasonOf(answer.status());
    if (reason == "LEASE_UNKNOWN" || reason == "LEASE_EXPIRED" || reason == "LEASE_FOREIGN") {
      lost = absl::StrCat(reason, ": ", answer.status().message());
    } else {
      LOCKSTEP_LOG_WARNING("heartbeat: {}", Words(answer.status()));
    }
  }
  const absl::MutexLock lock(&mutex_);
  lost_ = std::move(lost);
  dismissed_ = dismissed;
}

void Courier::Send(absl::Duration until) {
  {
    const absl::MutexLock lock(&mutex_);
    to_send_ = false;  // before looking: what comes meanwhile asks again
  }
  SendReport report;
  const absl::Status status = SendOutbox(
      outbox_, coordinator_, server_, key_,
      [&] { return options_.clock->Monotonic() >= until || (options_.stop && options_.stop()); },
      &report);
  if (options_.delivered && !absl::IsCancelled(status)) options_.delivered(status);
  const absl::MutexLock lock(&mutex_);
  if (absl::IsCancelled(status)) {
    to_send_ = true;
    return;
  }
  failure_ = status;
  if (status.ok()) {
    backoff_.Reset();
    return;
  }
  to_send_ = true;
  LOCKSTEP_LOG_WARNING("outbox: {}", Words(status));
  send_at_ = options_.clock->Monotonic() + backoff_.Next();
}

}  // namespace lockstep::worker
