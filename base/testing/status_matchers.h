// SPDX-License-Identifier: Apache-2.0
//
// GoogleTest matchers for absl::Status and absl::StatusOr. For tests only.
//
//   EXPECT_THAT(Validate(m), IsOk());
//   EXPECT_THAT(ReadFile(path, 100), IsOkAndHolds("text"));
//   EXPECT_THAT(ReadFile(path, 3), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("3")));

#ifndef LOCKSTEP_BASE_TESTING_STATUS_MATCHERS_H_
#define LOCKSTEP_BASE_TESTING_STATUS_MATCHERS_H_

#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace lockstep {
namespace status_matchers_internal {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& statusor) {
  return statusor.status();
}

}  // namespace status_matchers_internal

MATCHER(IsOk, negation ? "is an error" : "is OK") {
  const absl::Status& status = status_matchers_internal::StatusOf(arg);
  *result_listener << status;
  return status.ok();
}

MATCHER_P(IsOkAndHolds, value_matcher,
          absl::StrCat(
              negation ? "is an error, or has a value that " : "is OK and has a value that ",
              ::testing::DescribeMatcher<typename std::decay_t<arg_type>::value_type>(value_matcher,
                                                                                      negation))) {
  if (!arg.ok()) {
    *result_listener << arg.status();
    return false;
  }
  return ::testing::ExplainMatchResult(value_matcher, *arg, result_listener);
}

MATCHER_P(StatusIs, code,
          absl::StrCat(negation ? "has not" : "has", " the code ",
                       absl::StatusCodeToString(code))) {
  const absl::Status& status = status_matchers_internal::StatusOf(arg);
  *result_listener << status;
  return status.code() == code;
}

MATCHER_P2(StatusIs, code, message_matcher,
           absl::StrCat(negation ? "does not have" : "has", " the code ",
                        absl::StatusCodeToString(code), negation ? " or" : " and",
                        " has a message that ",
                        ::testing::DescribeMatcher<std::string>(message_matcher, negation))) {
  const absl::Status& status = status_matchers_internal::StatusOf(arg);
  *result_listener << status << " ";
  return status.code() == code &&
         ::testing::ExplainMatchResult(message_matcher, std::string(status.message()),
                                       result_listener);
}

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_TESTING_STATUS_MATCHERS_H_
