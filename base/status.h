// SPDX-License-Identifier: Apache-2.0
//
// How an error travels up: two macros that return it, with room to say what was being done. Errors
// are absl::Status everywhere outside kernels/; a message names the object, what was expected, what
// was found, and what to do.
//
//   absl::StatusOr<Manifest> LoadManifest(const std::string& path) {
//     LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kManifestBytesMax));
//     LOCKSTEP_ASSIGN_OR_RETURN(Manifest m, ParseManifest(bytes), "run manifest ", path);
//     LOCKSTEP_RETURN_IF_ERROR(Validate(m), "run manifest ", path);
//     return m;
//   }

#ifndef LOCKSTEP_BASE_STATUS_H_
#define LOCKSTEP_BASE_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// Returns from the enclosing function if `expr`, an absl::Status, is not OK. Further arguments, as
// absl::StrCat takes them and evaluated only then, go before the message: "context: message".
#define LOCKSTEP_RETURN_IF_ERROR(expr, ...)                                          \
  do {                                                                               \
    if (::absl::Status lockstep_status = (expr); !lockstep_status.ok()) {            \
      return ::lockstep::WithContext(std::move(lockstep_status)                      \
                                         __VA_OPT__(, ::absl::StrCat(__VA_ARGS__))); \
    }                                                                                \
  } while (false)

// Assigns the value of `expr`, an absl::StatusOr, to `lhs`, which may declare a variable (of a
// type without a comma: name it with `using` first), or returns its error as above. It is more than
// one statement, so it cannot be the whole body of an `if`.
#define LOCKSTEP_ASSIGN_OR_RETURN(lhs, expr, ...)                                   \
  LOCKSTEP_STATUS_ASSIGN_(LOCKSTEP_STATUS_NAME_(lockstep_statusor_, __LINE__), lhs, \
                          expr __VA_OPT__(, ) __VA_ARGS__)

#define LOCKSTEP_STATUS_ASSIGN_(statusor, lhs, expr, ...)                          \
  auto statusor = (expr);                                                          \
  if (!statusor.ok()) {                                                            \
    return ::lockstep::WithContext(std::move(statusor).status()                    \
                                       __VA_OPT__(, ::absl::StrCat(__VA_ARGS__))); \
  }                                                                                \
  lhs = *std::move(statusor)

#define LOCKSTEP_STATUS_NAME_(a, b) LOCKSTEP_STATUS_NAME2_(a, b)
#define LOCKSTEP_STATUS_NAME2_(a, b) a##b

namespace lockstep {

// `status` with "context: " before its message; code and payloads stay. OK stays OK.
absl::Status WithContext(absl::Status status, absl::string_view context);
inline absl::Status WithContext(absl::Status status) { return status; }

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_STATUS_H_
