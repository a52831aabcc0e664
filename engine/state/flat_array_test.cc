// SPDX-License-Identifier: Apache-2.0
//
// Flat arrays: in memory and in a file they hold the same, pieces are zero before they are written,
// and a file that gives back something else is an error.
#include "engine/state/flat_array.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "engine/backend/cpu_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/random/random.h"

namespace lockstep::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Its two large tensors are two pieces each.
audit::ModelConfig Config() {
  return {.layers = 1,
          .width = 64,
          .query_heads = 2,
          .kv_heads = 1,
          .head_dim = 16,
          .ffn_width = 32,
          .vocab = kPieceElements / 64 + 100,
          .seq_len = 16,
          .window = 8,
          .full_every = 0,
          .rope_theta = 1e4,
          .norm_eps = 1e-6,
          .init_std = 0.02};
}

uint32_t BitsAt(const Piece& piece, int64_t i) {
  return static_cast<uint32_t>(kernels::RandomBelow(5, piece.offset, i, uint64_t{1} << 32));
}

class FlatArrayTest : public ::testing::Test {
 protected:
  // Every piece has its own bits, NaNs and -0 among them; only ends and a middle are set, the rest
  // stays zero, so that this takes no time.
  std::vector<float> Values(const Piece& piece) const {
    std::vector<float> values(piece.count);
    for (const int64_t i : {int64_t{0}, piece.count / 2, piece.count - 1}) {
      values[i] = std::bit_cast<float>(BitsAt(piece, i));
    }
    values[0] = std::bit_cast<float>(uint32_t{0x80000000});
    values[piece.count - 1] = std::bit_cast<float>(uint32_t{0x7fc01234});
    return values;
  }
  static bool SameBits(const float* found, const std::vector<float>& expected) {
    return std::memcmp(found, expected.data(), expected.size() * sizeof(float)) == 0;
  }
  // The unnamed file, by the process's table of open files.
  static std::string SpillFile() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
      if (target.find("/.lockstep-spill-") != std::string::npos) return entry.path().string();
    }
    return "";
  }
  static void Overwrite(int64_t offset, const void* bytes, size_t count) {
    const int file = open(SpillFile().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file, 0);
    EXPECT_EQ(pwrite(file, bytes, count, offset), static_cast<ssize_t>(count));
    close(file);
  }

  const std::unique_ptr<Backend> backend_ = *CreateCpuBackend(2);
  const ParameterLayout layout_{Config()};
  const std::vector<Piece> pieces_ = layout_.Pieces(/*with_statistics=*/true);
  TemporaryFolder folder_;
};

TEST_F(FlatArrayTest, TensorsAreCutIntoPieces) {
  ASSERT_GT(pieces_.size(), static_cast<size_t>(layout_.tensors()) + 1);
  EXPECT_EQ(pieces_[0].count, kPieceElements);
  EXPECT_EQ(pieces_[1].count, 6400);
  EXPECT_EQ(pieces_[1].offset, kPieceElements);
  EXPECT_EQ(pieces_.back().tensor, -1);
}

TEST_F(FlatArrayTest, HoldsWhatWasPutInMemoryAndInAFile) {
  for (const bool spilled : {false, true}) {
    const std::unique_ptr<FlatArray> array =
        spilled ? *FlatArray::Spilled(*backend_, layout_, folder_.path())
                : *FlatArray::InMemory(*backend_, layout_);
    EXPECT_EQ(array->in_memory(), !spilled);
    for (const Piece& piece : pieces_) {
      const auto data = array->Load(piece);
      ASSERT_THAT(data, IsOk());
      EXPECT_TRUE(SameBits(*data, std::vector<float>(piece.count))) << piece.offset;
    }
    for (const Piece& piece : pieces_) {
      ASSERT_THAT(array->Put(piece, Values(piece).data()), IsOk());
    }
    // Backwards, so that nothing is there by accident.
    for (size_t i = pieces_.size(); i-- > 0;) {
      const auto data = array->Load(pieces_[i]);
      ASSERT_THAT(data, IsOk());
      EXPECT_TRUE(SameBits(*data, Values(pieces_[i]))) << i;
    }
    // Load, change, Store.
    float* const data = *array->Load(pieces_[2]);
    data[1] = 42;
    ASSERT_THAT(array->Store(pieces_[2]), IsOk());
    ASSERT_THAT(array->Load(pieces_[3]), IsOk());
    EXPECT_EQ((*array->Load(pieces_[2]))[1], 42);
  }
}

// A piece that was never stored is zero, though the memory held another one.
TEST_F(FlatArrayTest, APieceIsZeroUntilItIsStored) {
  const auto array = *FlatArray::Spilled(*backend_, layout_, folder_.path());
  ASSERT_THAT(array->Put(pieces_[1], Values(pieces_[1]).data()), IsOk());
  const auto other = array->Load(pieces_[0]);
  ASSERT_THAT(other, IsOk());
  EXPECT_TRUE(SameBits(*other, std::vector<float>(pieces_[0].count)));
  // What was changed and not stored is gone.
  (*array->Load(pieces_[3]))[0] = 7;
  EXPECT_TRUE(SameBits(*array->Load(pieces_[4]), std::vector<float>(pieces_[4].count)));
  EXPECT_EQ(std::bit_cast<uint32_t>((*array->Load(pieces_[3]))[0]), 0u);
}

TEST_F(FlatArrayTest, TheFileHasNoName) {
  const auto array = *FlatArray::Spilled(*backend_, layout_, folder_.path());
  ASSERT_THAT(array->Put(pieces_[1], Values(pieces_[1]).data()), IsOk());
  EXPECT_THAT(ReadAll(folder_.path()), IsEmpty());
  EXPECT_NE(SpillFile(), "");
}

TEST_F(FlatArrayTest, OneChangedBitOfTheFileIsDataLoss) {
  const auto array = *FlatArray::Spilled(*backend_, layout_, folder_.path());
  for (const Piece& piece : pieces_) {
    ASSERT_THAT(array->Put(piece, Values(piece).data()), IsOk());
  }
  const Piece& piece = pieces_[1];
  const auto offset = static_cast<int64_t>(piece.offset * sizeof(float));
  // An element that is zero: its lowest bit.
  const char bit = 1;
  Overwrite(offset + 8, &bit, 1);
  EXPECT_THAT(array->Load(piece),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(folder_.path()), HasSubstr(std::to_string(offset)),
                             HasSubstr("check the disk"))));
  EXPECT_THAT(array->Load(pieces_[0]), IsOk());
  EXPECT_THAT(array->Load(pieces_[2]), IsOk());
  // Storing it again makes it good.
  ASSERT_THAT(array->Put(piece, Values(piece).data()), IsOk());
  EXPECT_THAT(array->Load(piece), IsOk());
}

TEST_F(FlatArrayTest, PiecesThatChangedPlacesAreDataLoss) {
  const auto array = *FlatArray::Spilled(*backend_, layout_, folder_.path());
  // Two pieces of the same size: the norms' gains.
  const Piece& first = pieces_[2];
  const Piece& second = pieces_[3];
  ASSERT_EQ(first.count, second.count);
  std::vector<float> ones(first.count, 1.0f);
  const std::vector<float> twos(first.count, 2.0f);
  ASSERT_THAT(array->Put(first, ones.data()), IsOk());
  ASSERT_THAT(array->Put(second, twos.data()), IsOk());
  const size_t bytes = ones.size() * sizeof(float);
  Overwrite(static_cast<int64_t>(first.offset * sizeof(float)), twos.data(), bytes);
  Overwrite(static_cast<int64_t>(second.offset * sizeof(float)), ones.data(), bytes);
  EXPECT_THAT(array->Load(first), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(array->Load(second), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(FlatArrayTest, AFileThatWasCutIsDataLoss) {
  const auto array = *FlatArray::Spilled(*backend_, layout_, folder_.path());
  ASSERT_THAT(array->Put(pieces_[1], Values(pieces_[1]).data()), IsOk());
  const auto end = static_cast<off_t>((pieces_[1].offset + 10) * sizeof(float));
  ASSERT_EQ(truncate(SpillFile().c_str(), end), 0);
  EXPECT_THAT(array->Load(pieces_[1]),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("expected 25600 bytes")));
}

TEST_F(FlatArrayTest, AFullDiskIsAnError) {
  const auto array = *FlatArray::Spilled(*backend_, layout_, folder_.path());
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status put = array->Put(pieces_[1], Values(pieces_[1]).data());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(put.ok());
  EXPECT_THAT(std::string(put.message()), HasSubstr("cannot write 25600 bytes"));
}

TEST_F(FlatArrayTest, AFolderThatIsNotThere) {
  EXPECT_THAT(FlatArray::Spilled(*backend_, layout_, folder_ / "none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("spill file")));
}

}  // namespace
}  // namespace lockstep::engine
