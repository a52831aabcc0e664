// SPDX-License-Identifier: Apache-2.0
//
// A file, or the part of it that was asked for (RFC 9110: conditions and single ranges).
#ifndef LOCKSTEP_COORDINATOR_HTTP_FILE_RESPONSE_H_
#define LOCKSTEP_COORDINATOR_HTTP_FILE_RESPONSE_H_

#include <memory>
#include <string>

#include "coordinator/http/message.h"

namespace lockstep::coordinator {

struct FileKind {
  std::string content_type;
  std::string cache_control;
  std::string etag = {};  // strong, without quotes; empty: none, and no conditions and ranges
};

inline constexpr char kImmutable[] = "public, max-age=31536000, immutable";

// 200, 206, 304, 412 or 416. Several ranges at once are answered with the whole, as is an If-Range
// that does not fit.
HttpResponse FileResponse(const HttpRequest& request, std::shared_ptr<const OpenFile> file,
                          const FileKind& kind);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_FILE_RESPONSE_H_
