// SPDX-License-Identifier: Apache-2.0
//
// Headers are read event by event, so that a key that comes twice is seen and nothing is built
// before it is checked.
#include "engine/state/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {
namespace {

using Json = nlohmann::json;

constexpr char kMetadata[] = "__metadata__";
constexpr size_t kNameBytesMax = 1024;

absl::string_view NameOf(TensorType type) { return type == TensorType::kBf16 ? "BF16" : "F32"; }

// The events of a header, and the place in it:
//   { NAME: { "dtype": T, "shape": [n, ...], "data_offsets": [begin, end] }, ... }
class HeaderEvents {
 public:
  absl::Status status() const { return status_; }
  SafetensorsHeader Take() { return std::move(header_); }
  bool ended() const { return ended_; }

  bool null() { return Unexpected("null"); }
  bool boolean(bool) { return Unexpected("a boolean"); }
  bool number_float(double, const std::string&) { return Unexpected("a fraction"); }
  bool binary(Json::binary_t&) { return Unexpected("binary data"); }
  bool number_integer(int64_t) { return Unexpected("a negative number"); }

  bool number_unsigned(uint64_t value) {
    if (depth_ == 3) {
      if (numbers_.size() == kSafetensorsRankMax) return Fail("at most 8 numbers", "", "more");
      if (value > kSafetensorsExtentMax) return Fail("a number of at most 2^48", "", "");
      numbers_.push_back(value);
      return true;
    }
    return Unexpected("a number");
  }

  bool string(std::string& value) {
    if (depth_ != 2) return Unexpected("a string");
    if (in_metadata_) {
      header_.metadata[key_] = value;
      return true;
    }
    if (key_ != "dtype") return Unexpected("a string");
    if (value == "BF16") {
      type_ = TensorType::kBf16;
    } else if (value == "F32") {
      type_ = TensorType::kF32;
    } else {
      return Fail("dtype BF16 or F32", "", value.substr(0, 16));
    }
    return true;
  }

  bool key(std::string& value) {
    if (value.size() > kNameBytesMax) return Fail("a key of at most 1024 bytes", "", "");
    if (depth_ == 1) {
      if (!names_.insert(value).second) return Fail("each name once", "", value);
      if (names_.size() > kSafetensorsTensorsMax + 1) {
        return Fail("at most 65536 tensors", "", "more");
      }
      name_ = value;
      in_metadata_ = value == kMetadata;
      return true;
    }
    if (in_metadata_) {
      if (header_.metadata.contains(value)) return Fail("each key once", "", value);
    } else if (value == "dtype" || value == "shape" || value == "data_offsets") {
      if (!seen_.insert(value).second) return Fail("each key once", "", value);
    } else {
      return Fail("dtype, shape or data_offsets", "", value.substr(0, 64));
    }
    key_ = value;
    return true;
  }

  bool start_object(size_t) {
    if (depth_ >= 2) return Unexpected("an object");
    ++depth_;
    type_.reset();
    shape_.reset();
    offsets_.reset();
    seen_.clear();
    return true;
  }

  bool end_object() {
    --depth_;
    if (depth_ == 0) {
      ended_ = true;
      return true;
    }
    return in_metadata_ || AddEntry();
  }

  bool start_array(size_t) {
    if (depth_ != 2 || in_metadata_ || (key_ != "shape" && key_ != "data_offsets")) {
      return Unexpected("an array");
    }
    ++depth_;
    numbers_.clear();
    return true;
  }

  bool end_array() {
    --depth_;
    if (key_ == "shape") {
      shape_ = numbers_;
    } else {
      if (numbers_.size() != 2) return Fail("two data_offsets", "", absl::StrCat(numbers_.size()));
      offsets_ = numbers_;
    }
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception&) {
    if (status_.ok()) {
      status_ = absl::DataLossError(absl::StrCat("expected JSON; byte ", position, " is none"));
    }
    return false;
  }

 private:
  bool Fail(absl::string_view expected, absl::string_view more, absl::string_view found) {
    if (status_.ok()) {
      status_ = absl::DataLossError(absl::StrCat(
          name_.empty() ? "header" : absl::StrCat("tensor \"", name_, "\""), ": expected ",
          expected, more, found.empty() ? "" : absl::StrCat("; found ", found)));
    }
    return false;
  }
  bool Unexpected(absl::string_view found) {
    return Fail(depth_ == 0 ? "an object" : "a tensor's dtype, shape and data_offsets", "", found);
  }

  bool AddEntry() {
    if (!type_ || !shape_ || !offsets_) return Fail("dtype, shape and data_offsets", "", "fewer");
    SafetensorsEntry entry;
    entry.name = name_;
    entry.type = *type_;
    uint64_t bytes = BytesOf(*type_);
    for (const uint64_t extent : *shape_) {
      if (extent != 0 && bytes > kSafetensorsExtentMax / extent) {
        return Fail("a shape of at most 2^48 bytes", "", absl::StrJoin(*shape_, "x"));
      }
      bytes *= extent;
      entry.shape.push_back(static_cast<int64_t>(extent));
    }
    entry.begin = (*offsets_)[0];
    entry.end = (*offsets_)[1];
    if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
      return Fail(absl::StrCat("data_offsets ", bytes, " bytes apart"), "",
                  absl::StrCat(entry.begin, " and ", entry.end));
    }
    header_.entries.push_back(std::move(entry));
    return true;
  }

  SafetensorsHeader header_;
  absl::Status status_;
  int depth_ = 0;  // 1: in the header, 2: in an entry, 3: in an array of it
  bool ended_ = false;
  bool in_metadata_ = false;
  std::string name_;
  std::string key_;
  std::set<std::string> names_;
  std::set<std::string> seen_;
  std::vector<uint64_t> numbers_;
  std::optional<TensorType> type_;
  std::optional<std::vector<uint64_t>> shape_;
  std::optional<std::vector<uint64_t>> offsets_;
};

}  // namespace

std::string EncodeSafetensorsHeader(SafetensorsHeader& header) {
  Json json = Json::object();
  if (!header.metadata.empty()) json[kMetadata] = header.metadata;
  uint64_t at = 0;
  for (SafetensorsEntry& entry : header.entries) {
    uint64_t bytes = BytesOf(entry.type);
    for (const int64_t extent : entry.shape) bytes *= extent;
    entry.begin = at;
    entry.end = at += bytes;
    json[entry.name] = {{"dtype", NameOf(entry.type)},
                        {"shape", entry.shape},
                        {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(text.size() >> (8 * i)));
  return bytes + text;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json) {
  // The parser takes a NUL for the end, whatever follows it.
  if (const size_t nul = json.find('\0'); nul != json.npos) {
    return absl::DataLossError(absl::StrCat("expected JSON; byte ", nul, " is none"));
  }
  HeaderEvents events;
  const bool parsed = Json::sax_parse(json.begin(), json.end(), &events);
  LOCKSTEP_RETURN_IF_ERROR(events.status());
  if (!parsed || !events.ended()) return absl::DataLossError("expected a JSON object");
  SafetensorsHeader header = events.Take();
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  uint64_t at = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != at) {
      return absl::DataLossError(absl::StrCat("tensor \"", entry.name, "\": expected its data at ",
                                              at, ", after the one before it; found it at ",
                                              entry.begin));
    }
    at = entry.end;
  }
  return header;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  SafetensorsFile file;
  file.path_ = path;
  file.fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  if (file.fd_ < 0 || fstat(file.fd_, &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot open"));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": expected a regular file"));
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  char prefix[8];
  if (size < sizeof(prefix)) {
    return absl::DataLossError(
        absl::StrCat(path, ": expected at least 8 bytes of safetensors; found ", size));
  }
  LOCKSTEP_RETURN_IF_ERROR(file.Read(0, prefix));
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i) header_bytes = header_bytes << 8 | static_cast<uint8_t>(prefix[i]);
  if (header_bytes > kSafetensorsHeaderBytesMax || header_bytes > size - 8) {
    return absl::DataLossError(absl::StrCat(
        path, ": expected a header of at most ", std::min(kSafetensorsHeaderBytesMax, size - 8),
        " bytes at offset 8; found a length of ", header_bytes));
  }
  std::string json(header_bytes, '\0');
  file.data_begin_ = 8;
  LOCKSTEP_RETURN_IF_ERROR(file.Read(0, std::span(json.data(), json.size())));
  LOCKSTEP_ASSIGN_OR_RETURN(file.header_, ParseSafetensorsHeader(json), path);
  file.data_begin_ = 8 + header_bytes;
  const uint64_t data = file.header_.entries.empty() ? 0 : file.header_.entries.back().end;
  if (size - file.data_begin_ != data) {
    return absl::DataLossError(absl::StrCat(path, ": expected ", file.data_begin_ + data,
                                            " bytes, as its header says; found ", size));
  }
  return file;
}

SafetensorsFile::~SafetensorsFile() {
  if (fd_ >= 0) close(fd_);
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept { *this = std::move(other); }

SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(data_begin_, other.data_begin_);
  std::swap(header_, other.header_);
  return *this;
}

absl::Status SafetensorsFile::Read(uint64_t begin, std::span<char> out) const {
  for (size_t done = 0; done < out.size();) {
    const uint64_t at = data_begin_ + begin + done;
    const ssize_t got = pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot read at ", at));
    if (got == 0) return absl::DataLossError(absl::StrCat(path_, ": ends at ", at));
    done += got;
  }
  return absl::OkStatus();
}

}  // namespace lockstep::engine
