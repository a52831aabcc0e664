// SPDX-License-Identifier: Apache-2.0
//
// Files are read and written a piece at a time, whose digest stays in memory.
#include "engine/state/flat_array.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/status.h"

namespace lockstep::engine {
namespace {

absl::Status FileError(const std::string& folder, absl::string_view what, const Piece& piece) {
  return absl::ErrnoToStatus(errno, absl::StrCat("spill file in ", folder, ": cannot ", what, " ",
                                                 piece.count * sizeof(float), " bytes at offset ",
                                                 piece.offset * sizeof(float)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FlatArray>> FlatArray::InMemory(Backend& backend,
                                                               const ParameterLayout& layout) {
  std::unique_ptr<FlatArray> array(new FlatArray(backend));
  LOCKSTEP_ASSIGN_OR_RETURN(array->memory_,
                            Buffer::Create(backend, layout.flat_elements() * sizeof(float)));
  return array;
}

absl::StatusOr<std::unique_ptr<FlatArray>> FlatArray::Spilled(Backend& backend,
                                                              const ParameterLayout& layout,
                                                              const std::string& folder) {
  std::unique_ptr<FlatArray> array(new FlatArray(backend));
  LOCKSTEP_ASSIGN_OR_RETURN(array->memory_,
                            Buffer::Create(backend, kPieceElements * sizeof(float)));
  array->folder_ = folder;
  std::string name = folder + "/.lockstep-spill-XXXXXX";
  array->file_ = mkostemp(name.data(), O_CLOEXEC);
  if (array->file_ < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot create a spill file in ", folder));
  }
  unlink(name.c_str());
  array->pieces_ = layout.Pieces(/*with_statistics=*/true);
  array->written_.resize(array->pieces_.size());
  array->digests_.resize(array->pieces_.size());
  return array;
}

FlatArray::~FlatArray() {
  if (file_ >= 0) close(file_);
}

absl::StatusOr<float*> FlatArray::Load(const Piece& piece) {
  if (in_memory()) return flat() + piece.offset;
  const size_t bytes = piece.count * sizeof(float);
  const size_t index = IndexOf(piece);
  if (!written_[index]) {
    backend_.Zero(flat(), bytes);
    return flat();
  }
  host_.resize(bytes);
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = pread(file_, host_.data() + done, bytes - done,
                              static_cast<off_t>(piece.offset * sizeof(float) + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(folder_, "read", piece);
    if (got == 0) {
      return absl::DataLossError(absl::StrCat("spill file in ", folder_, ": expected ", bytes,
                                              " bytes at offset ", piece.offset * sizeof(float),
                                              "; found ", done));
    }
    done += got;
  }
  backend_.CopyIn(flat(), host_.data(), bytes);
  if (backend_.RootOf(flat(), bytes) != digests_[index]) {
    return absl::DataLossError(absl::StrCat(
        "spill file in ", folder_, ": the ", bytes, " bytes at offset ",
        piece.offset * sizeof(float), " are not those that were written there; check the disk"));
  }
  return flat();
}

absl::Status FlatArray::Store(const Piece& piece) {
  if (in_memory()) return absl::OkStatus();
  const size_t bytes = piece.count * sizeof(float);
  host_.resize(bytes);
  backend_.CopyOut(host_.data(), flat(), bytes);
  const size_t index = IndexOf(piece);
  for (size_t done = 0; done < bytes;) {
    const ssize_t put = pwrite(file_, host_.data() + done, bytes - done,
                               static_cast<off_t>(piece.offset * sizeof(float) + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return FileError(folder_, "write", piece);
    done += put;
  }
  digests_[index] = backend_.RootOf(flat(), bytes);
  written_[index] = true;
  return absl::OkStatus();
}

absl::Status FlatArray::Put(const Piece& piece, const float* data) {
  float* const at = in_memory() ? flat() + piece.offset : flat();
  backend_.Copy(at, data, piece.count * sizeof(float));
  return Store(piece);
}

size_t FlatArray::IndexOf(const Piece& piece) const {
  return std::lower_bound(pieces_.begin(), pieces_.end(), piece.offset,
                          [](const Piece& p, int64_t offset) { return p.offset < offset; }) -
         pieces_.begin();
}

}  // namespace lockstep::engine
