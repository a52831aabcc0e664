// SPDX-License-Identifier: Apache-2.0
//
// Heartbeats and deliveries.
#include "worker/courier.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/logging.h"
#include "rpc/rpc_error.h"
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
      send_at_(RealClock().Monotonic()),
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

bool Courier::Finish() {
  const absl::MutexLock lock(&mutex_);
  finishing_ = to_send_ = true;
  mutex_.Await(absl::Condition(&ended_));
  return all_sent_;
}

void Courier::Work() {
  const absl::Duration every = options_.heartbeat / 3;
  absl::Duration heartbeat_at = RealClock().Monotonic();
  while (true) {
    const absl::Duration now = RealClock().Monotonic();
    if (now >= heartbeat_at && lost().empty()) {
      Heartbeat();
      heartbeat_at = RealClock().Monotonic() + every;
    }
    bool send = false;
    {
      const absl::MutexLock lock(&mutex_);
      send = to_send_ && now >= send_at_;
    }
    if (send) Send(heartbeat_at);
    const bool empty = outbox_.Pending(server_.origin).empty();
    const bool stop = options_.stop && options_.stop();
    const absl::MutexLock lock(&mutex_);
    all_sent_ = empty;
    if (finishing_ && (empty || stop || untrusted_)) ended_ = true;
    if (ended_) return;
    // Looks around ten times a second at least, since `stop` wakes nobody.
    mutex_.AwaitWithTimeout(absl::Condition(&ended_),
                            std::min(every, absl::Milliseconds(to_send_ ? 20 : 50)));
    if (ended_) return;
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
  if (answer.ok() && !answer->go_on()) {
    lost = "the coordinator has no use for it any more";
  } else if (!answer.ok()) {
    const std::string reason = rpc::ReasonOf(answer.status());
    if (reason == "LEASE_UNKNOWN" || reason == "LEASE_EXPIRED" || reason == "LEASE_FOREIGN") {
      lost = absl::StrCat(reason, ": ", answer.status().message());
    } else {
      LOCKSTEP_LOG_WARNING("heartbeat: {}", answer.status());
    }
  }
  const absl::MutexLock lock(&mutex_);
  lost_ = std::move(lost);
}

void Courier::Send(absl::Duration until) {
  {
    const absl::MutexLock lock(&mutex_);
    to_send_ = false;  // before looking: what comes meanwhile asks again
  }
  SendReport report;
  const absl::Status status = SendOutbox(
      outbox_, coordinator_, server_, key_,
      [&] { return RealClock().Monotonic() >= until || (options_.stop && options_.stop()); },
      &report);
  const absl::MutexLock lock(&mutex_);
  if (status.ok()) {
    backoff_.Reset();
    return;
  }
  to_send_ = true;
  if (absl::IsCancelled(status)) return;
  LOCKSTEP_LOG_WARNING("outbox: {}", status);
  untrusted_ = absl::IsDataLoss(status);
  send_at_ = RealClock().Monotonic() + backoff_.Next();
}

}  // namespace lockstep::worker
