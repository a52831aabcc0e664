// SPDX-License-Identifier: Apache-2.0
//
// Adaptive replication and quotas. See trust.h.

#include "coordinator/scheduler/trust.h"

#include <algorithm>

namespace lockstep::coordinator {
namespace {

// The wait after `failures` in a row, at least 1: backoff_ms, doubled for each after the first.
int64_t BackoffMs(int64_t failures, const TrustPolicy& policy) {
  int64_t wait_ms = policy.backoff_ms;
  for (int64_t i = 1; i < failures && wait_ms < policy.backoff_ms_max; ++i) wait_ms *= 2;
  return std::min(wait_ms, policy.backoff_ms_max);
}

}  // namespace

bool IsTrusted(const KeyTrust& trust, const TrustPolicy& policy) {
  return trust.valid_in_a_row >= policy.valid_in_a_row_min;
}

int64_t QuotaSteps(const KeyTrust& trust, const TrustPolicy& policy) {
  return trust.quota_steps > 0 ? trust.quota_steps : policy.quota_steps_new;
}

KeyTrust AfterValidStep(KeyTrust trust) {
  ++trust.valid;
  ++trust.valid_in_a_row;
  trust.failures_in_a_row = 0;
  trust.not_before_ms = 0;
  return trust;
}

KeyTrust AfterGoodLease(KeyTrust trust, const TrustPolicy& policy) {
  trust.quota_steps = std::min(2 * QuotaSteps(trust, policy), policy.quota_steps_max);
  trust.undone_in_a_row = 0;
  return trust;
}

KeyTrust AfterPartOfLease(KeyTrust trust) {
  trust.undone_in_a_row = 0;
  return trust;
}

KeyTrust AfterUndoneLease(KeyTrust trust, const TrustPolicy& policy, int64_t now_ms) {
  ++trust.undone_in_a_row;
  if (trust.undone_in_a_row <= policy.undone_free) return trust;
  return AfterExpired(trust, policy, now_ms);
}

KeyTrust AfterInvalid(KeyTrust trust, const TrustPolicy& policy, int64_t now_ms) {
  ++trust.invalid;
  ++trust.failures_in_a_row;
  trust.valid_in_a_row = 0;
  trust.quota_steps = 1;
  trust.not_before_ms = now_ms + BackoffMs(trust.failures_in_a_row, policy);
  return trust;
}

KeyTrust AfterExpired(KeyTrust trust, const TrustPolicy& policy, int64_t now_ms) {
  ++trust.expired;
  ++trust.failures_in_a_row;
  trust.quota_steps = std::max<int64_t>(QuotaSteps(trust, policy) / 2, 1);
  if (trust.failures_in_a_row > 1) {
    trust.not_before_ms = now_ms + BackoffMs(trust.failures_in_a_row - 1, policy);
  }
  return trust;
}

bool NeedsReplication(const KeyTrust& trust, const TrustPolicy& policy, double uniform) {
  if (!IsTrusted(trust, policy)) return true;
  return uniform < 1.0 / static_cast<double>(std::max<int64_t>(trust.valid_in_a_row, 1));
}

double CanaryShare(const KeyTrust& trust, const TrustPolicy& policy) {
  if (!IsTrusted(trust, policy)) return policy.canary_share_new;
  const double share = 1.0 / static_cast<double>(std::max<int64_t>(trust.valid_in_a_row, 1));
  return std::clamp(share, policy.canary_share_min, policy.canary_share_new);
}

}  // namespace lockstep::coordinator
