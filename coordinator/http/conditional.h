// SPDX-License-Identifier: Apache-2.0
//
// Answers that the reader may have already (RFC 9110 sections 8.8.3 and 13).
#ifndef LOCKSTEP_COORDINATOR_HTTP_CONDITIONAL_H_
#define LOCKSTEP_COORDINATOR_HTTP_CONDITIONAL_H_

#include <string>

#include "absl/strings/string_view.h"
#include "base/bytes.h"
#include "coordinator/http/message.h"

namespace lockstep::coordinator {

// Whether a list of entity tags ("*", or quoted, comma-separated) has `etag`, with its quotes, in
// it. `weak`: a tag marked as weak matches too (RFC 9110 section 8.8.3.2). Our tags hold no comma.
bool MatchesETag(absl::string_view list, absl::string_view etag, bool weak);

// A strong tag for these bytes, with its quotes.
std::string ETagOf(ByteSpan bytes);

// `whole`, whose body is text, with `etag`; or 304 without the body if that is what the reader has.
HttpResponse Conditional(const HttpRequest& request, const std::string& etag, HttpResponse whole);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_CONDITIONAL_H_
