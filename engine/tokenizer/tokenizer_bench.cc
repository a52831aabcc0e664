// SPDX-License-Identifier: Apache-2.0
//
// Encoding real text against tokenizers by others, which run in a process of their own, in turns
// with ours, on the same texts with the same vocabulary, one thread each; and learning that
// vocabulary. The text: the ingested sources in LOCKSTEP_CORPUS, or the ci corpus in
// build/corpus/ci/ingested, which scripts/bench fetches.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/logging.h"
#include "bench/harness.h"
#include "bench/peer_process.h"
#include "bench/temporary_folder.h"
#include "engine/corpus/document_store.h"
#include "engine/tokenizer/formats.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/train.h"
#include "nlohmann/json.hpp"

namespace lockstep::engine {
namespace {

using bench::Bench;

constexpr int64_t kMerges = 16384;
constexpr int64_t kVocabulary = 256 + kMerges + 1;
constexpr size_t kPeerShare = 8;  // one document of so many, which keeps the peers' turns short

std::vector<std::string> SourceFolders() {
  const char* folder = std::getenv("LOCKSTEP_CORPUS");
  const std::string path =
      folder != nullptr ? folder : LOCKSTEP_SOURCE_DIR "/build/corpus/ci/ingested";
  std::error_code error;
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    folders.push_back(entry.path());
  }
  LOCKSTEP_CHECK(!folders.empty(),
                 "no ingested sources in {}: run scripts/fetch-corpus ci --ingest", path);
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::unique_ptr<TextSource> OpenCorpus() {
  std::vector<std::unique_ptr<TextSource>> sources;
  for (const std::string& folder : SourceFolders()) {
    sources.push_back(OpenDocuments(folder).value());
  }
  return JoinSources(std::move(sources));
}

std::vector<std::string> ReadCorpus() {
  const std::unique_ptr<TextSource> source = OpenCorpus();
  std::vector<std::string> texts;
  for (int64_t part = 0; part < source->parts(); ++part) {
    LOCKSTEP_CHECK(
        source->Read(part, [&](absl::string_view text) { texts.emplace_back(text); }).ok());
  }
  return texts;
}

Vocabulary Train(ThreadPool& pool) {
  return TrainVocabulary(*OpenCorpus(), kVocabulary, {std::string(kEndOfTextName)}, pool,
                         TrainHooks())
      .value();
}

int64_t BytesOf(const std::vector<absl::string_view>& texts) {
  int64_t bytes = 0;
  for (absl::string_view text : texts) bytes += static_cast<int64_t>(text.size());
  return bytes;
}

// What tests/tokenizer_peers/speed.mjs reads.
void WritePeerFiles(const Tokenizer& tokenizer, const std::vector<absl::string_view>& texts,
                    const std::string& folder) {
  const auto write = [&](const char* name, const std::string& bytes) {
    LOCKSTEP_CHECK(WriteFileDurably(absl::StrCat(folder, "/", name), AsBytes(bytes)).ok());
  };
  write("ranks.tiktoken", ExportTiktoken(tokenizer.vocabulary()));
  write("tokenizer.json", ExportHuggingFace(tokenizer).value());
  write("texts.json", nlohmann::json(texts).dump());
}

// Encodes all texts once. Tokens, or nothing if there is no such peer.
std::optional<size_t> EncodeBy(bench::PeerProcess& peer) {
  const std::optional<std::string> answer = peer.Ask("encode");
  size_t tokens = 0;
  if (!answer || !absl::SimpleAtoi(*answer, &tokens)) return std::nullopt;
  return tokens;
}

void EncodeOneByOne(const Tokenizer& tokenizer, const std::vector<absl::string_view>& texts,
                    std::vector<int32_t>* ids) {
  ids->clear();
  for (absl::string_view text : texts) tokenizer.Encode(text, ids);
}

LOCKSTEP_BENCH(tokenizer_encode, "text to token ids, against tokenizers by others (npm)", b) {
  const std::vector<std::string> corpus = ReadCorpus();
  const auto tokenizer = Tokenizer::FromVocabulary(Train(b.Pool(2))).value();
  std::vector<absl::string_view> share;
  for (size_t i = 0; i < corpus.size(); i += kPeerShare) share.emplace_back(corpus[i]);
  std::vector<int32_t> ids;
  EncodeOneByOne(*tokenizer, share, &ids);

  const bench::TemporaryFolder folder;
  WritePeerFiles(*tokenizer, share, folder.path());
  for (const char* name : {"tiktoken", "tokenizers", "js-tiktoken", "@huggingface/tokenizers"}) {
    bench::PeerProcess peer(absl::StrCat("exec node " LOCKSTEP_SOURCE_DIR
                                         "/tests/tokenizer_peers/speed.mjs '",
                                         name, "' '", folder.path(), "'"));
    const std::optional<size_t> tokens = EncodeBy(peer);
    if (!tokens) std::fprintf(stderr, "no peer %s: run npm ci in tests/tokenizer_peers\n", name);
    LOCKSTEP_CHECK(!tokens || *tokens == ids.size(), "{} gives {} tokens, ours {}", name, *tokens,
                   ids.size());
    b.Compare({.name = "one document of eight, 1T",
               .unit = "MB/s",
               .work = 1e3 * static_cast<double>(BytesOf(share)),
               .ours = [&] { EncodeOneByOne(*tokenizer, share, &ids); },
               .peer = tokens ? name : "",
               .peer_call = tokens ? [&] { LOCKSTEP_CHECK(EncodeBy(peer) == tokens); }
                                   : std::function<void()>()});
  }
  const std::vector<absl::string_view> all(corpus.begin(), corpus.end());
  for (int threads : {1, 2}) {
    b.Compare({.name = absl::StrCat("all documents, ", threads, "T"),
               .unit = "MB/s",
               .work = 1e3 * static_cast<double>(BytesOf(all)),
               .ours = [&] { tokenizer->EncodeAll(all, b.Pool(threads)); },
               .peer = "",
               .peer_call = {}});
  }
}

LOCKSTEP_BENCH(bpe_train, "16,384 merges learnt from ingested text, in seconds", b) {
  for (int threads : {1, 2}) {
    std::vector<double> seconds;
    for (int round = 0; round < 5; ++round) {
      const auto start = std::chrono::steady_clock::now();
      LOCKSTEP_CHECK(Train(b.Pool(threads)).size() == kVocabulary);
      seconds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(seconds.begin(), seconds.end());
    b.Row(absl::StrCat(OpenCorpus()->bytes() / 1000000, " MB, ", threads, "T"), seconds[2], "s", "",
          0);
  }
}

}  // namespace
}  // namespace lockstep::engine
