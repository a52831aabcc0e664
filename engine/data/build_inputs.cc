// SPDX-License-Identifier: Apache-2.0
//
// Document stores and tokenizers as inputs of a build. See build.h.
#include <utility>

#include "engine/data/build.h"

namespace lockstep::engine {

BuildSource SourceOf(DocumentStore store) {
  const auto shared = std::make_shared<const DocumentStore>(std::move(store));
  return {.name = shared->source(),
          .licence = shared->licence(),
          .store = shared->digest(),
          .text_bytes = static_cast<uint64_t>(shared->text_bytes()),
          .parts = shared->parts(),
          .read_part = [shared](int64_t part) { return shared->ReadPart(part); }};
}

BuildTokenizer TokenizerOf(std::shared_ptr<const Tokenizer> tokenizer) {
  return {.digest = tokenizer->digest(),
          .vocab_size = static_cast<uint32_t>(tokenizer->vocab_size()),
          .separator = static_cast<uint32_t>(tokenizer->end_of_text()),
          .encode_all = [tokenizer](const std::vector<absl::string_view>& texts, ThreadPool& pool) {
            return tokenizer->EncodeAll(texts, pool);
          }};
}

}  // namespace lockstep::engine
