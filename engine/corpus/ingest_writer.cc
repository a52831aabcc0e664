// SPDX-License-Identifier: Apache-2.0
//
// Life of a part: documents are appended under a temporary name; the file gets its own name and is
// durable; the progress file, which names it, is replaced. A kill before the last of these makes
// the next run write the same part again.
#include "engine/corpus/ingest_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/canonical_json.h"
#include "base/status.h"
#include "engine/corpus/document_store_format.h"

namespace lockstep::engine {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kReportBytesMax = size_t{4} << 20;
constexpr absl::string_view kWhatToDo = "; remove the folder to begin anew, or choose another";

// Makes `folder` and what is above it, durably.
absl::Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return absl::OkStatus();
  const fs::path above = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  if (above != folder) LOCKSTEP_RETURN_IF_ERROR(MakeFolder(above));
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat(folder.string(), ": cannot make the folder"));
  }
  const int fd = open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(above.string(), ": cannot open the folder"));
  const int result = fsync(fd);
  const int reason = errno;
  close(fd);
  if (result == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(reason,
                             absl::StrCat(above.string(), ": cannot bring the folder to the disk"));
}

// What decides the bytes of a store, besides the files.
Digest RequestDigest(const SourceConfig& source, const IngestOptions& options) {
  return Sha256(AsBytes(absl::StrCat(source.Fingerprint().ToHex(), " ", options.part_bytes)));
}

}  // namespace

IngestWriter::IngestWriter(const SourceConfig& source, const InputFiles& inputs, std::string folder,
                           const IngestOptions& options, const IngestHooks& hooks)
    : source_(source),
      inputs_(inputs),
      folder_(std::move(folder)),
      part_bytes_(std::max<int64_t>(options.part_bytes, 1)),
      hooks_(hooks) {
  state_.config = RequestDigest(source, options);
  state_.input_listing = inputs.listing;
  state_.input_times = inputs.times;
  state_.report.source = source.name;
}

IngestWriter::~IngestWriter() {
  if (lock_fd_ >= 0) close(lock_fd_);
}

absl::StatusOr<std::unique_ptr<IngestWriter>> IngestWriter::Open(const SourceConfig& source,
                                                                 const InputFiles& inputs,
                                                                 const std::string& folder,
                                                                 const IngestOptions& options,
                                                                 const IngestHooks& hooks) {
  LOCKSTEP_RETURN_IF_ERROR(MakeFolder(fs::path(folder).lexically_normal()));
  std::unique_ptr<IngestWriter> writer(new IngestWriter(source, inputs, folder, options, hooks));
  LOCKSTEP_RETURN_IF_ERROR(writer->LockFolder());
  LOCKSTEP_RETURN_IF_ERROR(writer->RemoveLeftovers());
  LOCKSTEP_ASSIGN_OR_RETURN(writer->finished_, writer->LoadFinished());
  if (writer->finished_) {
    // A run that was killed between the two.
    unlink(writer->PathOf(kProgressFile).c_str());
  } else {
    LOCKSTEP_RETURN_IF_ERROR(writer->LoadProgress());
  }
  return writer;
}

std::string IngestWriter::PathOf(absl::string_view file) const {
  return absl::StrCat(folder_, "/", file);
}

void IngestWriter::SayDurable(const char* what) const {
  if (hooks_.durable) hooks_.durable(what);
}

absl::Status IngestWriter::LockFolder() {
  lock_fd_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_fd_ < 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(folder_, ": cannot open the folder"));
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder_, ": another run is at work in this folder"));
  }
  return absl::ErrnoToStatus(errno, absl::StrCat(folder_, ": cannot lock the folder"));
}

absl::Status IngestWriter::RemoveLeftovers() const {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, ".lockstep-") && absl::EndsWith(name, ".tmp"))
      unlink(entry.path().c_str());
  }
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat(folder_, ": cannot list the folder"));
}

absl::Status IngestWriter::CheckSameRequest(const Digest& config, const Digest& listing) const {
  if (config != state_.config) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder_, ": expected the work of this configuration of source ", source_.name,
                     "; found that of another", kWhatToDo));
  }
  if (listing != state_.input_listing) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder_, ": expected the work on the ", inputs_.files.size(),
                     " input files of source ", source_.name, " with ", inputs_.bytes,
                     " bytes; found that on other files or sizes", kWhatToDo));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> IngestWriter::LoadFinished() {
  const std::string path = PathOf(kManifestFile);
  const absl::StatusOr<std::string> bytes = ReadFile(path, kManifestBytesMax);
  if (absl::IsNotFound(bytes.status())) return false;
  LOCKSTEP_RETURN_IF_ERROR(bytes.status());
  LOCKSTEP_ASSIGN_OR_RETURN(StoreManifest manifest, ParseStoreManifest(*bytes), path);
  LOCKSTEP_RETURN_IF_ERROR(CheckSameRequest(manifest.config, manifest.input_listing));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string report,
                            ReadFile(PathOf(kReportFile), kReportBytesMax));
  if (Sha256(AsBytes(report)) != manifest.report) {
    return absl::DataLossError(absl::StrCat(PathOf(kReportFile), ": expected SHA-256 ",
                                            manifest.report.ToHex(),
                                            ", as the manifest says; found another"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(report),
                            PathOf(kReportFile));
  LOCKSTEP_ASSIGN_OR_RETURN(state_.report, IngestReport::FromJson(json), PathOf(kReportFile));
  state_.parts = std::move(manifest.parts);
  return true;
}

absl::Status IngestWriter::LoadProgress() {
  const std::string path = PathOf(kProgressFile);
  const absl::StatusOr<std::string> bytes = ReadFile(path, kManifestBytesMax);
  if (absl::IsNotFound(bytes.status())) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(bytes.status());
  LOCKSTEP_ASSIGN_OR_RETURN(IngestState state, ParseIngestState(*bytes), path);
  LOCKSTEP_RETURN_IF_ERROR(CheckSameRequest(state.config, state.input_listing));
  if (state.input_times != state_.input_times) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder_, ": expected the input files of source ", source_.name,
                     " as the stopped run found them; found that some were written since (by their "
                     "modification times)",
                     kWhatToDo));
  }
  const int64_t files = static_cast<int64_t>(inputs_.files.size());
  if (state.position.file > files || state.report.source != source_.name) {
    return absl::DataLossError(absl::StrCat(path, ": expected a position within ", files,
                                            " files of source ", source_.name, "; found file ",
                                            state.position.file));
  }
  state_ = std::move(state);
  return CheckParts();
}

absl::Status IngestWriter::CheckParts() {
  for (const StorePart& part : state_.parts) {
    if (source_.deduplicate) {
      LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Document> documents, ReadPartFile(folder_, part));
      for (const Document& document : documents) seen_.insert(DuplicateKey(document.text));
      continue;
    }
    std::error_code error;
    const auto bytes = static_cast<int64_t>(fs::file_size(PathOf(part.file), error));
    if (error || bytes != part.bytes) {
      return absl::DataLossError(absl::StrCat(PathOf(part.file), ": expected ", part.bytes,
                                              " bytes, as ", kProgressFile, " says; found ",
                                              error ? error.message() : absl::StrCat(bytes),
                                              "; remove the folder to begin anew"));
    }
  }
  return absl::OkStatus();
}

absl::Status IngestWriter::Write(const FilteredBlock& block) {
  for (const FilteredDocument& document : block.documents) {
    const absl::string_view coded =
        absl::string_view(block.coded)
            .substr(document.coded_begin, document.coded_end - document.coded_begin);
    LOCKSTEP_RETURN_IF_ERROR(WriteDocument(document, coded));
  }
  state_.position = block.end;
  if (!block.ends_file) return absl::OkStatus();
  state_.AddInput(inputs_.files[static_cast<size_t>(block.end.file)].name, block.file_bytes,
                  block.file_digest);
  state_.position = {.file = block.end.file + 1};
  return absl::OkStatus();
}

absl::Status IngestWriter::WriteDocument(const FilteredDocument& document,
                                         absl::string_view coded) {
  const bool kept = document.outcome == Outcome::kKept;
  const bool duplicate = kept && source_.deduplicate && !seen_.insert(document.key).second;
  std::string place;
  if (document.outcome == Outcome::kMalformed &&
      state_.report.complaints.size() < IngestReport::kComplaintsMax) {
    place = absl::StrCat(inputs_.files[static_cast<size_t>(document.end.file)].name, "#",
                         document.end.records);
  }
  state_.report.Count(document, duplicate, place);
  if (kept && !duplicate) {
    if (!file_.has_value()) LOCKSTEP_RETURN_IF_ERROR(BeginPart());
    LOCKSTEP_RETURN_IF_ERROR(Append(coded));
    ++part_.documents;
    part_.text_bytes += document.bytes;
  }
  if (!document.ends_record) return absl::OkStatus();
  state_.position = document.end;
  return part_.text_bytes < part_bytes_ ? absl::OkStatus() : EndPart();
}

absl::Status IngestWriter::BeginPart() {
  part_ = StorePart();
  part_.file = PartFileName(static_cast<int64_t>(state_.parts.size()));
  LOCKSTEP_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Create(PathOf(part_.file)));
  file_.emplace(std::move(file));
  return Append(kPartMagic);
}

absl::Status IngestWriter::Append(absl::string_view bytes) {
  buffer_.append(bytes.data(), bytes.size());
  part_.bytes += static_cast<int64_t>(bytes.size());
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : FlushPart();
}

absl::Status IngestWriter::FlushPart() {
  hasher_.Update(AsBytes(buffer_));
  LOCKSTEP_RETURN_IF_ERROR(file_->Append(AsBytes(buffer_)));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status IngestWriter::EndPart() {
  LOCKSTEP_RETURN_IF_ERROR(FlushPart());
  part_.digest = hasher_.Finish();
  LOCKSTEP_RETURN_IF_ERROR(file_->Commit());
  file_.reset();
  SayDurable("part");
  state_.parts.push_back(std::exchange(part_, {}));
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFileDurably(PathOf(kProgressFile), AsBytes(EncodeIngestState(state_))));
  SayDurable("progress");
  return absl::OkStatus();
}

absl::Status IngestWriter::Finish() {
  if (file_.has_value()) LOCKSTEP_RETURN_IF_ERROR(EndPart());
  const std::string report = state_.report.ToJson().dump();
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(PathOf(kReportFile), AsBytes(report)));
  SayDurable("report");
  StoreManifest manifest;
  manifest.source = source_.name;
  manifest.licence = source_.licence;
  manifest.config = state_.config;
  manifest.input_files = static_cast<int64_t>(inputs_.files.size());
  manifest.input_bytes = inputs_.bytes;
  manifest.input_listing = state_.input_listing;
  manifest.input_digest = state_.input_digest;
  manifest.report = Sha256(AsBytes(report));
  manifest.parts = state_.parts;
  for (const StorePart& part : manifest.parts) {
    manifest.documents += part.documents;
    manifest.text_bytes += part.text_bytes;
  }
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFileDurably(PathOf(kManifestFile), AsBytes(EncodeManifest(manifest))));
  SayDurable("manifest");
  unlink(PathOf(kProgressFile).c_str());
  finished_ = true;
  return absl::OkStatus();
}

}  // namespace lockstep::engine
