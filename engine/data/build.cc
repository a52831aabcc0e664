// SPDX-License-Identifier: Apache-2.0
//
// Building of corpora. The order of what reaches the disk, for each shard: its four files, then its
// record; after the last record the manifest, and only then are the records removed. See build.h.
#include "engine/data/build.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/coding.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/data/shard_reader.h"
#include "engine/data/shard_writer.h"

namespace lockstep::engine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kBuildFolder[] = ".build";
constexpr size_t kRecordBytesMax = 1 << 20;
constexpr absl::string_view kRecordMagic = "LSBUILD1";

absl::Status FileSystemError(const std::error_code& error, absl::string_view what,
                             const std::string& path) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat(what, " ", path));
}

// A folder whose name is on the disk when it is returned from.
absl::Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return FileSystemError(error, "create folder", folder.string());
  const fs::path parent = fs::absolute(folder, error).parent_path();
  const int fd = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int reason = errno;
  if (fd >= 0) ::close(fd);
  if (!synced) return absl::ErrnoToStatus(reason, absl::StrCat("fsync ", parent.string()));
  return absl::OkStatus();
}

// What a process that was killed left half-written.
void RemoveTemporaryFiles(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (absl::StartsWith(name, ".lockstep-") && absl::EndsWith(name, ".tmp")) {
      std::error_code ignored;
      fs::remove(at->path(), ignored);
    }
  }
}

// Held while a process builds into a folder; gone with the process, however it ends.
class FolderLock {
 public:
  FolderLock() = default;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  absl::Status Take(const std::string& path) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("another process builds here: it holds ", path));
  }

 private:
  int fd_ = -1;
};

// Where in a source a shard begins or ends.
struct Place {
  int64_t part = 0;
  uint64_t document = 0;    // of the part
  uint64_t text_bytes = 0;  // of the documents before
};

struct Record {
  ShardEntry shard;
  Place end;
};

std::string EncodeRecord(const Record& record) {
  ByteWriter writer;
  writer.WriteFixed(AsBytes(kRecordMagic));
  writer.WriteI64(record.end.part);
  writer.WriteU64(record.end.document);
  writer.WriteU64(record.end.text_bytes);
  writer.WriteLengthPrefixed(AsBytes(SerializeShardEntry(record.shard)));
  return writer.Take();
}

absl::StatusOr<Record> DecodeRecord(const std::string& bytes, uint32_t token_bytes,
                                    uint64_t chunk_bytes) {
  ByteReader reader(AsBytes(bytes));
  Record record;
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan magic, reader.ReadFixed("magic", kRecordMagic.size()));
  if (AsChars(magic) != kRecordMagic) return absl::DataLossError("not the record of a shard");
  LOCKSTEP_ASSIGN_OR_RETURN(record.end.part, reader.ReadI64("part"));
  LOCKSTEP_ASSIGN_OR_RETURN(record.end.document, reader.ReadU64("document"));
  LOCKSTEP_ASSIGN_OR_RETURN(record.end.text_bytes, reader.ReadU64("text bytes"));
  LOCKSTEP_ASSIGN_OR_RETURN(const ByteSpan shard,
                            reader.ReadLengthPrefixed("shard", kRecordBytesMax));
  LOCKSTEP_RETURN_IF_ERROR(reader.ExpectEnd());
  LOCKSTEP_ASSIGN_OR_RETURN(record.shard,
                            ParseShardEntry(AsChars(shard), token_bytes, chunk_bytes));
  return record;
}

// A document on its way into a shard, and the place after it.
struct Encoded {
  std::string name;
  std::vector<int32_t> ids;
  uint64_t text_bytes = 0;
  Place place;  // of the document
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
    LOCKSTEP_RETURN_IF_ERROR(StartOrResume());
    for (const BuildSource& source : sources_) {
      LOCKSTEP_ASSIGN_OR_RETURN(SourceEntry entry, BuildOne(source), "source ", source.name);
      manifest_.sources.push_back(std::move(entry));
    }
    return Finish();
  }

 private:
  absl::Status CheckInputs();
  absl::StatusOr<std::optional<BuildReport>> FindFinished();
  absl::Status StartOrResume();
  absl::StatusOr<SourceEntry> BuildOne(const BuildSource& source);
  absl::StatusOr<Place> ReadRecords(const BuildSource& source, SourceEntry* entry);
  absl::StatusOr<std::vector<Encoded>> EncodeParts(const BuildSource& source, const Place& from,
                                                   int64_t end);
  absl::Status AddDocuments(const BuildSource& source, std::vector<Encoded> documents,
                            SourceEntry* entry);
  absl::Status CloseShard(const Place& end, SourceEntry* entry);
  absl::StatusOr<BuildReport> Finish();

  std::string Plan() const;
  std::string RecordPath(const std::string& source, uint64_t shard) const {
    return absl::StrCat(out_, "/", kBuildFolder, "/", source, ".", shard);
  }

  const BuildTokenizer& tokenizer_;
  std::vector<BuildSource> sources_;
  const BuildOptions& options_;
  const std::string out_;
  ThreadPool& pool_;
  const BuildHooks& hooks_;
  CorpusManifest manifest_;
  std::optional<ShardWriter> writer_;
  FolderLock lock_;
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
  const fs::path out(out_);
  if (!fs::exists(out / kCorpusManifestFile, error) || fs::exists(out / kBuildFolder, error)) {
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

absl::Status Builder::StartOrResume() {
  const std::string folder = absl::StrCat(out_, "/", kBuildFolder);
  const std::string plan_path = absl::StrCat(folder, "/plan.json");
  LOCKSTEP_RETURN_IF_ERROR(MakeFolder(out_));
  LOCKSTEP_RETURN_IF_ERROR(MakeFolder(folder));
  LOCKSTEP_RETURN_IF_ERROR(lock_.Take(absl::StrCat(folder, "/lock")));
  RemoveTemporaryFiles(out_);
  RemoveTemporaryFiles(folder);
  for (const BuildSource& source : sources_) {
    LOCKSTEP_RETURN_IF_ERROR(MakeFolder(absl::StrCat(out_, "/", source.name)));
    RemoveTemporaryFiles(absl::StrCat(out_, "/", source.name));
  }
  const absl::StatusOr<std::string> found = ReadFile(plan_path, kCorpusManifestBytesMax);
  if (absl::IsNotFound(found.status())) return WriteFileDurably(plan_path, AsBytes(Plan()));
  LOCKSTEP_RETURN_IF_ERROR(found.status());
  if (*found == Plan()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(out_,
                   " holds an unfinished build of other inputs or options; go on with those, "
                   "remove it, or choose another folder"));
}

// The shards that earlier runs finished.
absl::StatusOr<Place> Builder::ReadRecords(const BuildSource& source, SourceEntry* entry) {
  Place place;
  while (true) {
    const std::string path = RecordPath(source.name, entry->shards.size());
    const absl::StatusOr<std::string> bytes = ReadFile(path, kRecordBytesMax);
    if (absl::IsNotFound(bytes.status())) break;
    LOCKSTEP_RETURN_IF_ERROR(bytes.status());
    const absl::StatusOr<Record> record =
        DecodeRecord(*bytes, manifest_.token_bytes, manifest_.chunk_bytes);
    if (!record.ok() || record->end.part < place.part || record->end.part > source.parts) {
      return absl::DataLossError(absl::StrCat(path, ": not a record of this build (",
                                              record.status().message(), "); remove ", out_,
                                              " and build anew"));
    }
    entry->shards.push_back(record->shard);
    place = record->end;
  }
  hooks_.resumed(static_cast<int64_t>(place.text_bytes));
  return place;
}

// Parts from.part ... end - 1, without the documents before `from`.
absl::StatusOr<std::vector<Encoded>> Builder::EncodeParts(const BuildSource& source,
                                                          const Place& from, int64_t end) {
  std::vector<absl::StatusOr<std::vector<Document>>> parts(end - from.part);
  pool_.ParallelFor(end - from.part, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) parts[i] = source.read_part(from.part + i);
  });
  std::vector<Encoded> documents;
  std::vector<absl::string_view> texts;
  Place place = from;
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

absl::Status Builder::CloseShard(const Place& end, SourceEntry* entry) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ShardEntry shard, writer_->Finish());
  writer_.reset();
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(RecordPath(entry->name, entry->shards.size()),
                                            AsBytes(EncodeRecord({shard, end}))));
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
  LOCKSTEP_ASSIGN_OR_RETURN(Place place, ReadRecords(source, &entry));
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
  const std::string folder = absl::StrCat(out_, "/", kBuildFolder);
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) return FileSystemError(error, "remove", folder);
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
