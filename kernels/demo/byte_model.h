// SPDX-License-Identifier: Apache-2.0
//
// A language model of bytes small enough to read at a glance, trained by the kernels alone:
// embedding, norm, attention over the embeddings themselves, norm, head. It shows what the contract
// is for: the same text gives the same losses and the same parameters on every machine. Not the
// engine, and no way to build one.
#ifndef LOCKSTEP_KERNELS_DEMO_BYTE_MODEL_H_
#define LOCKSTEP_KERNELS_DEMO_BYTE_MODEL_H_

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/sha256.h"
#include "kernels/context.h"
#include "kernels/numeric.h"

namespace lockstep::kernels {

class ByteModel {
 public:
  static constexpr int64_t kVocab = 256;
  static constexpr int64_t kWidth = 64;     // one attention head
  static constexpr int64_t kSequence = 64;  // bytes a sequence is long
  static constexpr int64_t kBatch = 16;     // sequences a step takes
  static constexpr int64_t kTokens = kBatch * kSequence;

  // Parameters from the counter stream of `seed`.
  ByteModel(const Context& context, uint64_t seed);

  // One step of AdamW on windows of `text` (more than kSequence bytes) drawn by step number;
  // returns the mean loss in nats.
  float Step(ByteSpan text);

  // SHA-256 of parameters and both moments.
  Digest StateDigest() const;

 private:
  // Views into one buffer: embedding, head [kVocab, kWidth]; the two norms' gains [kWidth].
  static constexpr int64_t kTable = kVocab * kWidth;
  static constexpr int64_t kCount = 2 * kTable + 2 * kWidth;

  void ReadWindows(ByteSpan text);
  void Forward();
  void Backward();
  void Update();

  const Context& context_;
  uint64_t seed_;
  int64_t step_ = 0;
  std::vector<float> parameters_;  // [kCount]
  std::vector<float> gradient_;    // [kCount]
  std::vector<float> m_;           // [kCount]
  std::vector<float> v_;           // [kCount]
  std::vector<float> rope_cos_;    // [kSequence, kWidth / 2]
  std::vector<float> rope_sin_;
  std::vector<int32_t> ids_;      // [kTokens]
  std::vector<int32_t> targets_;  // [kTokens]
  std::vector<float> loss_;       // [kTokens]
  std::vector<float> z_;          // [kTokens]
  std::vector<float> rstd1_;      // [kTokens]
  std::vector<float> rstd2_;      // [kTokens]
  std::vector<float> lse_;        // [kBatch, 1, kSequence]
  // Activations and their gradients, [kTokens, kWidth] each.
  std::vector<BFloat16> x0_, h1_, rotated_, attended_, x1_, h2_;
  std::vector<BFloat16> dh2_, dx1_, dq_, dk_, dv_, dx0_;
};

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_DEMO_BYTE_MODEL_H_
