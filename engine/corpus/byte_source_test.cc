// SPDX-License-Identifier: Apache-2.0
//
// Reading plain and compressed files: whole, cut off anywhere, damaged anywhere, and bombs.
#include "engine/corpus/byte_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "engine/corpus/testing/corpus_files.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::HasSubstr;

std::string Text(size_t bytes) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < bytes) text += absl::StrCat("line ", random() % 1000, "\n");
  text.resize(bytes);
  return text;
}

class ByteSourceTest : public ::testing::Test {
 protected:
  // All that can be read of a file of that name and content, `step` bytes at a time.
  absl::StatusOr<std::string> ReadAll(const std::string& name, absl::string_view bytes,
                                      size_t step = 1 << 16,
                                      const DecompressionLimits& limits = {}) {
    folder_.Write(name, bytes);
    absl::StatusOr<std::unique_ptr<ByteSource>> source = ByteSource::Open(folder_ / name, limits);
    if (!source.ok()) return source.status();
    std::string out;
    std::string buffer(step, '\0');
    while (true) {
      const absl::StatusOr<size_t> count = (*source)->Read(buffer.data(), step);
      if (!count.ok()) return count.status();
      if (*count == 0) break;
      out.append(buffer, 0, *count);
    }
    EXPECT_EQ((*source)->file_bytes(), static_cast<int64_t>(bytes.size()));
    EXPECT_EQ((*source)->FinishFileDigest(), Sha256(AsBytes(bytes)));
    return out;
  }

  TestFolder folder_;
};

TEST_F(ByteSourceTest, WholeFilesAtAnyStep) {
  for (const size_t bytes : {0, 1, 1000, 300000}) {
    const std::string text = Text(bytes);
    for (const size_t step : {1, 7, 4096, 1 << 20}) {
      if (step == 1 && bytes > 1000) continue;
      EXPECT_THAT(ReadAll("a.txt", text, step), IsOkAndHolds(text));
      EXPECT_THAT(ReadAll("a.txt.gz", Gzipped(text), step), IsOkAndHolds(text));
      EXPECT_THAT(ReadAll("a.txt.zst", Zstandard(text), step), IsOkAndHolds(text));
    }
  }
}

TEST_F(ByteSourceTest, MembersAndFramesOneAfterAnother) {
  const std::string a = Text(1000);
  const std::string b = Text(50);
  EXPECT_THAT(ReadAll("a.gz", Gzipped(a) + Gzipped("") + Gzipped(b)), IsOkAndHolds(a + b));
  EXPECT_THAT(ReadAll("a.zst", Zstandard(a) + Zstandard("") + Zstandard(b)), IsOkAndHolds(a + b));
  // RFC 8878, 3.1.2: a skippable frame of 3 bytes.
  const std::string skippable("\x50\x2A\x4D\x18\x03\x00\x00\x00xyz", 11);
  EXPECT_THAT(ReadAll("a.zst", skippable + Zstandard(a)), IsOkAndHolds(a));
}

TEST_F(ByteSourceTest, CutOffAnywhere) {
  const std::string text = Text(400);
  for (const auto& [name, bytes] :
       {std::pair<std::string, std::string>("a.gz", Gzipped(text)), {"a.zst", Zstandard(text)}}) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_THAT(ReadAll(name, bytes.substr(0, size)),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr(folder_ / name)))
          << name << " " << size;
    }
    // After a whole member, too.
    EXPECT_THAT(ReadAll(name, bytes + bytes.substr(0, bytes.size() - 1)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("cut off")));
    EXPECT_THAT(ReadAll(name, bytes + "garbage"), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(ReadAll(name, "plain text, wrongly named\n"),
                StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST_F(ByteSourceTest, AnyFlippedBitIsFound) {
  const std::string text = Text(400);
  for (const auto& [name, bytes] :
       {std::pair<std::string, std::string>("a.gz", Gzipped(text)), {"a.zst", Zstandard(text)}}) {
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
        const absl::StatusOr<std::string> read = ReadAll(name, damaged);
        // The gzip header has fields that mean nothing (time, system); there the text is still
        // right.
        if (read.ok()) {
          EXPECT_EQ(*read, text) << name << " " << at << " " << bit;
        } else {
          EXPECT_THAT(read, StatusIs(absl::StatusCode::kDataLoss));
        }
      }
    }
  }
}

TEST_F(ByteSourceTest, BombsAreRefused) {
  const std::string zeros(size_t{64} << 20, '\0');
  const std::string gzip = Gzipped(zeros);
  EXPECT_LT(gzip.size(), size_t{70000});
  for (const auto& [name, bytes] :
       {std::pair<std::string, std::string>("a.gz", gzip), {"a.zst", Zstandard(zeros)}}) {
    EXPECT_THAT(ReadAll(name, bytes),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("decompression bomb")));
    EXPECT_THAT(ReadAll(name, bytes, 1 << 20, {.ratio_max = 1000000}), IsOkAndHolds(zeros));
    // Small files may be as repetitive as they like.
    const std::string small(size_t{16} << 20, 'x');
    EXPECT_THAT(ReadAll(name, name == "a.gz" ? Gzipped(small) : Zstandard(small)),
                IsOkAndHolds(small));
  }
}

TEST_F(ByteSourceTest, WindowsAreBounded) {
  const std::string text = Text(3 << 20);
  const std::string bytes = Zstandard(text, 22);
  EXPECT_THAT(ReadAll("a.zst", bytes, 1 << 16, {.zstd_window_log_max = 22}), IsOkAndHolds(text));
  EXPECT_THAT(ReadAll("a.zst", bytes, 1 << 16, {.zstd_window_log_max = 21}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("zstd_window_log_max")));
}

TEST_F(ByteSourceTest, WhatIsNoFile) {
  EXPECT_THAT(ByteSource::Open(folder_ / "nothing", {}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ByteSource::Open(folder_.path(), {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(ByteSource::Open(folder_ / "pipe", {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace lockstep::engine
