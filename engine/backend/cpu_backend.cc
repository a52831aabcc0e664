// SPDX-License-Identifier: Apache-2.0
//
// Each operation is its kernel. Memory is mapped in large pages where the system has them.
#include "engine/backend/cpu_backend.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "audit/state_tree.h"
#include "base/bytes.h"
#include "base/merkle.h"
#include "base/status.h"
#include "kernels/isa.h"

namespace lockstep::engine {
namespace {

using kernels::Context;

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const Context& context) : context_(context) {}

  std::string name() const override {
    return absl::StrCat("cpu/", kernels::IsaName(context_.kernels.isa));
  }

  absl::StatusOr<void*> Allocate(size_t bytes) override {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot allocate ", bytes, " bytes of memory: ", std::strerror(errno)));
    }
    madvise(memory, bytes, MADV_HUGEPAGE);  // a matter of speed; refusal is fine
    return memory;
  }
  void Free(void* memory, size_t bytes) override { munmap(memory, bytes); }

  void CopyIn(void* to, const void* host, size_t bytes) override { Copy(to, host, bytes); }
  void CopyOut(void* host, const void* from, size_t bytes) override { Copy(host, from, bytes); }
  void Copy(void* to, const void* from, size_t bytes) override {
    ForPieces(bytes, [&](size_t begin, size_t size) {
      std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, size);
    });
  }
  void Zero(void* memory, size_t bytes) override {
    ForPieces(bytes, [&](size_t begin, size_t size) {
      std::memset(static_cast<char*>(memory) + begin, 0, size);
    });
  }

  void ChunkLeaves(const ChunkLeavesArgs& args, std::span<Digest> leaves) override {
    const auto* data = static_cast<const uint8_t*>(args.data);
    const int64_t chunks = audit::ChunksOf(args.elements);
    const auto bytes = [&](int64_t chunk) {
      const int64_t first = chunk * audit::kChunkElements;
      const int64_t count = std::min(audit::kChunkElements, args.elements - first);
      return ByteSpan(data + first * args.element_bytes, count * args.element_bytes);
    };
    // Pairs of neighbours, and perhaps one over.
    context_.ParallelFor((chunks + 1) / 2, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = 2 * begin; chunk < std::min(2 * end, chunks); chunk += 2) {
        const int64_t at = args.first_chunk + chunk;
        if (chunk + 1 == chunks) {
          leaves[chunk] = audit::ChunkLeafHash(args.tensor, at, bytes(chunk));
          continue;
        }
        const auto both = audit::ChunkLeafHashPair(args.tensor, at, bytes(chunk), bytes(chunk + 1));
        leaves[chunk] = both[0];
        leaves[chunk + 1] = both[1];
      }
    });
  }
  Digest RootOf(const void* data, size_t bytes) override {
    const ByteSpan span(static_cast<const uint8_t*>(data), bytes);
    return MerkleRoot(MerkleLeafHashes(span, kDigestPiece, context_.pool));
  }

  void Run(const kernels::TruncatedNormalFillF32Args& args) override { RunKernel(args); }
  void Run(const kernels::TruncatedNormalFillBf16Args& args) override { RunKernel(args); }
  void Run(const kernels::EmbeddingGatherArgs& args) override { RunKernel(args); }
  void Run(const EmbeddingGradientArgs& args) override {
    std::vector<int32_t> starts(args.vocab + 1);
    std::vector<int32_t> positions(args.tokens);
    kernels::BuildTokenIndex(args.ids, args.tokens, args.vocab, starts.data(), positions.data());
    RunKernel(kernels::EmbeddingScatterArgs{.dtable = args.dtable,
                                            .dy = args.dy,
                                            .starts = starts.data(),
                                            .positions = positions.data(),
                                            .vocab = args.vocab,
                                            .cols = args.cols});
  }
  void Run(const kernels::RmsNormForwardArgs& args) override { RunKernel(args); }
  void Run(const kernels::RmsNormBackwardArgs& args) override { RunKernel(args); }
  void Run(const kernels::RmsNormGainGradientArgs& args) override {
    kernels::RmsNormGainGradient(context_, args);
  }
  void Run(const kernels::RopeArgs& args) override { RunKernel(args); }
  void Run(const kernels::AttentionForwardArgs& args) override { RunKernel(args); }
  void Run(const kernels::AttentionBackwardArgs& args) override { RunKernel(args); }
  void Run(const kernels::SwigluForwardArgs& args) override { RunKernel(args); }
  void Run(const kernels::SwigluBackwardArgs& args) override { RunKernel(args); }
  void Run(const kernels::ResidualAddArgs& args) override { RunKernel(args); }
  void Run(const kernels::LmHeadLossArgs& args) override { kernels::LmHeadLoss(context_, args); }

  void Run(const kernels::GemmF32Args& args) override { kernels::GemmF32(context_, args); }
  void Run(const kernels::QuantizeTensorArgs& args) override {
    kernels::QuantizeTensor(context_, args);
  }
  void Run(const kernels::PrepareLinearI8Args& args) override {
    kernels::PrepareLinearI8(context_, args);
  }
  void Run(const kernels::LinearI8Args& args) override { kernels::LinearI8(context_, args); }
  void Run(const kernels::LinearI8InputGradientArgs& args) override {
    kernels::LinearI8InputGradient(context_, args);
  }
  void Run(const kernels::LinearI8WeightGradientArgs& args) override {
    kernels::LinearI8WeightGradient(context_, args);
  }

  void Run(const kernels::RowSumsArgs& args) override { RunKernel(args); }
  void Run(const kernels::AccumulateArgs& args) override { RunKernel(args); }
  void Run(const kernels::AddIntoArgs& args) override { RunKernel(args); }
  void Run(const kernels::ScaleArgs& args) override { RunKernel(args); }
  void Run(const kernels::SumOfSquaresArgs& args) override { RunKernel(args); }
  void Run(const kernels::GlobalNormArgs& args) override { RunKernel(args); }
  void Run(const kernels::AdamWArgs& args) override { RunKernel(args); }
  void Run(const kernels::ConvertBf16Args& args) override { RunKernel(args); }
  void Run(const kernels::WidenF32Args& args) override { RunKernel(args); }

 private:
  template <class Args>
  void RunKernel(const Args& args) {
    kernels::Run(context_, args);
  }

  // fn(begin, size) over pieces that are worth a thread.
  template <class Fn>
  void ForPieces(size_t bytes, const Fn& fn) {
    constexpr int64_t kPiece = int64_t{1} << 20;
    context_.ParallelFor((static_cast<int64_t>(bytes) + kPiece - 1) / kPiece, 4,
                         [&](int64_t begin, int64_t end) {
                           const size_t from = begin * kPiece;
                           fn(from, std::min<size_t>(bytes, end * kPiece) - from);
                         });
  }

  const Context& context_;
};

// One that owns what it runs on.
struct Threads {
  explicit Threads(int threads, const kernels::KernelTable& table)
      : pool(threads), context{.pool = pool, .kernels = table} {}
  ThreadPool pool;
  Context context;
};
class OwningCpuBackend : private Threads, public CpuBackend {
 public:
  OwningCpuBackend(int threads, const kernels::KernelTable& table)
      : Threads(threads, table), CpuBackend(context) {}
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> CreateCpuBackend(int threads) {
  LOCKSTEP_ASSIGN_OR_RETURN(const kernels::Isa isa, kernels::ChooseIsa());
  return std::make_unique<OwningCpuBackend>(threads, kernels::KernelsFor(isa));
}

std::unique_ptr<Backend> CpuBackendOn(const kernels::Context& context) {
  return std::make_unique<CpuBackend>(context);
}

}  // namespace lockstep::engine
