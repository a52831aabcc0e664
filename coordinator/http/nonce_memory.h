// SPDX-License-Identifier: Apache-2.0
//
// Signed requests that were seen lately, so that a copy of one is refused.
#ifndef LOCKSTEP_COORDINATOR_HTTP_NONCE_MEMORY_H_
#define LOCKSTEP_COORDINATOR_HTTP_NONCE_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep::coordinator {

// Any thread may call.
class NonceMemory {
 public:
  using Nonce = std::pair<std::array<uint8_t, 32>, std::array<uint8_t, 16>>;  // with its key

  NonceMemory(size_t count_max, size_t count_per_owner_max, absl::Duration lifetime)
      : count_max_(count_max), count_per_owner_max_(count_per_owner_max), lifetime_(lifetime) {}

  // `now` is monotonic. AlreadyExists if it was added within the lifetime; Unavailable if too many
  // were, in all or of the key's owner.
  absl::Status Add(const Nonce& nonce, const std::string& owner, absl::Duration now) {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!by_age_.empty() && now - by_age_.front().at > lifetime_) Forget();
    if (nonces_.contains(nonce)) return absl::AlreadyExistsError("this request was seen before");
    const auto of_owner = by_owner_.find(owner);
    const size_t has = of_owner == by_owner_.end() ? 0 : of_owner->second;
    if (nonces_.size() >= count_max_ || has >= count_per_owner_max_) {
      return absl::UnavailableError("too many signed requests");
    }
    by_age_.push_back({now, nonce, by_owner_.try_emplace(owner, 0).first});
    ++by_age_.back().owner->second;
    nonces_.insert(nonce);
    return absl::OkStatus();
  }

 private:
  using Owners = std::map<std::string, size_t>;
  struct Seen {
    absl::Duration at;
    Nonce nonce;
    Owners::iterator owner;
  };

  void Forget() {
    nonces_.erase(by_age_.front().nonce);
    const Owners::iterator owner = by_age_.front().owner;
    if (--owner->second == 0) by_owner_.erase(owner);
    by_age_.pop_front();
  }

  const size_t count_max_;
  const size_t count_per_owner_max_;
  const absl::Duration lifetime_;
  std::mutex mutex_;  // over all that follows
  std::deque<Seen> by_age_;
  Owners by_owner_;  // how many of each
  std::set<Nonce> nonces_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_NONCE_MEMORY_H_
