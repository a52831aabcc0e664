// SPDX-License-Identifier: Apache-2.0
//
// That the golden run arrives at its constant: on every instruction set of this machine, with
// hardware flushing on and off, any number of threads, layers recomputed or kept, arrays in memory
// or in files, saved and resumed anywhere.
//
// golden.txt has the chain after the second and every tenth step; LOCKSTEP_UPDATE_GOLDEN=1 writes
// it anew. How many steps a case takes depends on how slow its kernels are; LOCKSTEP_FULL_GOLDEN=1
// takes all 120 everywhere.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/source_dir.h"
#include "base/testing/status_matchers.h"
#include "base/thread_pool.h"
#include "engine/backend/cpu_backend.h"
#include "engine/testing/golden_run.h"
#include "gtest/gtest.h"
#include "kernels/dispatch.h"
#include "kernels/isa.h"
#include "kernels/testing/flush_mode.h"

namespace lockstep::golden {
namespace {

constexpr uint64_t kSteps = 120;
constexpr uint64_t kEvery = 10;
constexpr uint64_t kFew = 2;

// After which steps golden.txt has the chain.
bool IsMilestone(uint64_t step) { return step == kFew || step % kEvery == 0; }

std::string GoldenPath() { return lockstep::testing::SourcePath("tests/golden/golden.txt"); }

std::map<uint64_t, std::string> ReadGolden() {
  std::map<uint64_t, std::string> chains;
  std::ifstream file(GoldenPath());
  uint64_t step = 0;
  std::string chain;
  while (file >> step >> chain) chains[step] = chain;
  return chains;
}

bool Flag(const char* name) { return std::getenv(name) != nullptr; }

// Scalar kernels, and those that are mostly emulated, take a prefix.
uint64_t StepsOn(kernels::Isa isa, uint64_t usual, uint64_t slow) {
  if (Flag("LOCKSTEP_FULL_GOLDEN")) return kSteps;
  return isa == kernels::Isa::kAvx2 || isa == kernels::Isa::kAvx512 ? usual : slow;
}

void ExpectGolden(engine::Backend& backend, uint64_t steps, const GoldenChoices& choices = {}) {
  const std::map<uint64_t, std::string> chains = ReadGolden();
  GoldenRun run(backend, choices);
  for (uint64_t step = 1; step <= steps; ++step) {
    const engine::StepResult result = run.Step();
    if (!IsMilestone(step)) continue;
    const auto expected = chains.find(step);
    ASSERT_NE(expected, chains.end()) << "golden.txt has no chain after step " << step;
    ASSERT_EQ(result.chain.ToHex(), expected->second)
        << "after " << step << " steps on " << backend.name();
  }
}

class Golden : public ::testing::TestWithParam<kernels::Isa> {};

TEST_P(Golden, ArrivesAtTheConstant) {
  ThreadPool pool(2);
  const kernels::Context context = {.pool = pool, .kernels = kernels::KernelsFor(GetParam())};
  const std::unique_ptr<engine::Backend> backend = engine::CpuBackendOn(context);
  if (Flag("LOCKSTEP_UPDATE_GOLDEN")) {
    if (GetParam() != kernels::AvailableIsas().back()) return;  // written by the fastest
    GoldenRun run(*backend);
    std::ofstream file(GoldenPath());
    for (uint64_t step = 1; step <= kSteps; ++step) {
      const engine::StepResult result = run.Step();
      if (IsMilestone(step)) file << step << " " << result.chain.ToHex() << "\n";
    }
    return;
  }
  ExpectGolden(*backend,
               StepsOn(GetParam(), kSteps, GetParam() == kernels::Isa::kReference ? kFew : kEvery));
}

INSTANTIATE_TEST_SUITE_P(Isas, Golden, ::testing::ValuesIn(kernels::AvailableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

TEST(GoldenInvariance, Threads) {
  for (const int threads : {1, 3, 5}) {
    const std::unique_ptr<engine::Backend> backend = *engine::CreateCpuBackend(threads);
    ExpectGolden(*backend, StepsOn(*kernels::ChooseIsa(), 20, kFew));
  }
}

TEST(GoldenInvariance, FinestCut) {
  ThreadPool pool(3);
  const kernels::Context context = {
      .pool = pool, .kernels = kernels::KernelsFor(*kernels::ChooseIsa()), .grain_max = 1};
  const std::unique_ptr<engine::Backend> backend = engine::CpuBackendOn(context);
  ExpectGolden(*backend, StepsOn(*kernels::ChooseIsa(), kEvery, kFew));
}

TEST(GoldenInvariance, HardwareFlushing) {
  const kernels::FlushMode flushing(true);
  const std::unique_ptr<engine::Backend> backend = *engine::CreateCpuBackend(2);
  ExpectGolden(*backend, StepsOn(*kernels::ChooseIsa(), kSteps, kFew));
}

TEST(GoldenInvariance, MemoryChoices) {
  const std::unique_ptr<engine::Backend> backend = *engine::CreateCpuBackend(2);
  const uint64_t steps = StepsOn(*kernels::ChooseIsa(), 20, kFew);
  ExpectGolden(*backend, steps, {.recompute = true, .spill_folder = ""});
  ExpectGolden(*backend, steps, {.spill_folder = ::testing::TempDir()});
  ExpectGolden(*backend, std::min(steps, kEvery),
               {.recompute = true, .spill_folder = ::testing::TempDir()});
}

// At every tenth step the state goes to disk and a run that knows nothing else goes on from there.
// Each stretch is a replay from that checkpoint, too. With LOCKSTEP_FULL_GOLDEN, from each of them
// to the end.
TEST(GoldenInvariance, SaveAndResume) {
  const std::unique_ptr<engine::Backend> backend = *engine::CreateCpuBackend(2);
  const std::map<uint64_t, std::string> chains = ReadGolden();
  const std::string folder = absl::StrCat(::testing::TempDir(), "/golden_checkpoints");
  const auto path = [&](uint64_t step) { return absl::StrCat(folder, "/", step); };
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const uint64_t every = StepsOn(*kernels::ChooseIsa(), kEvery, 1);
  const uint64_t steps = StepsOn(*kernels::ChooseIsa(), kSteps, kFew);
  for (uint64_t begin = 0; begin < steps; begin += std::min(every, kEvery)) {
    GoldenRun run(*backend);
    if (begin > 0) {
      ASSERT_THAT(run.Resume(path(begin)), IsOk());
      ASSERT_EQ(run.state().step, begin);
    }
    const uint64_t saved = begin + std::min(every, kEvery);
    const uint64_t end = Flag("LOCKSTEP_FULL_GOLDEN") ? steps : saved;
    for (uint64_t step = begin + 1; step <= end; ++step) {
      const engine::StepResult result = run.Step();
      if (IsMilestone(step)) {
        ASSERT_EQ(result.chain.ToHex(), chains.at(step))
            << "after " << step << " steps, resumed before step " << begin;
      }
      if (step == saved) {
        ASSERT_THAT(run.Save(result.record, path(step)), IsOk());
      }
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::golden
