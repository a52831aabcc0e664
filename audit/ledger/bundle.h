// SPDX-License-Identifier: Apache-2.0
//
// A log in one file: its signed head, its key's name, and all entries, zstd-compressed. What
// somebody downloads to verify a run without a network. Format: docs/log.md. Written and read as a
// stream: memory does not grow with the log.
#ifndef LOCKSTEP_AUDIT_LEDGER_BUNDLE_H_
#define LOCKSTEP_AUDIT_LEDGER_BUNDLE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/ledger/log_source.h"
#include "audit/log/signed_note.h"
#include "base/file.h"

struct ZSTD_CCtx_s;

namespace lockstep::audit {

class BundleWriter {
 public:
  // Starts a file that Commit will call `path`. `checkpoint` is the log's signed note, whose size
  // says how many entries will follow; DataLoss if it is none.
  static absl::StatusOr<BundleWriter> Create(const std::string& path, const NoteKey& log_key,
                                             absl::string_view checkpoint);

  // The next entry, at most kLogEntryBytesMax bytes.
  absl::Status Append(absl::string_view entry);

  // Brings the file to the disk. FailedPrecondition unless all entries were appended.
  absl::Status Commit();

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  BundleWriter(DurableFile file, uint64_t size, std::unique_ptr<ZSTD_CCtx_s, Free> context)
      : file_(std::move(file)), left_(size), context_(std::move(context)) {}

  absl::Status Write(absl::string_view bytes, bool last);

  DurableFile file_;
  uint64_t left_;
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::string pending_;  // not compressed yet
  std::string output_;
};

// Untrusted input. DataLoss for what is no bundle, one that ends early, goes on too long or needs a
// window of more than 8 MiB.
absl::StatusOr<std::unique_ptr<LogSource>> OpenBundle(const std::string& path);

// Copies a source into a bundle. The source is verified by nobody here.
absl::Status WriteBundle(LogSource& source, const NoteKey& log_key, const std::string& path);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LEDGER_BUNDLE_H_
