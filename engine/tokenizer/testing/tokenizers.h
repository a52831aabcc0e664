// SPDX-License-Identifier: Apache-2.0
//
// Small tokenizers and hard texts, for tests.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_TESTING_TOKENIZERS_H_
#define LOCKSTEP_ENGINE_TOKENIZER_TESTING_TOKENIZERS_H_

#include <memory>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/train.h"
#include "kernels/random/random.h"

namespace lockstep::engine::testing {

// Texts that have broken tokenizers: white space of all widths, line ends, marks that combine,
// emoji sequences, runs.
inline std::vector<std::string> TrickyTexts() {
  return {
      "",
      " ",
      "Hello, world! It's what we'll do; they've said I'M, 'tis 'S 'LL.",
      "a\u00A0b\u00A0\u00A01\u00A0!  \u00A0x",
      "one\u2029two\u2028three\u2029\u2029four\u0085five\u3000six\u1680",
      "Tie\u0302\u0301ng Vie\u0323\u0302t: Ti\u1EBFng Vi\u1EC7t, \u0111\u01B0\u1EE3c nga\u0300y",
      "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466 \U0001F1FB\U0001F1F3"
      "\U0001F44D\U0001F3FD \u2764\uFE0F\u200D\U0001F525",
      "0 12 345 6789 123456789012345678901234567890 3.14159 1,000,000 \u0661\u0662\u0663\u0664 "
      "\u00BD\u2167",
      "line\r\nline\r\n\r\n  indented\r\n\tx\n\n\ny\r",
      std::string("nul\0 \0\0 x\0", 10),
      "long" + std::string(300, ' ') + "run" + std::string(300, '\n') + std::string(77, ' '),
      std::string(500, '=') + std::string(500, 'a') + std::string(100, '9') + std::string(64, '\t'),
      "\u0E2A\u0E27\u0E31\u0E2A\u0E14\u0E35 \u0928\u092E\u0938\u094D\u0924\u0947 "
      "\u4F60\u597D\uFF0C\u4E16\u754C\u3002 "
      "\u05E9\u05DC\u05D5\u05DD \u0645\u0631\u062D\u0628\u0627 \u1820\u180E\u1820 \uFEFFbom",
      "for (int i = 0; i < n; ++i) {\n    x[i] += f(a_b, \"s\\n\");  // why?\n}\n",
      "https://example.org/a?b=c&d=%20#e <|endoftext|> <|end",
  };
}

// Bytes of all values, some of them text: what an encoder must survive.
inline std::string RandomBytes(uint64_t stream, size_t size) {
  std::string bytes;
  for (uint64_t i = 0; bytes.size() < size; ++i) {
    const uint64_t draw = kernels::RandomInteger(42, stream, i);
    const auto low = static_cast<char>(draw >> 8);
    switch (draw % 4) {
      case 0:
        bytes.push_back(low);
        break;
      case 1:
        bytes += {'\xE1', static_cast<char>(0x80 | (draw >> 8 & 0x3F)),
                  static_cast<char>(0x80 | (draw >> 16 & 0x3F))};
        break;
      case 2:
        bytes.push_back(static_cast<char>('a' + (draw >> 8) % 26));
        break;
      default:
        bytes.push_back(" \n'0e"[(draw >> 8) % 5]);
    }
  }
  bytes.resize(size);
  return bytes;
}

// Trained on the tricky texts and a little English, so that merges of all kinds are there.
inline Vocabulary SmallVocabulary(int64_t size = 700) {
  std::vector<std::string> texts = TrickyTexts();
  for (int i = 0; i < 3; ++i) {
    for (const std::string& text : TrickyTexts()) texts.push_back(text);
    texts.push_back(
        "The quick brown fox jumps over the lazy dog, and the other dogs thought that they should "
        "rather be walking than waiting there. Whoever reads this reads what was written.");
  }
  ThreadPool pool(1);
  return TrainVocabulary(MemorySource(std::move(texts)), size, {std::string(kEndOfTextName)}, pool,
                         TrainHooks())
      .value();
}

inline std::shared_ptr<const Tokenizer> SmallTokenizer(int64_t size = 700) {
  return Tokenizer::FromVocabulary(SmallVocabulary(size)).value();
}

inline std::vector<int32_t> Encode(const Tokenizer& tokenizer, absl::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.Encode(text, &ids);
  return ids;
}

}  // namespace lockstep::engine::testing

#endif  // LOCKSTEP_ENGINE_TOKENIZER_TESTING_TOKENIZERS_H_
