// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: HTML pages. Any valid UTF-8 gives valid UTF-8, without white space at its ends, and
// in bounded size.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "base/logging.h"
#include "engine/corpus/html_text.h"
#include "engine/corpus/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::engine;
  const std::string page =
      ReplaceInvalidUtf8(absl::string_view(reinterpret_cast<const char*>(data), size));
  const std::string text = HtmlToText(page);
  LOCKSTEP_CHECK(IsValidUtf8(text));
  LOCKSTEP_CHECK(text.size() <= page.size() + 2);
  LOCKSTEP_CHECK(text.empty() || (text.back() != ' ' && text.back() != '\n' && text[0] != '\n'));
  return 0;
}
