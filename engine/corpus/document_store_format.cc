// SPDX-License-Identifier: Apache-2.0
//
// Coding of parts and manifests.
#include "engine/corpus/document_store_format.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/coding.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/corpus/utf8.h"

namespace lockstep::engine {
namespace {

constexpr int64_t kCountMax = int64_t{1} << 50;
constexpr size_t kPartsMax = 1'000'000;

// base/coding says InvalidArgument; a part that does not decode is a damaged artefact.
absl::Status AsDataLoss(const absl::Status& status) {
  return absl::DataLossError(status.message());
}

absl::StatusOr<StorePart> ParsePart(const nlohmann::json& json, int64_t index) {
  JsonReader reader(json, absl::StrCat("parts[", index, "]"));
  StorePart part;
  part.bytes = reader.Integer("bytes", 1, kCountMax);
  part.digest = reader.Sha256Digest("digest");
  part.documents = reader.Integer("documents", 1, kCountMax);
  part.file = reader.String("file", 64);
  part.text_bytes = reader.Integer("text_bytes", 1, kCountMax);
  if (reader.ok() && part.file != PartFileName(index)) {
    reader.Fail("file", PartFileName(index), "another name");
  }
  // A document has 8 bytes of lengths, at least one of name and at least one of text.
  const int64_t least =
      static_cast<int64_t>(kPartMagic.size()) + 9 * part.documents + part.text_bytes;
  if (reader.ok() && (part.text_bytes < part.documents || part.bytes < least)) {
    reader.Fail(
        "bytes",
        absl::StrCat("at least ", least, " for its documents, each with at least a byte of text"),
        absl::StrCat(part.bytes));
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return part;
}

}  // namespace

std::string PartFileName(int64_t part) { return absl::StrFormat("part-%06d.docs", part); }

void AppendDocument(absl::string_view name, absl::string_view text, std::string* part) {
  ByteWriter writer;
  writer.WriteU32(static_cast<uint32_t>(name.size()));
  writer.WriteU32(static_cast<uint32_t>(text.size()));
  absl::StrAppend(part, writer.bytes(), name, text);
}

absl::StatusOr<std::vector<Document>> DecodePart(absl::string_view bytes) {
  ByteReader reader(AsBytes(bytes));
  const absl::StatusOr<ByteSpan> magic = reader.ReadFixed("the first bytes", kPartMagic.size());
  if (!magic.ok() || AsChars(*magic) != kPartMagic) {
    return absl::DataLossError(
        "byte 0: expected the first bytes of a part of documents; found others");
  }
  std::vector<Document> documents;
  while (reader.remaining() > 0) {
    const size_t offset = reader.offset();
    const absl::StatusOr<uint32_t> name_size = reader.ReadU32("length of a document's name");
    if (!name_size.ok()) return AsDataLoss(name_size.status());
    const absl::StatusOr<uint32_t> text_size = reader.ReadU32("length of a document's text");
    if (!text_size.ok()) return AsDataLoss(text_size.status());
    if (*name_size == 0 || *name_size > kDocumentNameBytesMax || *text_size == 0) {
      return absl::DataLossError(
          absl::StrCat("byte ", offset, ": expected a name of 1 to ", kDocumentNameBytesMax,
                       " bytes and a text; found lengths ", *name_size, " and ", *text_size));
    }
    const absl::StatusOr<ByteSpan> name = reader.ReadFixed("a document's name", *name_size);
    if (!name.ok()) return AsDataLoss(name.status());
    const absl::StatusOr<ByteSpan> text = reader.ReadFixed("a document's text", *text_size);
    if (!text.ok()) return AsDataLoss(text.status());
    if (!IsValidUtf8(AsChars(*name)) || !IsValidUtf8(AsChars(*text))) {
      return absl::DataLossError(
          absl::StrCat("byte ", offset, ": the document is not valid UTF-8"));
    }
    documents.push_back({ToString(*name), ToString(*text)});
  }
  return documents;
}

absl::StatusOr<std::vector<Document>> ReadPartFile(const std::string& folder,
                                                   const StorePart& part) {
  const std::string path = absl::StrCat(folder, "/", part.file);
  absl::StatusOr<std::string> bytes = ReadFile(path, static_cast<size_t>(part.bytes));
  if (absl::IsResourceExhausted(bytes.status()) ||
      (bytes.ok() && static_cast<int64_t>(bytes->size()) != part.bytes)) {
    return absl::DataLossError(absl::StrCat(path, ": expected ", part.bytes,
                                            " bytes, as the manifest says; found ",
                                            bytes.ok() ? absl::StrCat(bytes->size()) : "more"));
  }
  LOCKSTEP_RETURN_IF_ERROR(bytes.status());
  if (const Digest digest = Sha256(AsBytes(*bytes)); digest != part.digest) {
    return absl::DataLossError(absl::StrCat(path, ": expected SHA-256 ", part.digest.ToHex(),
                                            ", as the manifest says; found ", digest.ToHex(),
                                            ": the file was changed or damaged"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Document> documents, DecodePart(*bytes), path);
  int64_t text_bytes = 0;
  for (const Document& document : documents)
    text_bytes += static_cast<int64_t>(document.text.size());
  if (static_cast<int64_t>(documents.size()) != part.documents || text_bytes != part.text_bytes) {
    return absl::DataLossError(absl::StrCat(
        path, ": expected ", part.documents, " documents with ", part.text_bytes,
        " bytes of text, as the manifest says; found ", documents.size(), " with ", text_bytes));
  }
  return documents;
}

nlohmann::json EncodeParts(const std::vector<StorePart>& parts) {
  nlohmann::json array = nlohmann::json::array();
  for (const StorePart& part : parts) {
    array.push_back({{"bytes", part.bytes},
                     {"digest", part.digest.ToHex()},
                     {"documents", part.documents},
                     {"file", part.file},
                     {"text_bytes", part.text_bytes}});
  }
  return array;
}

absl::StatusOr<std::vector<StorePart>> ParseParts(const nlohmann::json& array) {
  std::vector<StorePart> parts;
  for (const nlohmann::json& json : array) {
    LOCKSTEP_ASSIGN_OR_RETURN(StorePart part, ParsePart(json, static_cast<int64_t>(parts.size())));
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string EncodeManifest(const StoreManifest& manifest) {
  const nlohmann::json json = {{"config", manifest.config.ToHex()},
                               {"documents", manifest.documents},
                               {"format", "lockstep-documents"},
                               {"inputs",
                                {{"bytes", manifest.input_bytes},
                                 {"digest", manifest.input_digest.ToHex()},
                                 {"files", manifest.input_files},
                                 {"listing", manifest.input_listing.ToHex()}}},
                               {"licence", manifest.licence},
                               {"parts", EncodeParts(manifest.parts)},
                               {"report", manifest.report.ToHex()},
                               {"source", manifest.source},
                               {"text_bytes", manifest.text_bytes},
                               {"version", 1}};
  return json.dump();
}

absl::StatusOr<StoreManifest> ParseStoreManifest(absl::string_view bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(bytes));
  JsonReader reader(json, "manifest");
  if (const std::string format = reader.String("format", 64);
      reader.ok() && format != "lockstep-documents") {
    reader.Fail("format", "lockstep-documents", "another");
  }
  reader.Integer("version", 1, 1);
  StoreManifest manifest;
  manifest.source = reader.String("source", 64);
  manifest.licence = reader.String("licence", 4096);
  manifest.documents = reader.Integer("documents", 0, kCountMax);
  manifest.text_bytes = reader.Integer("text_bytes", 0, kCountMax);
  manifest.config = reader.Sha256Digest("config");
  manifest.report = reader.Sha256Digest("report");
  JsonReader inputs(reader.Object("inputs"), "manifest.inputs");
  manifest.input_bytes = inputs.Integer("bytes", 0, kCountMax);
  manifest.input_digest = inputs.Sha256Digest("digest");
  manifest.input_files = inputs.Integer("files", 0, kCountMax);
  manifest.input_listing = inputs.Sha256Digest("listing");
  reader.Join(inputs.Finish());
  LOCKSTEP_ASSIGN_OR_RETURN(manifest.parts, ParseParts(reader.Array("parts", kPartsMax)),
                            "manifest");
  // Each is below 2^50, so that a sum of 2^63 would need more parts than there may be.
  int64_t documents = 0;
  int64_t text_bytes = 0;
  for (const StorePart& part : manifest.parts) {
    documents = std::min(documents + part.documents, 2 * kCountMax);
    text_bytes = std::min(text_bytes + part.text_bytes, 2 * kCountMax);
  }
  if (reader.ok() && documents != manifest.documents) {
    reader.Fail("documents", absl::StrCat("the parts' sum, ", documents),
                absl::StrCat(manifest.documents));
  }
  if (reader.ok() && text_bytes != manifest.text_bytes) {
    reader.Fail("text_bytes", absl::StrCat("the parts' sum, ", text_bytes),
                absl::StrCat(manifest.text_bytes));
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return manifest;
}

absl::Status WriteDocumentStore(const std::string& folder, const std::string& source,
                                const std::string& licence, const std::vector<Document>& documents,
                                int64_t documents_per_part) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return absl::ErrnoToStatus(error.value(), absl::StrCat(folder, ": cannot make the folder"));
  StoreManifest manifest;
  manifest.source = source;
  manifest.licence = licence;
  manifest.report = Sha256(AsBytes("{}"));
  LOCKSTEP_RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(folder, "/", kReportFile), AsBytes("{}")));
  for (size_t begin = 0; begin < documents.size();) {
    const size_t end = std::min(
        documents.size(), begin + static_cast<size_t>(std::max<int64_t>(documents_per_part, 1)));
    StorePart part;
    part.file = PartFileName(static_cast<int64_t>(manifest.parts.size()));
    std::string bytes(kPartMagic);
    for (; begin < end; ++begin) {
      AppendDocument(documents[begin].name, documents[begin].text, &bytes);
      ++part.documents;
      part.text_bytes += static_cast<int64_t>(documents[begin].text.size());
    }
    part.bytes = static_cast<int64_t>(bytes.size());
    part.digest = Sha256(AsBytes(bytes));
    LOCKSTEP_RETURN_IF_ERROR(
        WriteFileDurably(absl::StrCat(folder, "/", part.file), AsBytes(bytes)));
    manifest.documents += part.documents;
    manifest.text_bytes += part.text_bytes;
    manifest.parts.push_back(std::move(part));
  }
  return WriteFileDurably(absl::StrCat(folder, "/", kManifestFile),
                          AsBytes(EncodeManifest(manifest)));
}

}  // namespace lockstep::engine
