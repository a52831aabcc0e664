// SPDX-License-Identifier: Apache-2.0
//
// The model against an independent one in binary64: loss and every gradient, in bf16 and in int8;
// and that recomputing the layers changes no bit.
#include "engine/model/model.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/cpu_backend.h"
#include "engine/model/testing/reference_model.h"
#include "gtest/gtest.h"
#include "kernels/random/random.h"

namespace lockstep::engine {
namespace {

audit::RunManifest SmallRun(audit::Precision precision) {
  audit::RunManifest run;
  run.model = {.layers = 3,
               .width = 32,
               .query_heads = 4,
               .kv_heads = 2,
               .head_dim = 16,
               .ffn_width = 48,
               .vocab = 96,
               .seq_len = 24,
               .window = 6,
               .full_every = 2,
               .rope_theta = 5e5,
               .norm_eps = 1e-5,
               .init_std = 0.2};
  run.precision = precision;
  run.recipe.z_loss = 1e-2;
  run.topology = {.replicas = 1, .shards = 1, .micro_batch = 2};
  return run;
}

class ModelTest : public ::testing::Test {
 protected:
  void Create(const audit::RunManifest& run, bool recompute) {
    model_.reset();
    memory_ = Buffer();
    backend_ = *CreateCpuBackend(2);
    model_ = *Model::Create(*backend_, run, {.windows = 2, .recompute = recompute});
    const ParameterLayout& layout = model_->layout();
    memory_ = *Buffer::Create(*backend_, layout.flat_elements() * sizeof(BFloat16));
    for (const Piece& piece : layout.Pieces(false)) {
      InitializePiece(*backend_, layout, static_cast<float>(run.model.init_std), 7, piece,
                      memory_.as<BFloat16>() + piece.offset);
    }
    // Gains other than 1, so that their gradients have something to get wrong.
    for (int64_t t = 0; t < layout.tensors(); ++t) {
      if (!layout.is_norm(t)) continue;
      for (int64_t i = 0; i < layout.elements(t); ++i) {
        kernels::Store(memory_.as<BFloat16>() + layout.offset(t) + i,
                       static_cast<float>(0.5 + kernels::RandomUniform64(7, 1000 + t, i)));
      }
    }
    inputs_.clear();
    targets_.clear();
    for (int64_t i = 0; i < 2 * run.model.seq_len; ++i) {
      inputs_.push_back(static_cast<int32_t>(kernels::RandomBelow(7, 1, i, run.model.vocab)));
      targets_.push_back(static_cast<int32_t>(kernels::RandomBelow(7, 2, i, run.model.vocab)));
    }
  }

  ParametersView parameters() const { return {memory_.as<BFloat16>(), &model_->layout()}; }

  std::vector<float> Gradient(MicroBatchDigests* digests = nullptr) {
    std::vector<float> flat(model_->layout().flat_elements());
    model_->Prepare(parameters());
    model_->ForwardBackward(parameters(), inputs_, targets_, {.flat = flat.data()}, digests);
    return flat;
  }

  testing::ReferenceResult Reference(const audit::RunManifest& run) {
    std::map<std::string, std::vector<double>> values;
    const ParameterLayout& layout = model_->layout();
    for (int64_t t = 0; t < layout.tensors(); ++t) {
      for (int64_t i = 0; i < layout.elements(t); ++i) {
        values[layout.table().tensors()[t].name].push_back(
            kernels::ToFloat(memory_.as<BFloat16>()[layout.offset(t) + i]));
      }
    }
    return testing::ReferenceModel(run.model, run.recipe.z_loss).Run(values, inputs_, targets_);
  }

  // |a - b| / |b| over a tensor, the Euclidean norms.
  void ExpectClose(const audit::RunManifest& run, double loss_bound, double gradient_bound) {
    const std::vector<float> flat = Gradient();
    const testing::ReferenceResult reference = Reference(run);
    const ParameterLayout& layout = model_->layout();
    EXPECT_NEAR(flat[layout.statistics_offset()], reference.loss, loss_bound);
    EXPECT_NEAR(flat[layout.statistics_offset() + 1], reference.z_loss,
                loss_bound * 2 * std::sqrt(reference.z_loss));
    for (int64_t t = 0; t < layout.tensors(); ++t) {
      const std::string& name = layout.table().tensors()[t].name;
      const std::vector<double>& expected = reference.gradients.at(name);
      double difference = 0;
      double size = 0;
      for (int64_t i = 0; i < layout.elements(t); ++i) {
        const double d = flat[layout.offset(t) + i] - expected[i];
        difference += d * d;
        size += expected[i] * expected[i];
      }
      ASSERT_GT(size, 0) << name;
      EXPECT_LT(std::sqrt(difference / size), gradient_bound) << name;
    }
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  Buffer memory_;
  std::vector<int32_t> inputs_;
  std::vector<int32_t> targets_;
};

TEST_F(ModelTest, AgreesWithBinary64InBf16) {
  const audit::RunManifest run = SmallRun(audit::Precision::kBf16);
  Create(run, false);
  ExpectClose(run, 0.01, 0.02);
}

TEST_F(ModelTest, AgreesWithBinary64InInt8) {
  const audit::RunManifest run = SmallRun(audit::Precision::kInt8);
  Create(run, false);
  ExpectClose(run, 0.1, 0.3);
}

TEST_F(ModelTest, RecomputingChangesNoBit) {
  for (const auto precision : {audit::Precision::kBf16, audit::Precision::kInt8}) {
    const audit::RunManifest run = SmallRun(precision);
    Create(run, false);
    MicroBatchDigests kept_digests;
    const std::vector<float> kept = Gradient(&kept_digests);
    Create(run, true);
    MicroBatchDigests again_digests;
    const std::vector<float> again = Gradient(&again_digests);
    for (size_t i = 0; i < kept.size(); ++i) {
      ASSERT_EQ(kernels::Bits(kept[i]), kernels::Bits(again[i])) << "element " << i;
    }
    EXPECT_EQ(kept_digests.residual, again_digests.residual);
    EXPECT_EQ(kept_digests.dresidual, again_digests.dresidual);
    EXPECT_EQ(kept_digests.losses, again_digests.losses);
  }
}

TEST_F(ModelTest, LossesAreThoseOfTheTrainingPass) {
  const audit::RunManifest run = SmallRun(audit::Precision::kInt8);
  Create(run, false);
  const std::vector<float> flat = Gradient();
  std::vector<float> losses(inputs_.size());
  model_->Losses(parameters(), inputs_, targets_, losses);
  double sum = 0;
  for (const float loss : losses) sum += loss;
  EXPECT_NEAR(sum / static_cast<double>(losses.size()), flat[model_->layout().statistics_offset()],
              1e-5);
}

// first, not first and the scale: sums of micro-batches are what they are written to be.
TEST_F(ModelTest, MicroBatchesAddUp) {
  const audit::RunManifest run = SmallRun(audit::Precision::kInt8);
  Create(run, false);
  const std::vector<float> once = Gradient();
  const ParameterLayout& layout = model_->layout();
  std::vector<float> sum(layout.flat_elements());
  std::vector<float> scratch(layout.elements_max());
  for (const bool first : {true, false}) {
    model_->ForwardBackward(
        parameters(), inputs_, targets_,
        {.flat = sum.data(), .scratch = scratch.data(), .first = first, .scale = 1.0f / 3},
        nullptr);
  }
  for (const Piece& piece : layout.Pieces(true)) {
    for (int64_t i = piece.offset; i < piece.offset + piece.count; ++i) {
      const float half = kernels::Canon(kernels::Fma(once[i], 1.0f / 3, 0.0f));
      const float expected = kernels::Canon(kernels::Fma(once[i], 1.0f / 3, half));
      ASSERT_EQ(kernels::Bits(sum[i]), kernels::Bits(expected)) << "element " << i;
    }
  }
}

}  // namespace
}  // namespace lockstep::engine
