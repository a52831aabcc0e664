// SPDX-License-Identifier: Apache-2.0
//
// The reduction against Algorithm 1 written out element by element, in memory and in files.
#include "engine/reduce/gradient_reducer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/cpu_backend.h"
#include "gtest/gtest.h"
#include "kernels/numeric.h"
#include "kernels/random/random.h"

namespace lockstep::engine {
namespace {

audit::ModelConfig Model() {
  return {.layers = 1,
          .width = 32,
          .query_heads = 2,
          .kv_heads = 1,
          .head_dim = 16,
          .ffn_width = 32,
          .vocab = 70,
          .seq_len = 8,
          .window = 4,
          .full_every = 0,
          .rope_theta = 1e4,
          .norm_eps = 1e-6,
          .init_std = 0.02};
}

float ValueOf(int64_t rank, int64_t i) {
  return static_cast<float>(kernels::RandomUniform64(3, 50 + rank, i) - 0.5);
}

// The paper's loop for one element, with the fold of Algorithm 2 by recursion.
float Fold(const std::vector<float>& parts, size_t first, size_t count) {
  if (count == 1) return parts[first];
  size_t left = 1;
  while (left * 2 < count) left *= 2;
  if (left * 2 == count) {
    return kernels::Canon(Fold(parts, first, left) + Fold(parts, first + left, left));
  }
  // Blocks from the largest: the last is added last.
  size_t last = 1;
  while ((count & last) == 0) last *= 2;
  return kernels::Canon(Fold(parts, first, count - last) + Fold(parts, first + count - last, last));
}
float Expected(const audit::Topology& topology, int64_t i) {
  std::vector<float> replicas;
  for (int64_t replica = 0; replica < topology.replicas; ++replica) {
    float sum = ValueOf(replica * topology.shards, i);
    for (int64_t shard = 1; shard < topology.shards; ++shard) {
      sum = kernels::Canon(sum + ValueOf(replica * topology.shards + shard, i));
    }
    replicas.push_back(kernels::Canon(sum * (1.0f / static_cast<float>(topology.shards))));
  }
  const float sum = Fold(replicas, 0, replicas.size());
  return kernels::Canon(sum * (1.0f / static_cast<float>(topology.replicas)));
}

TEST(GradientReducer, IsAlgorithm1) {
  const std::unique_ptr<Backend> backend = *CreateCpuBackend(2);
  const ParameterLayout layout(Model());
  const std::vector<Piece> pieces = layout.Pieces(/*with_statistics=*/true);
  for (const auto& [replicas, shards] : {std::pair{1, 1}, {1, 3}, {2, 2}, {3, 1}, {5, 2}, {7, 1}}) {
    const audit::Topology topology = {.replicas = replicas, .shards = shards, .micro_batch = 1};
    for (const std::string& folder : {std::string(), ::testing::TempDir()}) {
      GradientReducer reducer(*backend, layout, topology, folder);
      // Twice, and once abandoned in between: arrays are used again.
      for (int round = 0; round < 3; ++round) {
        reducer.Restart();
        const int64_t ranks = round == 1 ? topology.ranks() - 1 : topology.ranks();
        for (int64_t rank = 0; rank < ranks; ++rank) {
          float* const gradient = *reducer.BeginRank();
          for (const Piece& piece : pieces) {
            for (int64_t i = 0; i < piece.count; ++i) {
              gradient[piece.offset + i] = ValueOf(rank, piece.offset + i);
            }
          }
          ASSERT_TRUE(reducer.EndRank().ok());
        }
        if (round == 1) continue;
        FlatArray* const result = *reducer.Finish();
        for (const Piece& piece : pieces) {
          const float* const data = *result->Load(piece);
          for (int64_t i = 0; i < piece.count; ++i) {
            ASSERT_EQ(kernels::Bits(data[i]), kernels::Bits(Expected(topology, piece.offset + i)))
                << replicas << "x" << shards << " element " << piece.offset + i;
          }
        }
      }
    }
  }
}

TEST(GradientReducer, PartialsAreBounded) {
  EXPECT_EQ(GradientReducer::PartialsMax({.replicas = 1, .shards = 1, .micro_batch = 1}), 0);
  EXPECT_EQ(GradientReducer::PartialsMax({.replicas = 1, .shards = 4, .micro_batch = 1}), 1);
  // The paper, appendix A: at most 4 where the flat way needs 8.
  EXPECT_EQ(GradientReducer::PartialsMax({.replicas = 8, .shards = 1, .micro_batch = 1}), 4);
}

}  // namespace
}  // namespace lockstep::engine
