// SPDX-License-Identifier: Apache-2.0
//
// Input files and folders for tests of the corpus. For tests only.
#ifndef LOCKSTEP_ENGINE_CORPUS_TESTING_CORPUS_FILES_H_
#define LOCKSTEP_ENGINE_CORPUS_TESTING_CORPUS_FILES_H_

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/logging.h"
#include "engine/corpus/document_store.h"
#include "gtest/gtest.h"

namespace lockstep::engine {

// A folder that is gone with the test.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
    LOCKSTEP_CHECK(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  // Writes a file, with the folders above it.
  void Write(const std::string& name, absl::string_view bytes) const {
    const std::filesystem::path path = path_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

inline std::string FileBytes(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

// Every file of a folder, by name.
inline std::map<std::string, std::string> FolderBytes(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename().string()] = FileBytes(entry.path().string());
  }
  return files;
}

inline std::string Gzipped(absl::string_view bytes) {
  z_stream stream = {};
  LOCKSTEP_CHECK(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY) ==
                 Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  LOCKSTEP_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

inline std::string Zstandard(absl::string_view bytes, int window_log = 0) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  if (window_log > 0) {
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  }
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  ZSTD_inBuffer input = {bytes.data(), bytes.size(), 0};
  ZSTD_outBuffer output = {out.data(), out.size(), 0};
  // In pieces, so that the size is not known at the start and the frame keeps its window.
  while (input.pos < input.size) ZSTD_compressStream2(context, &output, &input, ZSTD_e_continue);
  LOCKSTEP_CHECK(ZSTD_compressStream2(context, &output, &input, ZSTD_e_end) == 0);
  out.resize(output.pos);
  ZSTD_freeCCtx(context);
  return out;
}

// All documents of a store.
inline std::vector<Document> AllDocuments(const std::string& folder) {
  std::vector<Document> all;
  const absl::StatusOr<DocumentStore> store = DocumentStore::Open(folder);
  EXPECT_TRUE(store.ok()) << store.status();
  for (int64_t part = 0; store.ok() && part < store->parts(); ++part) {
    absl::StatusOr<std::vector<Document>> documents = store->ReadPart(part);
    EXPECT_TRUE(documents.ok()) << documents.status();
    if (!documents.ok()) break;
    for (Document& document : *documents) all.push_back(std::move(document));
  }
  return all;
}

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_TESTING_CORPUS_FILES_H_
