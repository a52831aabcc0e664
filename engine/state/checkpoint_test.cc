// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of the golden run: the state comes back bit for bit, from memory and from spills; and
// whatever is wrong with the folder (a flipped byte, a cut, missing, foreign or swapped file,
// another run's state, a full disk while it is written) is an error that says where.
#include "engine/state/checkpoint.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "engine/backend/cpu_backend.h"
#include "engine/testing/golden_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kManifest[] = "checkpoint.json";

// One golden run, its states at the beginning, after two steps and later, saved once for all tests.
class CheckpointTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    backend_ = CreateCpuBackend(2)->release();
    saved_ = new TemporaryFolder();
    golden::GoldenRun run(*backend_);
    ASSERT_THAT(Save(run, nullptr, *saved_ / "0"), IsOk());
    run.Step();
    const StepResult second = run.Step();
    ASSERT_THAT(Save(run, &second.record, *saved_ / "2"), IsOk());
    // A later one that has changed every part: a skipped step changes none.
    StepResult later = run.Step();
    while (later.record.outcome != audit::StepOutcome::kUpdated) later = run.Step();
    ASSERT_THAT(Save(run, &later.record, *saved_ / "later"), IsOk());
    later_step_ = later.record.step + 1;
    manifest_ = new audit::RunManifest(run.manifest());
  }
  static void TearDownTestSuite() {
    delete manifest_;
    delete saved_;
    delete backend_;
  }

  static absl::Status Save(golden::GoldenRun& run, const audit::StepRecord* last,
                           const std::string& folder) {
    return SaveCheckpoint(*backend_, run.manifest(), run.state(), last, folder, [](int64_t) {});
  }

  // A copy of the state after two steps, to be spoilt.
  std::string Copy(const std::string& from = "2") {
    const std::string to = folder_ / absl::StrCat("copy", copies_++);
    std::filesystem::copy(*saved_ / from, to);
    return to;
  }
  static void Flip(const std::string& path, int64_t at, char bits) {
    std::string bytes = ReadBytes(path);
    bytes[at] = static_cast<char>(bytes[at] ^ bits);
    WriteBytes(path, bytes);
  }
  static absl::Status Load(const std::string& folder,
                           const audit::RunManifest& manifest = *manifest_) {
    const ParameterLayout layout(manifest.model);
    const auto state = *TrainState::Create(*backend_, manifest, layout, "");
    return LoadCheckpoint(*backend_, manifest, folder, *state, [](int64_t) {});
  }
  static absl::Status Verify(const std::string& folder,
                             const audit::RunManifest& manifest = *manifest_) {
    return VerifyCheckpoint(*backend_, manifest, folder, [](int64_t) {}).status();
  }

  static inline Backend* backend_ = nullptr;
  static inline TemporaryFolder* saved_ = nullptr;
  static inline audit::RunManifest* manifest_ = nullptr;
  static inline uint64_t later_step_ = 0;
  TemporaryFolder folder_;
  int copies_ = 0;
};

std::string PartBytes(Backend& backend, TrainState& state, StatePart part) {
  std::string bytes;
  for (const Piece& piece : state.layout().Pieces(false)) {
    const void* const data = *state.Load(part, piece);
    std::string host(piece.count * state.ElementBytes(part), '\0');
    backend.CopyOut(host.data(), data, host.size());
    bytes += host;
  }
  return bytes;
}

void ExpectSameState(Backend& backend, TrainState& found, TrainState& expected) {
  for (const StatePart part :
       {StatePart::kParameters, StatePart::kFirstMoment, StatePart::kSecondMoment}) {
    EXPECT_TRUE(PartBytes(backend, found, part) == PartBytes(backend, expected, part))
        << static_cast<int>(part);
  }
  const size_t working = expected.layout().flat_elements() * sizeof(BFloat16);
  EXPECT_EQ(std::memcmp(found.working(), expected.working(), working), 0);
  EXPECT_EQ(found.leaves().parameters, expected.leaves().parameters);
  EXPECT_EQ(found.leaves().first_moment, expected.leaves().first_moment);
  EXPECT_EQ(found.leaves().second_moment, expected.leaves().second_moment);
  EXPECT_EQ(found.step, expected.step);
  EXPECT_EQ(found.tokens, expected.tokens);
  EXPECT_EQ(found.updates, expected.updates);
  EXPECT_EQ(found.cursor, expected.cursor);
  EXPECT_EQ(found.spike, expected.spike);
  EXPECT_EQ(found.chain, expected.chain);
}

// In each storage of parameters, saved and loaded from memory and from spills: the same files, the
// same state, the same next step.
TEST_F(CheckpointTest, TheStateComesBackBitForBit) {
  for (const auto storage : {audit::ParameterStorage::kBf16, audit::ParameterStorage::kF32}) {
    audit::RunManifest manifest = golden::GoldenRun::Manifest();
    manifest.parameter_storage = storage;
    golden::GoldenRun run(*backend_, {}, manifest);
    golden::GoldenRun spilled(*backend_, {.recompute = false, .spill_folder = folder_.path()},
                              manifest);
    StepResult last;
    for (int i = 0; i < 2; ++i) {
      last = run.Step();
      spilled.Step();
    }
    const std::string name = absl::StrCat("storage", static_cast<int>(storage));
    int64_t written = 0;
    ASSERT_THAT(SaveCheckpoint(*backend_, manifest, run.state(), &last.record, folder_ / name,
                               [&](int64_t bytes) { written += bytes; }),
                IsOk());
    ASSERT_THAT(Save(spilled, &last.record, folder_ / (name + "s")), IsOk());
    auto files = ReadAll(folder_ / name);
    EXPECT_EQ(files, ReadAll(folder_ / (name + "s")));
    files.erase(kManifest);
    int64_t bytes = 0;
    for (const auto& [file, content] : files) bytes += static_cast<int64_t>(content.size());
    EXPECT_EQ(written, bytes);

    const StepResult next = run.Step();
    for (golden::GoldenRun* const to : {&run, &spilled}) {
      golden::GoldenRun other(
          *backend_,
          {.recompute = false, .spill_folder = to == &spilled ? folder_.path() : std::string()},
          manifest);
      ASSERT_THAT(
          LoadCheckpoint(*backend_, manifest, folder_ / name, other.state(), [](int64_t) {}),
          IsOk());
      ExpectSameState(*backend_, other.state(), spilled.state());
      ASSERT_THAT(other.data().Resume(other.state().step, other.state().cursor), IsOk());
      other.step().ParametersChanged();
      EXPECT_EQ(other.Step().record, next.record);
    }
  }
}

TEST_F(CheckpointTest, VerifyReportsWhatItFound) {
  const auto report = VerifyCheckpoint(*backend_, *manifest_, *saved_ / "later", [](int64_t) {});
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->manifest.next_step(), later_step_);
  EXPECT_EQ(report->tensors, 3 * ParameterLayout(manifest_->model).tensors());
  EXPECT_GT(report->bytes, 3 * ParameterLayout(manifest_->model).elements() * 2);
  ASSERT_THAT(Verify(*saved_ / "0"), IsOk());
}

// A byte of each tensor file at both ends, in the header and in the data. The digests name the
// file; who only loads sees the header or the root that is not the record's.
TEST_F(CheckpointTest, AFlippedByteOfAFileIsDataLoss) {
  for (const char* const name : audit::kCheckpointFiles) {
    const auto size = static_cast<int64_t>(ReadBytes(*saved_ / "2" + "/" + name).size());
    for (const int64_t at :
         {int64_t{0}, int64_t{7}, int64_t{8}, int64_t{60}, size / 3, size / 2, size - 1}) {
      for (const char bits : {'\x01', '\x80'}) {
        const std::string folder = Copy();
        const std::string path = absl::StrCat(folder, "/", name);
        Flip(path, at, bits);
        EXPECT_THAT(Verify(folder), StatusIs(absl::StatusCode::kDataLoss,
                                             AllOf(HasSubstr(path), HasSubstr("SHA-256"))))
            << at;
        EXPECT_THAT(Load(folder), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(folder)))
            << name << " at " << at;
        std::filesystem::remove_all(folder);
      }
    }
  }
}

// Every byte of the manifest. Most are seen in its own text; a file's digest when the file is read;
// the run's id makes it another run's.
TEST_F(CheckpointTest, AFlippedByteOfTheManifestIsSeen) {
  for (const char* const state : {"0", "2"}) {
    const std::string text = ReadBytes(*saved_ / state + "/" + kManifest);
    const size_t run_id = text.find("\"run_id\"");
    const std::string folder = Copy(state);
    const std::string path = absl::StrCat(folder, "/", kManifest);
    for (size_t at = 0; at < text.size(); ++at) {
      std::string bad = text;
      bad[at] = static_cast<char>(bad[at] ^ 1);
      WriteBytes(path, bad);
      const absl::Status status = Verify(folder);
      if (at > run_id && status.code() == absl::StatusCode::kFailedPrecondition) continue;
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr(folder))) << at;
    }
  }
}

TEST_F(CheckpointTest, CutLongMissingAndForeignFiles) {
  for (const char* const name : audit::kCheckpointFiles) {
    std::string folder = Copy();
    std::string path = absl::StrCat(folder, "/", name);
    const auto size = std::filesystem::file_size(path);
    for (const uintmax_t bytes : {uintmax_t{0}, size / 2, size - 1, size + 1}) {
      std::filesystem::resize_file(path, bytes);
      const auto says = StatusIs(absl::StatusCode::kDataLoss,
                                 AllOf(HasSubstr(path), HasSubstr(absl::StrCat("found ", bytes))));
      EXPECT_THAT(Load(folder), says);
      EXPECT_THAT(Verify(folder), says);
    }
    std::filesystem::remove(path);
    EXPECT_THAT(Load(folder), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
    EXPECT_THAT(Verify(folder), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
  }
  std::string folder = Copy();
  WriteBytes(folder + "/more.safetensors", "");
  EXPECT_THAT(Load(folder),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("found \"more.safetensors\"")));
  folder = Copy();
  std::filesystem::remove(absl::StrCat(folder, "/", kManifest));
  EXPECT_THAT(Load(folder), StatusIs(absl::StatusCode::kNotFound, HasSubstr(kManifest)));
  folder = Copy();
  std::filesystem::resize_file(absl::StrCat(folder, "/", kManifest), 300);
  EXPECT_THAT(Load(folder), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(kManifest)));
  WriteBytes(absl::StrCat(folder, "/", kManifest), "");
  EXPECT_THAT(Load(folder), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(kManifest)));
}

// Each is a right file of the same run, of a later step.
TEST_F(CheckpointTest, AFileOfAnotherStepIsDataLoss) {
  for (const auto& [name, part] : {std::pair{"first_moment.safetensors", "first moment"},
                                   std::pair{"parameters.safetensors", "parameters"},
                                   std::pair{"second_moment.safetensors", "second moment"}}) {
    const std::string folder = Copy();
    const std::string path = absl::StrCat(folder, "/", name);
    WriteBytes(path, ReadBytes(*saved_ / "later" + "/" + name));
    EXPECT_THAT(Verify(folder), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
    EXPECT_THAT(Load(folder),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr(folder), HasSubstr(part), HasSubstr("root"))));
  }
}

// The two moments have the same shapes: only the roots tell them apart.
TEST_F(CheckpointTest, MomentsThatChangedPlacesAreDataLoss) {
  const std::string folder = Copy();
  const std::string first = folder + "/first_moment.safetensors";
  const std::string second = folder + "/second_moment.safetensors";
  const std::string bytes = ReadBytes(first);
  WriteBytes(first, ReadBytes(second));
  WriteBytes(second, bytes);
  EXPECT_THAT(Load(folder), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("first moment")));
  EXPECT_THAT(Verify(folder), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(first)));
}

TEST_F(CheckpointTest, AnotherRunsCheckpointIsRefused) {
  audit::RunManifest other = *manifest_;
  other.seed += 1;
  for (const absl::Status& status : {Load(*saved_ / "2", other), Verify(*saved_ / "2", other)}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr(audit::RunIdOf(*manifest_).ToHex())));
  }
}

// A run that goes on from this one's state takes it, and only that one.
TEST_F(CheckpointTest, ASegmentTakesItsParentsState) {
  const auto parent = ReadCheckpointManifest(*saved_ / "2");
  ASSERT_THAT(parent, IsOk());
  audit::RunManifest segment = *manifest_;
  segment.recipe.peak_lr /= 2;
  segment.parent = audit::ParentSegment{.run_id = audit::RunIdOf(*manifest_),
                                        .step = 2,
                                        .tokens = static_cast<int64_t>(parent->tokens()),
                                        .chain = parent->chain()};
  EXPECT_THAT(Load(*saved_ / "2", segment), IsOk());
  EXPECT_THAT(Load(*saved_ / "later", segment), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// A right checkpoint whose tensors are another model's: the digests are its own, so only the
// headers can tell. The manifest is made to claim the run.
TEST_F(CheckpointTest, AnotherModelsTensorsAreDataLoss) {
  audit::RunManifest other = *manifest_;
  other.model.ffn_width += 16;
  golden::GoldenRun run(*backend_, {}, other);
  ASSERT_THAT(SaveCheckpoint(*backend_, *manifest_, run.state(), nullptr, folder_ / "other",
                             [](int64_t) {}),
              IsOk());
  EXPECT_THAT(Load(folder_ / "other"),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("mlp.gate_up"), HasSubstr("run's model"))));
}

TEST_F(CheckpointTest, AFolderThatIsThereIsNotReplaced) {
  golden::GoldenRun run(*backend_);
  const std::string folder = Copy();
  const auto before = ReadAll(folder);
  EXPECT_THAT(Save(run, nullptr, folder), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(ReadAll(folder), before);
}

TEST_F(CheckpointTest, AFullDiskLeavesNothingHalfMade) {
  golden::GoldenRun run(*backend_);
  const std::string home = folder_ / "run";
  std::filesystem::create_directory(home);
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  // In the header, in a moment's data, and so that only the moments' files are too large: those of
  // the parameters have half their bytes.
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{100}, rlim_t{100'000}, rlim_t{700'000}}) {
    const struct rlimit small = {.rlim_cur = bytes, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const absl::Status status = Save(run, nullptr, home + "/00000000");
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_FALSE(status.ok()) << bytes;
    EXPECT_THAT(std::string(status.message()), HasSubstr("first_moment.safetensors"));
    EXPECT_TRUE(std::filesystem::is_empty(home)) << bytes;
  }
  ASSERT_THAT(Save(run, nullptr, home + "/00000000"), IsOk());
  EXPECT_THAT(Load(home + "/00000000"), IsOk());
}

}  // namespace
}  // namespace lockstep::engine
