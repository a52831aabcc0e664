// SPDX-License-Identifier: Apache-2.0
//
// The few fields of Event and Summary that a scalar needs, in protocol-buffer wire format:
//   Event   1 wall_time double, 2 step int64, 3 file_version string, 5 summary
//   Summary 1 value;  Value 1 tag string, 2 simple_value float
#include "engine/run/tensorboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>

#include "absl/strings/str_cat.h"

namespace lockstep::engine {
namespace {

void AppendFixed(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void AppendVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Wire types: 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes.
void AppendKey(std::string* out, int field, int wire_type) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
}
void AppendBytes(std::string* out, int field, absl::string_view bytes) {
  AppendKey(out, field, 2);
  AppendVarint(out, bytes.size());
  out->append(bytes.data(), bytes.size());
}

std::string EventHead(double wall_seconds, int64_t step) {
  std::string event;
  AppendKey(&event, 1, 1);
  AppendFixed(&event, std::bit_cast<uint64_t>(wall_seconds), 8);
  AppendKey(&event, 2, 0);
  AppendVarint(&event, static_cast<uint64_t>(step));
  return event;
}

// CRC-32C (RFC 3720, appendix B.4), a byte at a time: these files are small.
uint32_t Crc32c(absl::string_view data) {
  static const auto kTable = [] {
    std::array<uint32_t, 256> table;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
      table[byte] = crc;
    }
    return table;
  }();
  uint32_t crc = ~uint32_t{0};
  for (const char c : data) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

uint32_t MaskedCrc(absl::string_view data) {
  const uint32_t crc = Crc32c(data);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace

std::string ScalarEvent(absl::string_view tag, int64_t step, double wall_seconds, float value) {
  std::string scalar;
  AppendBytes(&scalar, 1, tag);
  AppendKey(&scalar, 2, 5);
  AppendFixed(&scalar, std::bit_cast<uint32_t>(value), 4);
  std::string summary;
  AppendBytes(&summary, 1, scalar);
  std::string event = EventHead(wall_seconds, step);
  AppendBytes(&event, 5, summary);
  return event;
}

std::string TfRecord(absl::string_view data) {
  std::string record;
  AppendFixed(&record, data.size(), 8);
  AppendFixed(&record, MaskedCrc(record), 4);
  record.append(data.data(), data.size());
  AppendFixed(&record, MaskedCrc(data), 4);
  return record;
}

absl::StatusOr<std::unique_ptr<TensorBoardWriter>> TensorBoardWriter::Create(
    const std::string& folder, double wall_seconds) {
  const std::string path =
      absl::StrCat(folder, "/events.out.tfevents.", static_cast<int64_t>(wall_seconds), ".",
                   getpid(), ".lockstep");
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
  std::unique_ptr<TensorBoardWriter> writer(new TensorBoardWriter(path, fd));
  std::string event = EventHead(wall_seconds, 0);
  AppendBytes(&event, 3, "brain.Event:2");
  writer->pending_ = TfRecord(event);
  return writer;
}

TensorBoardWriter::~TensorBoardWriter() { close(fd_); }

void TensorBoardWriter::AddScalar(absl::string_view tag, int64_t step, double wall_seconds,
                                  float value) {
  pending_ += TfRecord(ScalarEvent(tag, step, wall_seconds, value));
}

absl::Status TensorBoardWriter::Flush() {
  size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t put = write(fd_, pending_.data() + done, pending_.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return absl::ErrnoToStatus(errno, absl::StrCat("append to ", path_));
    done += put;
  }
  pending_.clear();
  return absl::OkStatus();
}

}  // namespace lockstep::engine
