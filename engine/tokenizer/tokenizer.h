// SPDX-License-Identifier: Apache-2.0
//
// Byte-level byte-pair encoding with the Llama-3 pre-tokenizer: text to token ids and back.
// Training is in train.h, the formats of other tools in formats.h.
#ifndef LOCKSTEP_ENGINE_TOKENIZER_TOKENIZER_H_
#define LOCKSTEP_ENGINE_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "engine/tokenizer/vocabulary.h"

namespace lockstep::engine {

// Immutable after loading; every method may be called from any thread.
class Tokenizer {
 public:
  // From a tokenizer file (docs/tokenizer.md); errors name the file, the offset or line, and
  // what was expected.
  static absl::StatusOr<std::shared_ptr<const Tokenizer>> Load(const std::string& path);
  ~Tokenizer();

  // Of a vocabulary; InvalidArgument if it breaks the rules.
  static absl::StatusOr<std::shared_ptr<const Tokenizer>> FromVocabulary(Vocabulary vocabulary);

  // Ordinary tokens first (those that we train: 0 .. 255 are the bytes, then merges in order),
  // special ones last.
  int32_t vocab_size() const;
  // The separator after each document; in those that we train "<|endoftext|>".
  int32_t end_of_text() const;
  // SHA-256 of the tokenizer file's canonical bytes: what manifests name a tokenizer by.
  const Digest& digest() const;
  const Vocabulary& vocabulary() const;
  // The two tokens that ordinary token `id` is merged from, or {-1, -1} if none are: of bytes, and
  // of tokens that only a whole piece can be.
  std::pair<int32_t, int32_t> PairOf(int32_t id) const;

  // Appends the ids of `text`, any bytes; special tokens written in the text are ordinary text.
  // Invalid UTF-8 is encoded bytewise: Decode(Encode(x)) == x for every x.
  void Encode(absl::string_view text, std::vector<int32_t>* ids) const;
  // The texts' ids, in order, on the pool's threads.
  std::vector<std::vector<int32_t>> EncodeAll(const std::vector<absl::string_view>& texts,
                                              ThreadPool& pool) const;
  // The bytes of the ids; special tokens give their names. An id out of range is InvalidArgument.
  absl::StatusOr<std::string> Decode(const std::vector<int32_t>& ids) const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TOKENIZER_TOKENIZER_H_
