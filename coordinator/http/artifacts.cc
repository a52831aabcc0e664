// SPDX-License-Identifier: Apache-2.0
//
// See artifacts.h.
#include "coordinator/http/artifacts.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/logging.h"
#include "base/status.h"
#include "coordinator/http/file_response.h"
#include "coordinator/http/nonce_memory.h"
#include "net/http_range.h"

namespace lockstep::coordinator {
namespace {

constexpr absl::string_view kPrefix = "/artifact/";

// Digits are lower-case: an artifact has one address.
std::optional<Digest> DigestOfPath(absl::string_view path) {
  if (!absl::ConsumePrefix(&path, kPrefix)) return std::nullopt;
  const absl::StatusOr<Digest> digest = Digest::FromHex(path);
  if (!digest.ok() || digest->ToHex() != path) return std::nullopt;
  return *digest;
}

HttpResponse Get(const ArtifactStore& store, const HttpRequest& request) {
  const std::optional<Digest> digest = DigestOfPath(request.path);
  if (!digest) return TextResponse(404, "expected /artifact/ and 64 digits");
  auto file = store.Find(*digest);
  if (absl::IsNotFound(file.status())) return TextResponse(404, "there is no such artifact");
  if (!file.ok()) {
    LOCKSTEP_LOG_ERROR("artifact {}: {}", digest->ToHex(), file.status());
    return TextResponse(503, "the artifact cannot be read");
  }
  return FileResponse(request, *std::move(file),
                      {.content_type = "application/octet-stream",
                       .cache_control = kImmutable,
                       .etag = digest->ToHex()});
}

HttpResponse WithHeader(HttpResponse response, const char* name, std::string value) {
  response.headers.emplace_back(name, std::move(value));
  return response;
}

HttpResponse OffsetResponse(int status, uint64_t offset, absl::string_view text) {
  return WithHeader(TextResponse(status, text), "Upload-Offset", absl::StrCat(offset));
}

// What went wrong with an upload, as an answer.
HttpResponse ErrorResponse(const absl::Status& status) {
  const std::string text(status.message());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return TextResponse(400, text);
    case absl::StatusCode::kUnauthenticated:
      return WithHeader(TextResponse(401, text), "WWW-Authenticate", "lockstep-ed25519");
    case absl::StatusCode::kPermissionDenied:
      return TextResponse(403, text);
    case absl::StatusCode::kAlreadyExists:
      return TextResponse(200, text);
    case absl::StatusCode::kOutOfRange:
      return TextResponse(413, text);
    case absl::StatusCode::kDataLoss:
      return TextResponse(422, text);
    case absl::StatusCode::kResourceExhausted:
      return TextResponse(507, text);
    case absl::StatusCode::kUnavailable:
      return WithHeader(TextResponse(503, text), "Retry-After", "1");
    default:
      LOCKSTEP_LOG_ERROR("upload: {}", status);
      return WithHeader(TextResponse(503, "the upload cannot be stored"), "Retry-After", "10");
  }
}

// All bytes are here.
HttpResponse FinishUpload(ArtifactStore::Upload& upload) {
  const absl::Status status = upload.Finish();
  if (!status.ok()) return ErrorResponse(status);
  return TextResponse(201, "the artifact is complete");
}

// The body of a part. What of it came is kept, however it ends.
class PartBody final : public RequestBody {
 public:
  explicit PartBody(std::unique_ptr<ArtifactStore::Upload> upload) : upload_(std::move(upload)) {}

  std::optional<HttpResponse> Write(ByteSpan bytes) override {
    const absl::Status status = upload_->Append(bytes);
    if (status.ok()) return std::nullopt;
    return ErrorResponse(status);
  }
  HttpResponse Finish() override {
    if (upload_->offset() == upload_->bytes()) return FinishUpload(*upload_);
    if (const absl::Status status = upload_->Sync(); !status.ok()) return ErrorResponse(status);
    return OffsetResponse(202, upload_->offset(), "the part is kept");
  }

 private:
  const std::unique_ptr<ArtifactStore::Upload> upload_;
};

class Uploads {
 public:
  Uploads(ArtifactStore& store, UploadRules rules)
      : store_(store),
        rules_(std::move(rules)),
        workers_nonces_(rules_.nonces_max, rules_.nonces_per_owner_max, 2 * rules_.clock_skew_max),
        trainers_nonces_(rules_.nonces_max, rules_.nonces_per_owner_max,
                         2 * rules_.clock_skew_max) {}

  UploadAnswer Put(const HttpRequest& request) {
    const std::optional<Digest> digest = DigestOfPath(request.path);
    if (!digest) return TextResponse(404, "expected /artifact/ and 64 digits");
    const absl::StatusOr<net::ContentRange> range = RangeOf(request);
    if (!range.ok()) return ErrorResponse(range.status());
    const absl::StatusOr<UploadGrant> grant = Authorize(request, *digest, *range->total);
    if (!grant.ok()) return ErrorResponse(grant.status());
    auto upload = store_.Resume({.digest = *digest,
                                 .bytes = *range->total,
                                 .owner = grant->owner,
                                 .owner_bytes_max = grant->quota_bytes,
                                 .trainer = grant->trainer});
    if (!upload.ok()) return ErrorResponse(upload.status());
    const uint64_t offset = (*upload)->offset();
    if (!range->first) {
      if (offset == *range->total) return FinishUpload(**upload);
      // What a broken part left was never brought to the disk.
      if (const absl::Status status = (*upload)->Sync(); !status.ok()) return ErrorResponse(status);
      return OffsetResponse(202, offset, "the upload goes on from here");
    }
    if (*range->first != offset) return OffsetResponse(409, offset, "the upload is not there");
    return std::make_unique<PartBody>(*std::move(upload));
  }

 private:
  // The Content-Range, which says how long the body is and how long the artifact.
  static absl::StatusOr<net::ContentRange> RangeOf(const HttpRequest& request) {
    const auto header = request.Header("content-range");
    if (!header) return absl::InvalidArgumentError("expected a Content-Range");
    LOCKSTEP_ASSIGN_OR_RETURN(const net::ContentRange range, net::ParseContentRange(*header));
    if (!range.total) return absl::InvalidArgumentError("expected the artifact's size");
    const uint64_t body = range.first ? *range.last - *range.first + 1 : 0;
    if (request.content_length != body) {
      return absl::InvalidArgumentError("Content-Length and Content-Range do not agree");
    }
    return range;
  }

  absl::StatusOr<UploadGrant> Authorize(const HttpRequest& request, const Digest& digest,
                                        uint64_t bytes) {
    const auto header = request.Header("authorization");
    if (!header) return absl::UnauthenticatedError("expected a signed request");
    const absl::StatusOr<net::RequestSignature> signature = net::ParseAuthorization(*header);
    if (!signature.ok()) return absl::UnauthenticatedError(signature.status().message());
    const absl::Duration skew = absl::FromUnixSeconds(signature->time) - rules_.clock->Now();
    if (absl::AbsDuration(skew) > rules_.clock_skew_max) {
      return absl::UnauthenticatedError(
          absl::StrCat("the request's time differs from the server's by ",
                       absl::FormatDuration(skew), "; set the clock right"));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::string text,
        net::SigningText({.method = "PUT",
                          .path = request.path,
                          .audience = rules_.audience,
                          .content_range = std::string(*request.Header("content-range")),
                          .time = signature->time,
                          .nonce = signature->nonce}));
    LOCKSTEP_ASSIGN_OR_RETURN(UploadGrant grant, rules_.authorize(*signature, text));
    LOCKSTEP_RETURN_IF_ERROR(rules_.wants(signature->key, digest, bytes));
    // Only now, so that strangers cannot fill the memory.
    NonceMemory& nonces = grant.trainer ? trainers_nonces_ : workers_nonces_;
    const absl::Status is_new =
        nonces.Add({signature->key, signature->nonce}, grant.owner, rules_.clock->Monotonic());
    if (absl::IsAlreadyExists(is_new)) return absl::UnauthenticatedError(is_new.message());
    if (!is_new.ok()) return is_new;
    return grant;
  }

  ArtifactStore& store_;
  const UploadRules rules_;
  NonceMemory workers_nonces_;
  NonceMemory trainers_nonces_;
};

}  // namespace

void ServeArtifacts(const ArtifactStore& store, Router& router) {
  router.Get(
      std::string(kPrefix), [&store](const HttpRequest& request) { return Get(store, request); },
      Router::Origins::kAny);
}

void ServeArtifacts(ArtifactStore& store, UploadRules rules, Router& router) {
  ServeArtifacts(store, router);
  const auto uploads = std::make_shared<Uploads>(store, std::move(rules));
  router.Put(std::string(kPrefix),
             [uploads](const HttpRequest& request) { return uploads->Put(request); });
}

}  // namespace lockstep::coordinator
