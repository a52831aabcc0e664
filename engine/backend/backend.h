// SPDX-License-Identifier: Apache-2.0
//
// The machine that a model runs on: memory, copies, and the operations of the numerics contract.
// Model code names operations and never a machine, so another backend slots in without touching it.
// Every backend returns the same bits (kernels/README.md); which one runs is nowhere recorded but
// in receipts.
//
// An operation is called by the arguments of its kernel, whose header is its contract; pointers in
// them are to the backend's memory. Operations run in the order of the calls; CopyOut and the
// hashes wait for what they read. Not for several threads at once.
#ifndef LOCKSTEP_ENGINE_BACKEND_BACKEND_H_
#define LOCKSTEP_ENGINE_BACKEND_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/sha256.h"
#include "kernels/adamw/adamw.h"
#include "kernels/attention/attention.h"
#include "kernels/cross_entropy/lm_head.h"
#include "kernels/embedding/embedding.h"
#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/gradient/gradient.h"
#include "kernels/linear_i8/linear_i8.h"
#include "kernels/quantize/quantize.h"
#include "kernels/random/fill.h"
#include "kernels/reduce/reduce.h"
#include "kernels/residual_add/residual_add.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/swiglu/swiglu.h"

namespace lockstep::engine {

using kernels::BFloat16;

// The gradient of the embedding table from that of its output: EmbeddingScatter over the index that
// BuildTokenIndex makes of the ids.
struct EmbeddingGradientArgs {
  float* dtable;       // [vocab, cols]
  const BFloat16* dy;  // [tokens, cols]
  const int32_t* ids;  // [tokens]
  int64_t tokens;
  int64_t vocab;
  int64_t cols;
};

// The leaves of some chunks of a tensor in a state tree (audit/state_tree.h).
struct ChunkLeavesArgs {
  const void* data;  // [elements]
  int64_t elements;
  int64_t element_bytes;  // 2 or 4
  int64_t tensor;         // its id
  int64_t first_chunk;    // of the tensor, where data begins
};

class Backend {
 public:
  virtual ~Backend() = default;

  // "cpu/avx512".
  virtual std::string name() const = 0;

  // Memory: zeros at first, 64-byte aligned. ResourceExhausted says how much was asked for.
  virtual absl::StatusOr<void*> Allocate(size_t bytes) = 0;
  virtual void Free(void* memory, size_t bytes) = 0;
  virtual void CopyIn(void* to, const void* host, size_t bytes) = 0;
  virtual void CopyOut(void* host, const void* from, size_t bytes) = 0;
  virtual void Copy(void* to, const void* from, size_t bytes) = 0;
  virtual void Zero(void* memory, size_t bytes) = 0;

  // Hashes, where the data is. leaves: one for each chunk.
  virtual void ChunkLeaves(const ChunkLeavesArgs& args, std::span<Digest> leaves) = 0;
  // The Merkle root over pieces of kDigestPiece bytes (base/merkle.h).
  static constexpr size_t kDigestPiece = 65536;
  virtual Digest RootOf(const void* data, size_t bytes) = 0;

  virtual void Run(const kernels::TruncatedNormalFillF32Args& args) = 0;
  virtual void Run(const kernels::TruncatedNormalFillBf16Args& args) = 0;

  virtual void Run(const kernels::EmbeddingGatherArgs& args) = 0;
  virtual void Run(const EmbeddingGradientArgs& args) = 0;
  virtual void Run(const kernels::RmsNormForwardArgs& args) = 0;
  virtual void Run(const kernels::RmsNormBackwardArgs& args) = 0;
  virtual void Run(const kernels::RmsNormGainGradientArgs& args) = 0;
  virtual void Run(const kernels::RopeArgs& args) = 0;
  virtual void Run(const kernels::AttentionForwardArgs& args) = 0;
  virtual void Run(const kernels::AttentionBackwardArgs& args) = 0;
  virtual void Run(const kernels::SwigluForwardArgs& args) = 0;
  virtual void Run(const kernels::SwigluBackwardArgs& args) = 0;
  virtual void Run(const kernels::ResidualAddArgs& args) = 0;
  virtual void Run(const kernels::LmHeadLossArgs& args) = 0;

  virtual void Run(const kernels::GemmF32Args& args) = 0;
  virtual void Run(const kernels::QuantizeTensorArgs& args) = 0;
  virtual void Run(const kernels::PrepareLinearI8Args& args) = 0;
  virtual void Run(const kernels::LinearI8Args& args) = 0;
  virtual void Run(const kernels::LinearI8InputGradientArgs& args) = 0;
  virtual void Run(const kernels::LinearI8WeightGradientArgs& args) = 0;

  virtual void Run(const kernels::RowSumsArgs& args) = 0;
  virtual void Run(const kernels::AccumulateArgs& args) = 0;
  virtual void Run(const kernels::AddIntoArgs& args) = 0;
  virtual void Run(const kernels::ScaleArgs& args) = 0;
  virtual void Run(const kernels::SumOfSquaresArgs& args) = 0;
  virtual void Run(const kernels::GlobalNormArgs& args) = 0;
  virtual void Run(const kernels::AdamWArgs& args) = 0;
  virtual void Run(const kernels::ConvertBf16Args& args) = 0;
  virtual void Run(const kernels::WidenF32Args& args) = 0;
};

// Memory of a backend, which must outlive it. Move-only.
class Buffer {
 public:
  Buffer() = default;
  static absl::StatusOr<Buffer> Create(Backend& backend, size_t bytes);
  ~Buffer() { Release(); }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Release();
    backend_ = std::exchange(other.backend_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void Release() {
    if (data_ != nullptr) backend_->Free(data_, bytes_);
    data_ = nullptr;
  }

  Backend* backend_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Cuts one piece of memory into arrays, 64-byte aligned. On no memory it only measures, so that a
// plan of memory and its use are the same code.
class Carver {
 public:
  explicit Carver(void* memory = nullptr) : memory_(static_cast<char*>(memory)) {}

  template <class T>
  T* Take(int64_t count) {
    T* at = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    bytes_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  char* memory_;
  size_t bytes_ = 0;
};

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_BACKEND_BACKEND_H_
