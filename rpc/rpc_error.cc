// SPDX-License-Identifier: Apache-2.0
//
// Statuses to and from the wire.
#include "rpc/rpc_error.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace lockstep::rpc {
namespace {

constexpr char kPayload[] = "lockstep.v1/ErrorInfo";
constexpr char kDomain[] = "lockstep.v1";
constexpr size_t kMessageBytesMax = 1024;

google::rpc::ErrorInfo InfoOf(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  if (payload && !info.ParseFromString(std::string(*payload))) info.Clear();
  return info;
}

// Cut at a character, and what is no UTF-8 replaced: a proto3 string holds nothing else.
std::string Utf8Message(absl::string_view text) {
  std::string out;
  size_t i = 0;
  while (i < text.size() && out.size() < kMessageBytesMax) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xc2 && lead < 0xe0 ? 2
                          : lead >= 0xe0 && lead < 0xf0 ? 3
                          : lead >= 0xf0 && lead < 0xf5 ? 4
                                                        : 0;
    bool whole = length > 0 && i + length <= text.size();
    for (size_t k = 1; whole && k < length; ++k) {
      whole = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    }
    if (whole) {
      out.append(text.data() + i, length);
      i += length;
    } else {
      out += '?';
      ++i;
    }
  }
  return out;
}

bool KeepsItsCode(absl::StatusCode code) {
  return code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDeadlineExceeded ||
         code == absl::StatusCode::kCancelled || code == absl::StatusCode::kResourceExhausted;
}

// What the caller may know of an error of such a code.
const char* FixedText(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return "not available now; try again later";
    case absl::StatusCode::kDeadlineExceeded:
      return "there was not enough time for the answer";
    case absl::StatusCode::kCancelled:
      return "the call was ended";
    default:
      return "too much is under way, or stored; try again later";
  }
}

}  // namespace

absl::Status WithReason(absl::Status status, absl::string_view reason, const Metadata& metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain(kDomain);
  for (const auto& [key, value] : metadata) (*info.mutable_metadata())[key] = value;
  status.SetPayload(kPayload, absl::Cord(info.SerializeAsString()));
  return status;
}

std::string ReasonOf(const absl::Status& status) { return InfoOf(status).reason(); }

Metadata MetadataOf(const absl::Status& status) {
  const google::rpc::ErrorInfo info = InfoOf(status);
  return {info.metadata().begin(), info.metadata().end()};
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::ErrorInfo info = InfoOf(status);
  absl::StatusCode code = status.code();
  std::string message = Utf8Message(status.message());
  if (info.reason().empty()) {
    info.set_domain(kDomain);
    // Texts without a reason are for the server's log: they name files and statements.
    if (KeepsItsCode(code)) {
      info.set_reason(absl::StatusCodeToString(code));
      message = FixedText(code);
    } else {
      code = absl::StatusCode::kInternal;
      info.set_reason("INTERNAL");
      message = "internal error; the coordinator's log has more";
    }
  }
  google::rpc::Status details;
  details.set_code(static_cast<int>(code));
  details.set_message(message);
  details.add_details()->PackFrom(info);
  return {static_cast<grpc::StatusCode>(code), message, details.SerializeAsString()};
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = status.error_code();
  absl::Status made(code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated)
                        ? static_cast<absl::StatusCode>(code)
                        : absl::StatusCode::kUnknown,
                    status.error_message());
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return made;
  for (const auto& detail : details.details()) {
    google::rpc::ErrorInfo info;
    if (!detail.Is<google::rpc::ErrorInfo>() || !detail.UnpackTo(&info)) continue;
    if (info.domain() != kDomain) continue;
    return WithReason(std::move(made), info.reason(),
                      {info.metadata().begin(), info.metadata().end()});
  }
  return made;
}

}  // namespace lockstep::rpc
