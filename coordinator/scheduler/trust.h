// SPDX-License-Identifier: Apache-2.0
//
// What a key has earned: adaptive replication and quotas, after BOINC's (D. P. Anderson, "BOINC: A
// Platform for Volunteer Computing", 2019, section 3.4 and 6.4). Pure functions: outcomes in, trust
// out. Nothing here decides what counts as a match (audit/evidence/quorum.h); it decides how much
// work a key gets and how often others look at it.

#ifndef LOCKSTEP_COORDINATOR_SCHEDULER_TRUST_H_
#define LOCKSTEP_COORDINATOR_SCHEDULER_TRUST_H_

#include <cstdint>

namespace lockstep::coordinator {

// Times are service time (store/service_time.h), in ms.
struct KeyTrust {
  int64_t valid_in_a_row = 0;     // since the last invalid result
  int64_t valid = 0;              // results that turned out right, in all
  int64_t invalid = 0;            // wrong ones, failed openings and canaries, in all
  int64_t expired = 0;            // leases that ended without what was promised, in all
  int64_t canaries = 0;           // canaries answered rightly, in all
  int64_t failures_in_a_row = 0;  // invalid results and expired leases since the last valid one
  int64_t quota_steps = 0;        // steps that may be leased to the key at once; 0 is a new key's
  int64_t not_before_ms = 0;      // no lease before this time
  int64_t undone_in_a_row = 0;    // leases handed back without anything done in them

  bool operator==(const KeyTrust&) const = default;
};

struct TrustPolicy {
  int64_t valid_in_a_row_min = 10;  // for a key to be trusted
  int64_t quota_steps_new = 4;      // of a key nobody knows
  int64_t quota_steps_max = 1024;
  int64_t backoff_ms = 60'000;  // after the first failure; doubles with each in a row
  int64_t backoff_ms_max = 24 * 3'600'000;
  int64_t undone_free = 2;  // leases in a row that may be handed back undone
  // Share of leases with a canary: of keys that are not trusted, and the least of those that are.
  double canary_share_new = 0.125;
  double canary_share_min = 1.0 / 64;
};

bool IsTrusted(const KeyTrust& trust, const TrustPolicy& policy);

// Steps that may be leased to the key at once: the new key's quota until it has one of its own.
int64_t QuotaSteps(const KeyTrust& trust, const TrustPolicy& policy);

// One attested step that turned out right: confirmed by others, its opening right.
KeyTrust AfterValidStep(KeyTrust trust);
// A lease whose steps all came back in time: the quota doubles once for it, and not for each step.
KeyTrust AfterGoodLease(KeyTrust trust, const TrustPolicy& policy);
// Wrong result, failed opening, failed canary: the row begins anew, and the quota is the least.
KeyTrust AfterInvalid(KeyTrust trust, const TrustPolicy& policy, int64_t now_ms);
// A lease that ran out with steps undone: half the quota, and from the second failure in a row on
// also a wait, since everybody's power fails once.
KeyTrust AfterExpired(KeyTrust trust, const TrustPolicy& policy, int64_t now_ms);

// A lease handed back before its time, with something done in it.
KeyTrust AfterPartOfLease(KeyTrust trust);
// With nothing done: a machine's owner may want it back now and then. From the third in a row on it
// is what a lease is that ran out: else who hoards had only to let go in time.
KeyTrust AfterUndoneLease(KeyTrust trust, const TrustPolicy& policy, int64_t now_ms);

// Whether another operator should look at a step that this key alone has attested, though the run's
// quorum asks for one only: always for a key not trusted, with probability 1 / valid_in_a_row for
// one that is. `uniform` in [0, 1) is drawn once for each attestation.
bool NeedsReplication(const KeyTrust& trust, const TrustPolicy& policy, double uniform);

// The share of this key's leases that should hold a canary.
double CanaryShare(const KeyTrust& trust, const TrustPolicy& policy);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_SCHEDULER_TRUST_H_
