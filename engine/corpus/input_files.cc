// SPDX-License-Identifier: Apache-2.0
//
// Walking of folders. What is found depends on names alone and not on the order in which the file
// system gives them.
#include "engine/corpus/input_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "engine/corpus/glob.h"
#include "engine/corpus/utf8.h"

namespace lockstep::engine {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFilesMax = 100'000'000;

absl::Status FileError(const std::error_code& error, const std::string& path,
                       absl::string_view what) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat(path, ": cannot ", what));
}

struct FileFacts {
  int64_t bytes = 0;
  int64_t modified_ns = 0;
};

absl::StatusOr<FileFacts> FactsOf(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot look at it"));
  return FileFacts{.bytes = status.st_size,
                   .modified_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

std::string Join(const std::string& folder, const std::string& name) {
  if (folder.empty() || name.empty()) return folder.empty() ? name : folder;
  return absl::StrCat(folder, folder.back() == '/' ? "" : "/", name);
}

class Lister {
 public:
  explicit Lister(const SourceConfig& source) : source_(source) {}

  absl::Status Add(const std::string& pattern) {
    const size_t before = found_.size() + again_;
    const std::string prefix = pattern == "." ? "" : GlobPrefix(pattern);
    const std::string start = Join(source_.root, prefix);
    std::error_code error;
    const fs::file_status status = fs::status(start.empty() ? "." : start, error);
    if (status.type() == fs::file_type::not_found) {
      return absl::NotFoundError(
          absl::StrCat("source ", source_.name, ": \"", pattern, "\": ", start, " does not exist"));
    }
    if (error) return FileError(error, start, "look at it");
    if (HasGlobCharacters(pattern)) {
      if (fs::is_directory(status)) LOCKSTEP_RETURN_IF_ERROR(Walk(prefix, &pattern));
    } else if (fs::is_directory(status)) {
      LOCKSTEP_RETURN_IF_ERROR(Walk(prefix, nullptr));
    } else if (fs::is_regular_file(status)) {
      LOCKSTEP_RETURN_IF_ERROR(Found(prefix));
    }
    if (found_.size() + again_ > before) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat("source ", source_.name, ": \"", pattern, "\" stands for no file below ",
                     source_.root.empty() ? "." : source_.root,
                     HasGlobCharacters(pattern)
                         ? ""
                         : " (a folder stands for its files with the source's extensions)"));
  }

  std::map<std::string, FileFacts> Take() { return std::move(found_); }

 private:
  bool HasExtension(absl::string_view name) const {
    if (!absl::ConsumeSuffix(&name, ".gz")) absl::ConsumeSuffix(&name, ".zst");
    return std::any_of(
        source_.extensions.begin(), source_.extensions.end(),
        [&](const std::string& extension) { return absl::EndsWith(name, extension); });
  }

  // All files below `folder` that fit the pattern or, without one, have one of the extensions.
  absl::Status Walk(const std::string& folder, const std::string* pattern) {
    std::error_code error;
    const std::string here = Join(source_.root, folder);
    std::vector<std::string> folders;
    fs::directory_iterator entries(here.empty() ? "." : here, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
      const std::string name = entries->path().filename().string();
      if (name[0] == '.') continue;
      const std::string below = Join(folder, name);
      // status() follows links, so that a link to a file counts as that file; one to a folder could
      // lead in a circle.
      const fs::file_status status = entries->status(error);
      if (status.type() == fs::file_type::not_found ||
          error == std::errc::too_many_symbolic_link_levels) {
        error.clear();  // a link that leads nowhere or in a circle, or a file just removed
        continue;
      }
      if (error) return FileError(error, Join(source_.root, below), "look at it");
      if (fs::is_directory(status)) {
        if (!entries->is_symlink()) folders.push_back(below);
      } else if (fs::is_regular_file(status)) {
        if (pattern != nullptr ? GlobMatches(*pattern, below) : HasExtension(name)) {
          LOCKSTEP_RETURN_IF_ERROR(Found(below));
        }
      }
    }
    if (error) return FileError(error, here, "list the folder");
    for (const std::string& below : folders) LOCKSTEP_RETURN_IF_ERROR(Walk(below, pattern));
    return absl::OkStatus();
  }

  absl::Status Found(const std::string& below) {
    for (const std::string& pattern : source_.exclude) {
      // A pattern that fits a folder excludes what is in it.
      if (GlobMatches(pattern, below) || GlobMatches(absl::StrCat(pattern, "/**"), below)) {
        ++again_;
        return absl::OkStatus();
      }
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const FileFacts facts, FactsOf(Join(source_.root, below)));
    if (!found_.emplace(below, facts).second) ++again_;
    if (found_.size() <= kFilesMax) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("source ", source_.name, ": more than ", kFilesMax, " files"));
  }

  const SourceConfig& source_;
  std::map<std::string, FileFacts> found_;  // by path below the root
  size_t again_ = 0;                        // found, and excluded or found before
};

}  // namespace

std::string EscapedPath(absl::string_view path) {
  std::string out;
  for (size_t i = 0; i < path.size();) {
    const auto byte = static_cast<uint8_t>(path[i]);
    size_t size = 1;
    if (byte >= 0x80) {
      size = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
      if (!IsValidUtf8(path.substr(i, size))) size = 0;
    } else if (byte < 0x20 || byte == 0x7F || byte == '%') {
      size = 0;
    }
    if (size == 0) {
      absl::StrAppendFormat(&out, "%%%02X", byte);
      size = 1;
    } else {
      absl::StrAppend(&out, path.substr(i, size));
    }
    i += size;
  }
  return out;
}

absl::Status CheckUnchanged(const InputFile& file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const FileFacts facts, FactsOf(file.path));
  if (facts.bytes == file.bytes && facts.modified_ns == file.modified_ns) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      file.path, ": expected the file as it was when this run began (", file.bytes,
      " bytes); found ", facts.bytes, " bytes", facts.bytes == file.bytes ? ", written since" : "",
      ": it changed during the ingest; run again when it no longer does"));
}

absl::StatusOr<InputFiles> ListInputFiles(const SourceConfig& source) {
  Lister lister(source);
  for (const std::string& pattern : source.paths) LOCKSTEP_RETURN_IF_ERROR(lister.Add(pattern));
  InputFiles inputs;
  Sha256Hasher listing;
  Sha256Hasher times;
  for (const auto& [below, facts] : lister.Take()) {
    InputFile& file = inputs.files.emplace_back();
    file.name = EscapedPath(below);
    file.path = Join(source.root, below);
    file.bytes = facts.bytes;
    file.modified_ns = facts.modified_ns;
    inputs.bytes += file.bytes;
    const std::string start = absl::StrCat(file.name, absl::string_view("\0", 1));
    listing.Update(AsBytes(absl::StrCat(start, file.bytes, "\n")));
    times.Update(AsBytes(absl::StrCat(start, file.modified_ns, "\n")));
  }
  inputs.listing = listing.Finish();
  inputs.times = times.Finish();
  return inputs;
}

}  // namespace lockstep::engine
