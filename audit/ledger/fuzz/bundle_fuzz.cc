// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: bundles, read and verified. Inputs are files as they are, or what a well-formed
// frame holds, so that what lies behind the compression is reached.
#include <unistd.h>
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "audit/ledger/bundle.h"
#include "audit/ledger/verify_log.h"
#include "audit/testing/small_log.h"
#include "base/coding.h"
#include "base/logging.h"

namespace lockstep::audit {
namespace {

// The beginning of a frame for a log of so many entries.
std::string Head(uint64_t size) {
  const NoteKey key = {.name = "example.com/log", .key = TestPublicKey(kLogKey)};
  ByteWriter writer;
  writer.WriteLengthPrefixed(AsBytes(key.ToText()));
  writer.WriteLengthPrefixed(AsBytes(SignLogCheckpoint(
      {.origin = key.name, .size = size, .root = Sha256(AsBytes("root"))}, TestKey(kLogKey))));
  return writer.Take();
}

}  // namespace
}  // namespace lockstep::audit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::audit;
  static const std::string path = [] {
    char name[] = "/tmp/bundle_fuzz_XXXXXX";
    const int fd = mkstemp(name);
    LOCKSTEP_CHECK(fd >= 0);
    close(fd);
    return std::string(name);
  }();
  static ThreadPool pool(1);
  if (size == 0) return 0;
  std::string file = "LKSBNDL1";
  std::string input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 3 == 0) {
    file += input;
  } else {
    if (data[0] % 3 == 1) input = Head(data[0] / 3 % 8) + input;
    std::string frame(ZSTD_compressBound(input.size()), '\0');
    frame.resize(ZSTD_compress(frame.data(), frame.size(), input.data(), input.size(), 1));
    file += frame;
  }
  FILE* const out = std::fopen(path.c_str(), "wb");
  LOCKSTEP_CHECK(out != nullptr);
  std::fwrite(file.data(), 1, file.size(), out);
  std::fclose(out);
  const auto source = OpenBundle(path);
  if (source.ok()) {
    const auto report = VerifyLog(**source, {}, pool);
    if (report.ok()) LOCKSTEP_CHECK(report->ledger->next_index() <= report->checkpoint.size);
  }
  return 0;
}
