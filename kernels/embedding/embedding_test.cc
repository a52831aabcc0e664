// SPDX-License-Identifier: Apache-2.0
//
// Conformance, index and gradients of the embedding.
#include "kernels/embedding/embedding.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/gradients.h"

namespace lockstep::kernels {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kCols[] = {1, 7, 16, 33, 64, 130};

struct Index {
  std::vector<int32_t> starts;
  std::vector<int32_t> positions;
  Index(const int32_t* ids, int64_t tokens, int64_t vocab)
      : starts(static_cast<size_t>(vocab + 1)), positions(static_cast<size_t>(tokens)) {
    BuildTokenIndex(ids, tokens, vocab, starts.data(), positions.data());
  }
};

KERNEL_CASES(EmbeddingGather, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t cols : kCols) {
      for (bool f32 : {false, true}) {
        Case& c = cases.New("12 x " + std::to_string(cols), kind);
        ConstElements table;
        if (f32) {
          table = c.Input<float>(9 * cols);
        } else {
          table = c.Input<BFloat16>(9 * cols);
        }
        c.Runs(EmbeddingGatherArgs{.out = c.Output<BFloat16>(12 * cols),
                                   .table = table,
                                   .ids = c.Indices(12, 9),
                                   .tokens = 12,
                                   .cols = cols});
      }
    }
  }
}

KERNEL_CASES(EmbeddingScatter, cases) {
  for (InputKind kind : kAllInputKinds) {
    for (int64_t cols : kCols) {
      constexpr int64_t kTokens = 40;
      constexpr int64_t kVocab = 11;
      Case& c = cases.New("40 x " + std::to_string(cols), kind);
      const Index index(c.Indices(kTokens, kVocab - 1), kTokens, kVocab);  // the last id: unused
      c.Runs(EmbeddingScatterArgs{.dtable = c.Output<float>(kVocab * cols),
                                  .dy = c.Input<BFloat16>(kTokens * cols),
                                  .starts = c.Values(index.starts),
                                  .positions = c.Values(index.positions),
                                  .vocab = kVocab,
                                  .cols = cols});
    }
  }
}

TEST(Embedding, IndexIsAscendingWithinEachId) {
  const int32_t ids[] = {2, 0, 2, 4, 0, 2};
  const Index index(ids, 6, 5);
  EXPECT_THAT(index.starts, ElementsAre(0, 2, 2, 5, 5, 6));
  EXPECT_THAT(index.positions, ElementsAre(1, 4, 0, 2, 5, 3));
  const Index none(ids, 0, 2);
  EXPECT_THAT(none.starts, ElementsAre(0, 0, 0));
}

TEST(Embedding, ScatterIsTheTransposeOfGather) {
  // <dy, gather(E)> is linear in E, so its gradient is the scatter of dy: compared in float64 with
  // differences of that form.
  constexpr int64_t kVocab = 5;
  constexpr int64_t kCols = 6;
  const std::vector<int32_t> ids = {3, 1, 3, 0, 3, 1, 0, 3};
  const int64_t tokens = static_cast<int64_t>(ids.size());
  const auto dy = NormalInput<BFloat16>(tokens * kCols, 1);
  std::vector<float> dtable(kVocab * kCols);
  const Index index(ids.data(), tokens, kVocab);
  ThreadPool pool(1);
  kernels::Run(Context{pool, KernelsFor(Isa::kReference)},
               EmbeddingScatterArgs{dtable.data(), dy.data(), index.starts.data(),
                                    index.positions.data(), kVocab, kCols});
  const std::vector<double> dy64 = ToDoubles(dy);
  const std::vector<double> differences = FiniteDifferences(
      [&](const std::vector<double>& table) {
        double loss = 0.0;
        for (int64_t t = 0; t < tokens; ++t) {
          for (int64_t c = 0; c < kCols; ++c) {
            loss += dy64[t * kCols + c] * table[ids[t] * kCols + c];
          }
        }
        return loss;
      },
      std::vector<double>(kVocab * kCols, 1.0));
  EXPECT_LT(LargestError(ToDoubles(dtable), differences), 1e-8);
}

}  // namespace
}  // namespace lockstep::kernels
