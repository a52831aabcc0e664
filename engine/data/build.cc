// SPDX-License-Identifier: Apache-2.0
//
// Building of corpora. The order of what reaches the disk, for each shard: its four files, then its
// record; after the last record the manifest, and only then are the records removed. See build.h.
#include "engine/data/build.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/data/build_journal.h"
#include "engine/data/shard_reader.h"
#include "engine/data/shard_writer.h"

namespace lockstep::engine {
namespace {

using Json = nlohmann::json;

// A document on its way into a shard, and the place after it.
struct Encoded {
  std::string name;
  std::vector<int32_t> ids;
  uint64_t text_bytes = 0;
  BuildPlace place;  // of the document
};

class Builder {
 public:
  Builder(const BuildTokenizer& tokenizer, std::vector<BuildSource> sources,
          const BuildOptions& options, ThreadPool& pool, const BuildHooks& hooks)
      : tokenizer_(tokenizer),
        sources_(std::move(sources)),
        options_(options),
        out_(options.out),
        pool_(pool),
        hooks_(hooks) {}

  absl::StatusOr<BuildReport> Run() {
    LOCKSTEP_RETURN_IF_ERROR(CheckInputs());
    LOCKSTEP_ASSIGN_OR_RETURN(std::optional<BuildReport> finished, FindFinished());
    if (finished) return *std::move(finished);
    LOCKSTEP_RETURN_IF_ERROR(OpenJournal());
    for (const BuildSource& source : sources_) {
      LOCKSTEP_ASSIGN_OR_RETURN(SourceEntry entry, BuildOne(source), "source ", source.name);
      manifest_.sources.push_back(std::move(entry));
    }
    return Finish();
  }

 private:
  absl::Status CheckInputs();
  absl::StatusOr<std::optional<BuildReport>> FindFinished();
  absl::Status OpenJournal();
  absl::StatusOr<SourceEntry> BuildOne(const BuildSource& source);
  absl::StatusOr<BuildPlace> TakeUp(const BuildSource& source, SourceEntry* entry);
  absl::StatusOr<std::vector<Encoded>> EncodeParts(const BuildSource& source,
                                                   const BuildPlace& from, int64_t end);
  absl::Status AddDocuments(const BuildSource& source, std::vector<Encoded> documents,
                            SourceEntry* entry);
  absl::Status CloseShard(const BuildPlace& end, SourceEntry* entry);
  absl::StatusOr<BuildReport> Finish();

  std::string Plan() const;

  const BuildTokenizer& tokenizer_;
  std::vector<BuildSource> sources_;
  const BuildOptions& options_;
  const std::string out_;
  ThreadPool& pool_;
  const BuildHooks& hooks_;
  CorpusManifest manifest_;
  std::optional<ShardWriter> writer_;
  std::optional<BuildJournal> journal_;
};

absl::Status Builder::CheckInputs() {
  manifest_ = {.tokenizer = tokenizer_.digest,
               .vocab_size = tokenizer_.vocab_size,
               .separator = tokenizer_.separator,
               .token_bytes = TokenBytes(tokenizer_.vocab_size),
               .chunk_bytes = options_.chunk_bytes,
               .shard_tokens = options_.shard_tokens,
               .sources = {}};
  // The manifest's own rules, told of options.
  if (const absl::Status status = ValidateManifest(manifest_); !status.ok()) {
    return absl::InvalidArgumentError(status.message());
  }
  std::sort(sources_.begin(), sources_.end(),
            [](const BuildSource& a, const BuildSource& b) { return a.name < b.name; });
  std::map<std::string, uint64_t> shares = options_.shares;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const std::string& name = sources_[i].name;
    if (!IsSourceName(name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "source \"", name,
          "\": expected a name of 1 to 64 letters, digits, _, - and (not first) dots"));
    }
    if (i > 0 && name == sources_[i - 1].name) {
      return absl::InvalidArgumentError(absl::StrCat("source ", name, " is there twice"));
    }
    shares.erase(name);
  }
  if (!shares.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a share is given for ", shares.begin()->first, ", which is no source here"));
  }
  for (const auto& [name, share] : options_.shares) {
    if (share > kShareMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("source ", name, ": expected a share of at most 2^56, found ", share));
    }
  }
  return absl::OkStatus();
}

// Everything that the shards depend on.
std::string Builder::Plan() const {
  Json sources = Json::array();
  for (const BuildSource& source : sources_) {
    sources.push_back({{"name", source.name},
                       {"licence", source.licence},
                       {"store", source.store.ToHex()},
                       {"text_bytes", source.text_bytes}});
  }
  const Json plan = {
      {"chunk_bytes", options_.chunk_bytes}, {"format", "lockstep-corpus-build-1"},
      {"separator", tokenizer_.separator},   {"shard_tokens", options_.shard_tokens},
      {"sources", std::move(sources)},       {"tokenizer", tokenizer_.digest.ToHex()},
      {"vocab_size", tokenizer_.vocab_size}};
  return plan.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A corpus that is already there: of the same inputs, or in the way.
absl::StatusOr<std::optional<BuildReport>> Builder::FindFinished() {
  std::error_code error;
  if (!std::filesystem::exists(absl::StrCat(out_, "/", kCorpusManifestFile), error) ||
      BuildJournal::IsIn(out_)) {
    return std::nullopt;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(CorpusManifest found, ReadCorpusManifest(out_));
  CorpusManifest expected = found;
  expected.tokenizer = tokenizer_.digest;
  expected.chunk_bytes = options_.chunk_bytes;
  expected.shard_tokens = options_.shard_tokens;
  bool same = expected == found && found.sources.size() == sources_.size();
  for (size_t i = 0; same && i < sources_.size(); ++i) {
    const SourceEntry& source = found.sources[i];
    const auto share = options_.shares.find(source.name);
    same = source.name == sources_[i].name && source.store == sources_[i].store &&
           source.licence == sources_[i].licence &&
           source.share == (share == options_.shares.end() ? source.tokens : share->second);
  }
  if (!same) {
    return absl::FailedPreconditionError(absl::StrCat(
        out_, " holds a corpus of other inputs or options; remove it, or choose another folder"));
  }
  const Digest digest = ManifestDigest(found);
  return BuildReport{std::move(found), digest, true};
}

absl::Status Builder::OpenJournal() {
  std::vector<std::string> names;
  for (const BuildSource& source : sources_) names.push_back(source.name);
  LOCKSTEP_ASSIGN_OR_RETURN(BuildJournal journal, BuildJournal::Open(out_, Plan(), names));
  journal_.emplace(std::move(journal));
  return absl::OkStatus();
}

// The shards that earlier runs finished, and where the next begins.
absl::StatusOr<BuildPlace> Builder::TakeUp(const BuildSource& source, SourceEntry* entry) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<FinishedShard> shards,
      journal_->Read(source.name, manifest_.token_bytes, manifest_.chunk_bytes));
  BuildPlace place;
  for (const FinishedShard& finished : shards) {
    entry->shards.push_back(finished.shard);
    place = finished.end;
  }
  hooks_.resumed(static_cast<int64_t>(place.text_bytes));
  return place;
}

// Parts from.part ... end - 1, without the documents before `from`.
absl::StatusOr<std::vector<Encoded>> Builder::EncodeParts(const BuildSource& source,
                                                          const BuildPlace& from, int64_t end) {
  std::vector<absl::StatusOr<std::vector<Document>>> parts(end - from.part);
  pool_.ParallelFor(end - from.part, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) parts[i] = source.read_part(from.part + i);
  });
  std::vector<Encoded> documents;
  std::vector<absl::string_view> texts;
  BuildPlace place = from;
  for (int64_t i = 0; i < end - from.part; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(parts[i].status(), "part ", from.part + i);
    const uint64_t skip = i == 0 ? from.document : 0;
    for (uint64_t d = skip; d < parts[i]->size(); ++d) {
      Document& document = (*parts[i])[d];
      place.part = from.part + i;
      place.document = d;
      documents.push_back({std::move(document.name), {}, document.text.size(), place});
      place.text_bytes += document.text.size();
      texts.push_back(document.text);
    }
  }
  std::vector<std::vector<int32_t>> ids = tokenizer_.encode_all(texts, pool_);
  for (size_t i = 0; i < documents.size(); ++i) documents[i].ids = std::move(ids[i]);
  return documents;
}

absl::Status Builder::CloseShard(const BuildPlace& end, SourceEntry* entry) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ShardEntry shard, writer_->Finish());
  writer_.reset();
  LOCKSTEP_RETURN_IF_ERROR(journal_->Append(entry->name, entry->shards.size(), {shard, end}));
  entry->shards.push_back(shard);
  return absl::OkStatus();
}

absl::Status Builder::AddDocuments(const BuildSource& source, std::vector<Encoded> documents,
                                   SourceEntry* entry) {
  for (const Encoded& document : documents) {
    const uint64_t tokens = document.ids.size() + 1;
    const uint64_t name = document.name.size();
    if (tokens > kShardTokensMax || name > kShardNamesBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat("document ", document.name.substr(0, 256),
                                                     ": ", tokens, " tokens, expected at most ",
                                                     kShardTokensMax));
    }
    if (writer_ && (writer_->tokens() + tokens > options_.shard_tokens ||
                    writer_->names_bytes() + name > kShardNamesBytesMax)) {
      LOCKSTEP_RETURN_IF_ERROR(CloseShard(document.place, entry));
    }
    if (!writer_) {
      const ShardShape shape = {tokenizer_.vocab_size, tokenizer_.separator, options_.chunk_bytes};
      LOCKSTEP_ASSIGN_OR_RETURN(
          writer_, ShardWriter::Create(out_, source.name, entry->shards.size(), shape, pool_));
    }
    LOCKSTEP_RETURN_IF_ERROR(writer_->Add(document.name, document.ids));
    hooks_.progress(static_cast<int64_t>(document.text_bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<SourceEntry> Builder::BuildOne(const BuildSource& source) {
  SourceEntry entry;
  entry.name = source.name;
  entry.licence = source.licence;
  entry.store = source.store;
  entry.text_bytes = source.text_bytes;
  LOCKSTEP_ASSIGN_OR_RETURN(BuildPlace place, TakeUp(source, &entry));
  while (place.part < source.parts) {
    if (hooks_.interrupted()) {
      return absl::CancelledError("interrupted; the same command goes on from here");
    }
    const int64_t end = std::min<int64_t>(source.parts, place.part + pool_.threads());
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Encoded> documents, EncodeParts(source, place, end));
    for (const Encoded& document : documents) place.text_bytes += document.text_bytes;
    LOCKSTEP_RETURN_IF_ERROR(AddDocuments(source, std::move(documents), &entry));
    place = {end, 0, place.text_bytes};
  }
  if (writer_) LOCKSTEP_RETURN_IF_ERROR(CloseShard(place, &entry));
  for (const ShardEntry& shard : entry.shards) {
    entry.documents += shard.documents;
    entry.tokens += shard.tokens;
  }
  const auto share = options_.shares.find(source.name);
  entry.share = share == options_.shares.end() ? entry.tokens : share->second;
  return entry;
}

absl::StatusOr<BuildReport> Builder::Finish() {
  // What this program writes, it can read: a defect of ours or of an input shows here, and not at
  // the reader's.
  const std::string bytes = SerializeManifest(manifest_);
  LOCKSTEP_RETURN_IF_ERROR(ParseCorpusManifest(bytes).status(), "the manifest made");
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFileDurably(absl::StrCat(out_, "/", kCorpusManifestFile), AsBytes(bytes)));
  LOCKSTEP_RETURN_IF_ERROR(journal_->Remove());
  return BuildReport{std::move(manifest_), Sha256(AsBytes(bytes)), false};
}

}  // namespace

absl::StatusOr<BuildReport> BuildCorpus(const BuildTokenizer& tokenizer,
                                        std::vector<BuildSource> sources,
                                        const BuildOptions& options, ThreadPool& pool,
                                        const BuildHooks& hooks) {
  return Builder(tokenizer, std::move(sources), options, pool, hooks).Run();
}

}  // namespace lockstep::engine
