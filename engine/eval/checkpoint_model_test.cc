// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint's model against the training pass over the same windows, bit by bit; and that a
// damaged or another run's checkpoint gives no model and no export.
#include "engine/eval/checkpoint_model.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/temporary_folder.h"
#include "engine/backend/cpu_backend.h"
#include "engine/state/checkpoint.h"
#include "engine/state/export.h"
#include "engine/step_batch.h"
#include "engine/testing/golden_run.h"
#include "gtest/gtest.h"
#include "kernels/numeric.h"

namespace lockstep::engine {
namespace {

using golden::GoldenRun;

void NoBytes(int64_t) {}

class CheckpointModelTest : public ::testing::TestWithParam<audit::ParameterStorage> {
 protected:
  CheckpointModelTest() {
    audit::RunManifest manifest = GoldenRun::Manifest();
    manifest.parameter_storage = GetParam();
    run_ = std::make_unique<GoldenRun>(*backend_, golden::GoldenChoices(), manifest);
    StepResult last;
    for (int i = 0; i < 2; ++i) last = run_->Step();
    const absl::Status saved = SaveCheckpoint(*backend_, run_->manifest(), run_->state(),
                                              &last.record, checkpoint_, NoBytes);
    EXPECT_TRUE(saved.ok()) << saved;
  }

  // The next step's first windows, as the model takes them.
  void Windows(int64_t count, std::vector<int32_t>* inputs, std::vector<int32_t>* targets) {
    const StepBatch batch = *ReadStepBatch(run_->data());
    const int64_t seq_len = run_->manifest().model.seq_len;
    for (int64_t w = 0; w < count; ++w) {
      const auto begin = batch.tokens.begin() + w * (seq_len + 1);
      inputs->insert(inputs->end(), begin, begin + seq_len);
      targets->insert(targets->end(), begin + 1, begin + seq_len + 1);
    }
  }

  std::unique_ptr<Backend> backend_ = *CreateCpuBackend(2);
  TemporaryFolder folder_;
  const std::string checkpoint_ = folder_ / "checkpoint";
  std::unique_ptr<GoldenRun> run_;
};

TEST_P(CheckpointModelTest, LossesAreBitsOfTheTrainingPass) {
  std::vector<int32_t> inputs;
  std::vector<int32_t> targets;
  Windows(2, &inputs, &targets);
  Model& training = run_->step().model();
  const ParametersView parameters = run_->state().parameters();
  training.Prepare(parameters);
  std::vector<float> flat(training.layout().flat_elements());
  MicroBatchDigests digests;
  training.ForwardBackward(parameters, inputs, targets, {.flat = flat.data()}, &digests);

  for (const int threads : {1, 2, 3}) {
    const std::unique_ptr<Backend> backend = *CreateCpuBackend(threads);
    const auto model = *CheckpointModel::Load(*backend, run_->manifest(), checkpoint_, NoBytes);
    EXPECT_EQ(model->checkpoint().next_step(), 2u);
    std::vector<float> losses(inputs.size());
    ASSERT_TRUE(model->Losses(model->seq_len(), inputs, targets, std::span(losses)).ok());
    EXPECT_EQ(backend->RootOf(losses.data(), losses.size() * sizeof(float)), digests.losses);
    double sum = 0;
    for (const float loss : losses) sum += loss;
    EXPECT_NEAR(sum / static_cast<double>(losses.size()),
                flat[training.layout().statistics_offset()], 1e-5);
  }
}

// Windows of another length, more of them than usual, and back again.
TEST_P(CheckpointModelTest, AnyLengthAndNumberOfWindows) {
  std::vector<int32_t> inputs;
  std::vector<int32_t> targets;
  Windows(4, &inputs, &targets);
  const auto model = *CheckpointModel::Load(*backend_, run_->manifest(), checkpoint_, NoBytes);
  const int64_t seq_len = model->seq_len();
  std::vector<float> first(seq_len);
  const auto window = [&](std::vector<int32_t>& of) { return std::span(of).first(seq_len); };
  ASSERT_TRUE(model->Losses(seq_len, window(inputs), window(targets), std::span(first)).ok());
  std::vector<float> losses(inputs.size());
  for (const int64_t length : {seq_len, seq_len / 2, int64_t{1}}) {
    targets[0] = kernels::kIgnoredTarget;
    ASSERT_TRUE(model->Losses(length, inputs, targets, std::span(losses)).ok());
    EXPECT_EQ(losses[0], 0.0f);
    for (size_t i = 1; i < losses.size(); ++i) ASSERT_GT(losses[i], 0.0f) << i;
  }
  std::vector<float> again(seq_len);
  ASSERT_TRUE(model->Losses(seq_len, window(inputs), window(targets), std::span(again)).ok());
  for (int64_t i = 1; i < seq_len; ++i) {
    ASSERT_EQ(kernels::Bits(first[i]), kernels::Bits(again[i])) << i;
  }
}

TEST_P(CheckpointModelTest, DamageGivesNoModelAndNoExport) {
  const std::string path = checkpoint_ + "/parameters.safetensors";
  const std::string whole = ReadBytes(path);
  std::string damaged = whole;
  damaged[damaged.size() / 2] ^= 1;
  WriteBytes(path, damaged);
  const absl::Status loaded =
      CheckpointModel::Load(*backend_, run_->manifest(), checkpoint_, NoBytes).status();
  EXPECT_TRUE(absl::IsDataLoss(loaded)) << loaded;
  EXPECT_NE(loaded.message().find("root of parameters"), absl::string_view::npos) << loaded;
  const std::string out = folder_ / "out";
  const absl::Status exported =
      ExportCheckpoint(*backend_, run_->manifest(), checkpoint_, "{}", 0, out, NoBytes).status();
  EXPECT_TRUE(absl::IsDataLoss(exported)) << exported;
  EXPECT_FALSE(std::filesystem::exists(out));

  WriteBytes(path, whole.substr(0, whole.size() - 1));
  EXPECT_TRUE(absl::IsDataLoss(
      CheckpointModel::Load(*backend_, run_->manifest(), checkpoint_, NoBytes).status()));
  // Well-formed, and of the same size, with the moments in place of the parameters.
  if (GetParam() == audit::ParameterStorage::kF32) {
    WriteBytes(path, ReadBytes(checkpoint_ + "/first_moment.safetensors"));
    EXPECT_TRUE(absl::IsDataLoss(
        CheckpointModel::Load(*backend_, run_->manifest(), checkpoint_, NoBytes).status()));
  }
  WriteBytes(path, whole);
  audit::RunManifest other = run_->manifest();
  other.seed += 1;
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CheckpointModel::Load(*backend_, other, checkpoint_, NoBytes).status()));
}

TEST_P(CheckpointModelTest, ExportedHeaderCoversTheTensorsAsTheyLie) {
  const ParameterLayout layout(run_->manifest().model);
  SafetensorsHeader header = ExportHeader(run_->manifest().model);
  EncodeSafetensorsHeader(header);
  EXPECT_EQ(header.entries.back().end, static_cast<uint64_t>(2 * layout.elements()));
  const auto report =
      ExportCheckpoint(*backend_, run_->manifest(), checkpoint_, "{}", 7, folder_ / "out", NoBytes);
  ASSERT_TRUE(report.ok()) << report.status();
  const SafetensorsFile file = *SafetensorsFile::Open(folder_ / "out/model.safetensors");
  EXPECT_EQ(file.header().entries, header.entries);
  std::vector<char> bytes(2 * layout.elements());
  ASSERT_TRUE(file.Read(0, bytes).ok());
  size_t at = 0;
  for (const Piece& piece : layout.Pieces(/*with_statistics=*/false)) {
    for (int64_t i = 0; i < piece.count; ++i, at += 2) {
      const kernels::BFloat16 expected = run_->state().working()[piece.offset + i];
      ASSERT_EQ(static_cast<uint8_t>(bytes[at]), expected.bits & 0xFF) << "byte " << at;
      ASSERT_EQ(static_cast<uint8_t>(bytes[at + 1]), expected.bits >> 8) << "byte " << at + 1;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Storage, CheckpointModelTest,
                         ::testing::Values(audit::ParameterStorage::kBf16,
                                           audit::ParameterStorage::kF32),
                         [](const auto& info) {
                           return info.param == audit::ParameterStorage::kF32 ? "F32" : "Bf16";
                         });

}  // namespace
}  // namespace lockstep::engine
