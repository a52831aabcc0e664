// SPDX-License-Identifier: Apache-2.0
//
// A folder of a test's own, gone with it; and what lies in a folder, to compare. For tests only.
#ifndef LOCKSTEP_BASE_TESTING_TEMPORARY_FOLDER_H_
#define LOCKSTEP_BASE_TESTING_TEMPORARY_FOLDER_H_

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "base/logging.h"
#include "gtest/gtest.h"

namespace lockstep {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    // In memory where that can be had: these tests bring hundreds of files "to the disk".
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    std::string name = (memory ? "/dev/shm/" : ::testing::TempDir()) + "lockstep_XXXXXX";
    LOCKSTEP_CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(absl::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

inline std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void WriteBytes(const std::string& path, absl::string_view bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  LOCKSTEP_CHECK(file.good());
}

// Every file below the folder, by its path there.
inline std::map<std::string, std::string> ReadAll(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[std::filesystem::relative(entry.path(), folder).string()] = ReadBytes(entry.path());
  }
  return files;
}

}  // namespace lockstep

#endif  // LOCKSTEP_BASE_TESTING_TEMPORARY_FOLDER_H_
