// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: tiktoken's rank files, whole or behind the lines of the 256 bytes. What is accepted
// is written back alike.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/logging.h"
#include "engine/tokenizer/formats.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::engine;
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  std::string after_bytes;
  for (int byte = 0; byte < 256; ++byte) {
    const uint8_t one = static_cast<uint8_t>(byte);
    absl::StrAppend(&after_bytes, lockstep::Base64Encode({&one, 1}), " ", byte, "\n");
  }
  absl::StrAppend(&after_bytes, input);
  for (const absl::string_view file : {input, absl::string_view(after_bytes)}) {
    const absl::StatusOr<Vocabulary> v = ImportTiktoken(file, {std::string(kEndOfTextName)});
    if (!v.ok()) continue;
    LOCKSTEP_CHECK(ImportTiktoken(ExportTiktoken(*v), v->special_tokens).value() == *v);
    LOCKSTEP_CHECK(ParseVocabulary(SerializeVocabulary(*v)).value() == *v);
  }
  return 0;
}
