// SPDX-License-Identifier: Apache-2.0
//
// Tells ThreadSanitizer of absl::Mutex and of the references to an absl::Status's message, which a
// distribution's Abseil was not built to do: without this everything under such a mutex is reported
// as a race, and so is the end of a status that two threads had. Each operation that our code calls
// goes through a wrapper here (ld's --wrap, set by cmake/Sanitizers.cmake). Only in builds with
// -fsanitize=thread; the order that the mutex makes is modelled, deadlocks are not.
#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
// Whoever gives the mutex back evaluates the others' conditions under it, and so reads what they
// guard after it has been released here.
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);

// Reports with a frame in libraries that were not built for it either (OpenSSL: what gRPC's threads
// hand each other under mutexes of gRPC's).
const char* __tsan_default_suppressions() {
  return "race:libgrpc.so\nrace:libgrpc++.so\nrace:libgpr.so\nrace:libupb.so\nrace:libabsl_\nrace:"
         "libcrypto.so\n";
}
}

namespace {

template <typename Operation>
auto Inside(const Operation& operation) {
  struct Ignored {
    Ignored() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
    ~Ignored() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
  } const ignored;
  return operation();
}

}  // namespace

// LOCKSTEP_ABSL_NAMESPACE: how a name in namespace absl begins, mangled.
#define REAL(name) __asm__("__real_" LOCKSTEP_ABSL_NAMESPACE name)
#define WRAPPED(name) __asm__("__wrap_" LOCKSTEP_ABSL_NAMESPACE name)

#define LOCKS(function, name)                            \
  void Real##function(absl::Mutex* mutex) REAL(name);    \
  void Wrap##function(absl::Mutex* mutex) WRAPPED(name); \
  void Wrap##function(absl::Mutex* mutex) {              \
    Inside([&] { Real##function(mutex); });              \
    __tsan_acquire(mutex);                               \
  }
#define UNLOCKS(function, name)                          \
  void Real##function(absl::Mutex* mutex) REAL(name);    \
  void Wrap##function(absl::Mutex* mutex) WRAPPED(name); \
  void Wrap##function(absl::Mutex* mutex) {              \
    __tsan_release(mutex);                               \
    Inside([&] { Real##function(mutex); });              \
  }
LOCKS(Lock, "5Mutex4LockEv")
LOCKS(ReaderLock, "5Mutex10ReaderLockEv")
UNLOCKS(Unlock, "5Mutex6UnlockEv")
UNLOCKS(ReaderUnlock, "5Mutex12ReaderUnlockEv")

// Each gives the mutex back while it waits.
void RealAwait(absl::Mutex* mutex, const absl::Condition& condition)
    REAL("5Mutex5AwaitERKNS0_9ConditionE");
void WrapAwait(absl::Mutex* mutex, const absl::Condition& condition)
    WRAPPED("5Mutex5AwaitERKNS0_9ConditionE");
void WrapAwait(absl::Mutex* mutex, const absl::Condition& condition) {
  __tsan_release(mutex);
  Inside([&] { RealAwait(mutex, condition); });
  __tsan_acquire(mutex);
}

bool RealAwaitWithTimeout(absl::Mutex* mutex, const absl::Condition& condition,
                          absl::Duration timeout)
    REAL("5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
bool WrapAwaitWithTimeout(absl::Mutex* mutex, const absl::Condition& condition,
                          absl::Duration timeout)
    WRAPPED("5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
bool WrapAwaitWithTimeout(absl::Mutex* mutex, const absl::Condition& condition,
                          absl::Duration timeout) {
  __tsan_release(mutex);
  const bool holds = Inside([&] { return RealAwaitWithTimeout(mutex, condition, timeout); });
  __tsan_acquire(mutex);
  return holds;
}

// Takes a reference away, as the library does, by an operation that is seen.
void WrapUnref(uintptr_t rep) WRAPPED("6Status15UnrefNonInlinedEm");
void WrapUnref(uintptr_t rep) {
  auto* const shared = reinterpret_cast<absl::status_internal::StatusRep*>(rep - 1);
  if (shared->ref.fetch_sub(1, std::memory_order_acq_rel) == 1) delete shared;
}
