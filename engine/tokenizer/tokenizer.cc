// SPDX-License-Identifier: Apache-2.0
//
// Encoding: split, look the piece up among those met lately, then among the tokens, else merge.
#include "engine/tokenizer/tokenizer.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/tokenizer/merger.h"
#include "engine/tokenizer/piece_cache.h"
#include "engine/tokenizer/splitter.h"

namespace lockstep::engine {
namespace {

// The caches that no call of Encode holds at the moment: as many as calls were ever made at the
// same time.
class CachePool {
 public:
  std::unique_ptr<PieceCache> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<PieceCache>();
    std::unique_ptr<PieceCache> cache = std::move(free_.back());
    free_.pop_back();
    return cache;
  }
  void Give(std::unique_ptr<PieceCache> cache) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(cache));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<PieceCache>> free_;
};

// Ids on their way to the caller's vector.
class Output {
 public:
  explicit Output(std::vector<int32_t>* ids) : ids_(ids) {}
  ~Output() { Flush(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Where the next ids go, at most `count` of them; Advance takes those that were written.
  int32_t* Room(size_t count) {
    if (size_ + count > buffer_.size()) {
      Flush();
      if (count > buffer_.size()) buffer_.resize(count);
    }
    return buffer_.data() + size_;
  }
  void Advance(size_t count) { size_ += count; }

 private:
  void Flush() {
    ids_->insert(ids_->end(), buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(size_));
    size_ = 0;
  }
  std::vector<int32_t>* ids_;
  size_t size_ = 0;
  std::vector<int32_t> buffer_ = std::vector<int32_t>(2048);
};

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(Vocabulary v) : vocabulary(std::move(v)), merger(vocabulary.tokens) {
    digest = Sha256(AsBytes(SerializeVocabulary(vocabulary)));
    whole.reserve(vocabulary.tokens.size());
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      whole.emplace(vocabulary.tokens[id], static_cast<int32_t>(id));
    }
  }

  // The next pieces of a text, from p on; returns where they end. All are cut before the first is
  // looked up, so that the cache's lines are on their way meanwhile.
  const char* EncodeBlock(const char* p, const char* end, PieceCache& cache, Output& output) const {
    constexpr int kPieces = 32;
    absl::string_view pieces[kPieces];
    PieceCache::Key keys[kPieces];
    PieceCache::Entry* entries[kPieces];  // null: too long to be kept
    int count = 0;
    for (; count < kPieces && p != end; ++count) {
      const char* const next = splitter.PieceEnd(p, end);
      const absl::string_view piece(p, static_cast<size_t>(next - p));
      pieces[count] = piece;
      entries[count] = nullptr;
      if (piece.size() <= PieceCache::kBytesMax) {
        keys[count] = PieceCache::KeyOf(piece, end);
        entries[count] = cache.Prefetch(keys[count]);
      }
      p = next;
    }
    for (int i = 0; i < count; ++i) {
      const PieceCache::Entry* const entry = entries[i];
      if (entry != nullptr && entry->key == keys[i]) {
        std::memcpy(output.Room(PieceCache::kIdsMax), entry->ids, sizeof(entry->ids));
        output.Advance(entry->count);
      } else {
        EncodeUnknown(pieces[i], keys[i], entries[i], output);
      }
    }
    return p;
  }

  // A piece that the cache does not have, and has then if it can be kept.
  void EncodeUnknown(absl::string_view piece, const PieceCache::Key& key, PieceCache::Entry* entry,
                     Output& output) const {
    int32_t* const ids = output.Room(piece.size());
    size_t count = 1;
    if (const auto at = whole.find(piece); at != whole.end()) {
      ids[0] = at->second;
    } else {
      count = merger.Encode(piece, ids);
    }
    output.Advance(count);
    if (entry == nullptr || count > PieceCache::kIdsMax) return;
    entry->key = key;
    entry->count = static_cast<uint32_t>(count);
    std::copy(ids, ids + count, entry->ids);
  }

  const Vocabulary vocabulary;
  const Merger merger;
  const Splitter splitter;
  Digest digest;
  absl::flat_hash_map<absl::string_view, int32_t> whole;
  mutable CachePool caches;
};

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

absl::StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::FromVocabulary(Vocabulary vocabulary) {
  LOCKSTEP_RETURN_IF_ERROR(ValidateVocabulary(vocabulary));
  return std::shared_ptr<const Tokenizer>(
      new Tokenizer(std::make_unique<const Impl>(std::move(vocabulary))));
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::Load(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kTokenizerFileBytesMax),
                            "tokenizer file ", path);
  LOCKSTEP_ASSIGN_OR_RETURN(Vocabulary vocabulary, ParseVocabulary(bytes), "tokenizer file ", path);
  return FromVocabulary(std::move(vocabulary));
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(impl_->vocabulary.size()); }
int32_t Tokenizer::end_of_text() const { return impl_->vocabulary.end_of_text; }
const Digest& Tokenizer::digest() const { return impl_->digest; }
const Vocabulary& Tokenizer::vocabulary() const { return impl_->vocabulary; }
std::pair<int32_t, int32_t> Tokenizer::PairOf(int32_t id) const { return impl_->merger.PairOf(id); }

void Tokenizer::Encode(absl::string_view text, std::vector<int32_t>* ids) const {
  std::unique_ptr<PieceCache> cache = impl_->caches.Take();
  {
    Output output(ids);
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p != end;) p = impl_->EncodeBlock(p, end, *cache, output);
  }
  impl_->caches.Give(std::move(cache));
}

std::vector<std::vector<int32_t>> Tokenizer::EncodeAll(const std::vector<absl::string_view>& texts,
                                                       ThreadPool& pool) const {
  std::vector<std::vector<int32_t>> all(texts.size());
  pool.ParallelFor(static_cast<int64_t>(texts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) Encode(texts[i], &all[i]);
  });
  return all;
}

absl::StatusOr<std::string> Tokenizer::Decode(const std::vector<int32_t>& ids) const {
  const Vocabulary& v = impl_->vocabulary;
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids[i];
    if (id < 0 || id >= v.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "id ", id, " at ", i, " is not in the vocabulary; expected 0 to ", v.size() - 1));
    }
    text += v.entry(ids[i]);
  }
  return text;
}

}  // namespace lockstep::engine
