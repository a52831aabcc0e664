// SPDX-License-Identifier: Apache-2.0
//
// The doctor: what it finds on a machine that can and on one that cannot, and that its probe is
// small and its estimate of the right size.
#include "engine/run/doctor.h"

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "audit/presets.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "engine/backend/cpu_backend.h"
#include "engine/testing/golden_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::engine {
namespace {

using ::testing::HasSubstr;

std::map<std::string, Finding> ByName(const DoctorReport& report) {
  std::map<std::string, Finding> findings;
  for (const Finding& finding : report.findings) findings[finding.what] = finding;
  return findings;
}

TEST(Doctor, GoldenFitsHere) {
  const TemporaryFolder folder;
  const DoctorReport report =
      Diagnose(*audit::Preset("golden"), nullptr,
               {.threads = 1, .memory_bytes = int64_t{1} << 30, .spill_folder = folder.path()});
  EXPECT_TRUE(report.can_replay());
  auto findings = ByName(report);
  EXPECT_EQ(findings["processor"].health, Health::kGood);
  EXPECT_EQ(findings["memory"].health, Health::kGood);
  EXPECT_THAT(findings["memory"].detail, HasSubstr("nothing spilled"));
  EXPECT_EQ(findings["disk"].health, Health::kGood);
  EXPECT_EQ(findings["data"].health, Health::kNotChecked);
  EXPECT_EQ(findings["start"].health, Health::kNotChecked);
  EXPECT_EQ(findings["time"].health, Health::kGood);
  ASSERT_TRUE(report.estimate);
  EXPECT_EQ(report.windows, 16);
  EXPECT_EQ(report.estimate->micro_batches, 8);
  EXPECT_GT(report.estimate->times.model, 0);
  EXPECT_GT(report.estimate->times.reduce, 0);
  EXPECT_GT(report.estimate->times.update, 0);
  EXPECT_GT(report.estimate->times.hash, 0);
}

TEST(Doctor, TooLittleMemoryIsBadAndTheRestIsStillSaid) {
  const DoctorReport report =
      Diagnose(*audit::Preset("open-1b"), nullptr,
               {.threads = 1, .memory_bytes = int64_t{1} << 30, .spill_folder = "."});
  EXPECT_FALSE(report.can_replay());
  EXPECT_FALSE(report.plan);
  EXPECT_FALSE(report.estimate);
  auto findings = ByName(report);
  EXPECT_EQ(findings["processor"].health, Health::kGood);
  EXPECT_EQ(findings["memory"].health, Health::kBad);
  EXPECT_THAT(findings["memory"].detail, HasSubstr("found 1.00 GiB"));
  EXPECT_EQ(findings["disk"].health, Health::kNotChecked);
  EXPECT_EQ(findings["time"].health, Health::kNotChecked);
}

TEST(Doctor, ASpillFolderThatIsNotThereIsBad) {
  const DoctorReport report = Diagnose(*audit::Preset("golden"), nullptr,
                                       {.threads = 1,
                                        .memory_bytes = int64_t{1} << 30,
                                        .spill_folder = "/nonexistent/spills",
                                        .probe = false});
  EXPECT_FALSE(report.can_replay());
  EXPECT_THAT(ByName(report)["disk"].detail, HasSubstr("/nonexistent/spills"));
  EXPECT_EQ(ByName(report)["time"].health, Health::kNotChecked);
}

TEST(Doctor, ARunWithoutItsCorpusIsBad) {
  const TemporaryFolder folder;
  const auto run =
      RunFolder::Create(folder / "run", golden::GoldenRun::Manifest(),
                        {.corpus = {folder / "nowhere"}, .tokenizer = "", .parent = ""});
  ASSERT_THAT(run, IsOk());
  const DoctorReport report = Diagnose(run->manifest(), &*run,
                                       {.threads = 1,
                                        .memory_bytes = int64_t{1} << 30,
                                        .spill_folder = folder.path(),
                                        .probe = false});
  EXPECT_FALSE(report.can_replay());
  auto findings = ByName(report);
  EXPECT_EQ(findings["data"].health, Health::kBad);
  EXPECT_THAT(findings["data"].detail, HasSubstr(folder / "nowhere"));
  EXPECT_EQ(findings["start"].health, Health::kGood);
  EXPECT_THAT(findings["start"].detail, HasSubstr("initial state; the run has no records yet"));
}

TEST(Doctor, ADamagedCheckpointIsBad) {
  const TemporaryFolder folder;
  const auto run =
      RunFolder::Create(folder / "run", golden::GoldenRun::Manifest(),
                        {.corpus = {folder / "nowhere"}, .tokenizer = "", .parent = ""});
  ASSERT_THAT(run, IsOk());
  WriteBytes(run->CheckpointPath(0) + "/checkpoint.json", "{}");
  const DoctorReport report = Diagnose(run->manifest(), &*run,
                                       {.threads = 1,
                                        .memory_bytes = int64_t{1} << 30,
                                        .spill_folder = folder.path(),
                                        .probe = false});
  EXPECT_EQ(ByName(report)["start"].health, Health::kBad);
  EXPECT_THAT(ByName(report)["start"].detail, HasSubstr("checkpoint.json"));
}

// Whatever the run: the largest preset takes 20 GB and more.
TEST(StepProbe, TakesLittleMemory) {
  for (const std::string& name : audit::PresetNames()) {
    const audit::RunManifest run = *audit::Preset(name);
    const audit::RunManifest probe = ProbeManifest(run, ProbeVocab(run));
    EXPECT_LT(PlanMemory(probe, {}).memory(), 2'000'000'000) << name;
    EXPECT_EQ(probe.model.width, run.model.width);
    EXPECT_EQ(probe.model.ffn_width, run.model.ffn_width);
    EXPECT_EQ(probe.precision, run.precision);
  }
}

// Twice the windows are about twice the model's time, and no more of anything else but hashing.
TEST(StepProbe, GrowsWithTheStep) {
  const std::unique_ptr<Backend> backend = *CreateCpuBackend(1);
  const audit::RunManifest run = *audit::Preset("golden");
  const auto one = EstimateStep(*backend, run, 16, {}, "");
  const auto eight = EstimateStep(*backend, run, 128, {}, "");
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(eight, IsOk());
  EXPECT_GT(eight->times.model, 2 * one->times.model);
  EXPECT_GT(eight->times.hash, one->times.hash);
  EXPECT_EQ(eight->micro_batches, 8 * one->micro_batches);
}

// With spills, recomputed layers and f32 parameters the probe goes the same ways.
TEST(StepProbe, FollowsTheMemoryChoices) {
  const TemporaryFolder folder;
  const std::unique_ptr<Backend> backend = *CreateCpuBackend(2);
  audit::RunManifest run = *audit::Preset("golden");
  run.parameter_storage = audit::ParameterStorage::kF32;
  const MemoryChoices all = {.recompute = true, .spill_partials = true, .spill_state = true};
  EXPECT_THAT(EstimateStep(*backend, run, 16, all, folder.path()), IsOk());
  EXPECT_THAT(ReadAll(folder.path()), ::testing::IsEmpty());
  EXPECT_THAT(EstimateStep(*backend, run, 16, all, folder / "none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("probe")));
}

}  // namespace
}  // namespace lockstep::engine
