// SPDX-License-Identifier: Apache-2.0
//
// The f32 matrix product against OpenBLAS and oneDNN, all packing timed, operands plain by rows.
#include <chrono>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/harness.h"
#include "bench/shapes.h"
#include "kernels/gemm_f32/gemm_f32.h"

#ifdef LOCKSTEP_HAS_OPENBLAS
#include <cblas.h>
#endif
#ifdef LOCKSTEP_HAS_ONEDNN
#include "dnnl.hpp"
extern "C" void omp_set_num_threads(int threads);  // of the OpenMP library that oneDNN uses
#endif

namespace lockstep::kernels {
namespace {

using bench::GemmShape;

struct Matrices {
  explicit Matrices(const GemmShape& s) : shape(s), a(s.m * s.k), b(s.k * s.n), c(s.m * s.n) {
    for (size_t i = 0; i < a.size(); ++i) a[i] = 0.01f * static_cast<float>(i % 201) - 1.0f;
    for (size_t i = 0; i < b.size(); ++i) b[i] = 0.01f * static_cast<float>(i % 199) - 1.0f;
  }
  GemmShape shape;
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> c;
};

struct Peer {
  std::string name;
  std::function<void()> call;
};

#ifdef LOCKSTEP_HAS_OPENBLAS
Peer OpenBlas(Matrices& x, int threads) {
  return {"OpenBLAS", [&x, threads] {
            openblas_set_num_threads(threads);
            const GemmShape& s = x.shape;
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(s.m),
                        static_cast<int>(s.n), static_cast<int>(s.k), 1.0f, x.a.data(),
                        static_cast<int>(s.k), x.b.data(), static_cast<int>(s.n), 0.0f, x.c.data(),
                        static_cast<int>(s.n));
          }};
}
#endif

#ifdef LOCKSTEP_HAS_ONEDNN
Peer OneDnnSgemm(Matrices& x, int threads) {
  return {"oneDNN sgemm", [&x, threads] {
            omp_set_num_threads(threads);
            const GemmShape& s = x.shape;
            dnnl::sgemm('N', 'N', s.m, s.n, s.k, 1.0f, x.a.data(), s.k, x.b.data(), s.n, 0.0f,
                        x.c.data(), s.n);
          }};
}

Peer OneDnnMatmul(Matrices& x, int threads) {
  const GemmShape& s = x.shape;
  omp_set_num_threads(threads);  // the primitive is made for this many
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto plain = [](int64_t rows, int64_t columns) {
    return dnnl::memory::desc({rows, columns}, dnnl::memory::data_type::f32,
                              dnnl::memory::format_tag::ab);
  };
  const dnnl::matmul::desc operation(plain(s.m, s.k), plain(s.k, s.n), plain(s.m, s.n));
  const dnnl::matmul::primitive_desc description(operation, engine);
  const dnnl::matmul matmul(description);
  const std::unordered_map<int, dnnl::memory> memory = {
      {DNNL_ARG_SRC, dnnl::memory(plain(s.m, s.k), engine, x.a.data())},
      {DNNL_ARG_WEIGHTS, dnnl::memory(plain(s.k, s.n), engine, x.b.data())},
      {DNNL_ARG_DST, dnnl::memory(plain(s.m, s.n), engine, x.c.data())}};
  dnnl::stream stream(engine);
  return {"oneDNN matmul", [matmul, memory, stream, threads]() mutable {
            omp_set_num_threads(threads);
            matmul.execute(stream, memory);
            stream.wait();
          }};
}

// The faster of the two ways in which oneDNN multiplies plain f32 matrices here.
Peer OneDnn(Matrices& x, int threads) {
  Peer peers[] = {OneDnnMatmul(x, threads), OneDnnSgemm(x, threads)};
  std::chrono::duration<double> best[2];
  for (int i : {0, 1}) {
    peers[i].call();
    for (int round = 0; round < 3; ++round) {
      const auto start = std::chrono::steady_clock::now();
      peers[i].call();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (round == 0 || took < best[i]) best[i] = took;
    }
  }
  return peers[best[1] < best[0] ? 1 : 0];
}
#endif

std::vector<Peer> Peers([[maybe_unused]] Matrices& x, [[maybe_unused]] int threads) {
  std::vector<Peer> peers;
#ifdef LOCKSTEP_HAS_OPENBLAS
  peers.push_back(OpenBlas(x, threads));
#endif
#ifdef LOCKSTEP_HAS_ONEDNN
  peers.push_back(OneDnn(x, threads));
#endif
  if (peers.empty()) peers.push_back({});
  return peers;
}

std::string Name(const std::string& what, Isa isa, int threads) {
  return what + " " + std::string(IsaName(isa)) + " " + std::to_string(threads) + "T";
}

LOCKSTEP_BENCH(gemm_f32, "f32 matrix product, plain operands, against OpenBLAS and oneDNN", b) {
  for (const GemmShape& shape : bench::kGemmShapes) {
    Matrices x(shape);
    const GemmF32Args args = {.c = Out(x.c.data(), shape.n),
                              .a = Plain(x.a.data(), shape.k),
                              .b = Plain(x.b.data(), shape.n),
                              .m = shape.m,
                              .n = shape.n,
                              .k = shape.k};
    for (int threads : {1, 2}) {
      for (const Peer& peer : Peers(x, threads)) {
        for (Isa isa : bench::Bench::Isas()) {
          const Context context = b.ContextOf(isa, threads);
          b.Compare({.name = Name(shape.name(), isa, threads),
                     .unit = "GFLOP/s",
                     .work = shape.operations(),
                     .ours = [&] { GemmF32(context, args); },
                     .peer = peer.name,
                     .peer_call = peer.call,
                     .peer_has_threads = true});
        }
      }
    }
  }
}

// What a training step multiplies: the output layer of `small` over 2048 tokens, forward and both
// gradients, and one token's logits; against the plain product of the same shape in binary32.
LOCKSTEP_BENCH(gemm_f32_layer, "matrix products of an output layer in bf16, against plain f32", b) {
  constexpr int64_t kTokens = 2048;
  constexpr int64_t kInputs = 512;
  constexpr int64_t kVocabulary = 16384;
  const std::vector<BFloat16> x(kTokens * kInputs, BFloat16{0x3f80});
  const std::vector<BFloat16> w(kVocabulary * kInputs, BFloat16{0x3f80});
  const std::vector<float> fx(kTokens * kInputs, 1.0f);
  const std::vector<float> fw(kVocabulary * kInputs, 1.0f);
  std::vector<float> logits(kTokens * kVocabulary, 0.01f);
  std::vector<float> other(kTokens * kVocabulary);
  std::vector<BFloat16> dx(kTokens * kInputs);
  std::vector<float> dw(kVocabulary * kInputs);
  const auto compare = [&](const std::string& what, const GemmF32Args& layer,
                           const GemmF32Args& plain) {
    for (Isa isa : bench::Bench::Isas()) {
      for (int threads : {1, 2}) {
        const Context context = b.ContextOf(isa, threads);
        b.Compare({.name = Name(what, isa, threads),
                   .unit = "GFLOP/s",
                   .work = 2.0 * layer.m * layer.n * layer.k,
                   .ours = [&] { GemmF32(context, layer); },
                   .peer = "plain f32",
                   .peer_call = [&] { GemmF32(context, plain); }});
      }
    }
  };
  const auto product = [](GemmOut c, GemmIn a, GemmIn b, int64_t m, int64_t n, int64_t k,
                          bool accumulate) {
    return GemmF32Args{.c = c, .a = a, .b = b, .m = m, .n = n, .k = k, .accumulate = accumulate};
  };
  for (int64_t tokens : {kTokens, int64_t{1}}) {
    compare("logits of " + std::to_string(tokens),
            product(Out(logits.data(), kVocabulary), Plain(x.data(), kInputs),
                    Transposed(w.data(), kInputs), tokens, kVocabulary, kInputs, false),
            product(Out(other.data(), kVocabulary), Plain(fx.data(), kInputs),
                    Plain(fw.data(), kVocabulary), tokens, kVocabulary, kInputs, false));
  }
  compare("input gradient",
          product(Out(dx.data(), kInputs), Plain(logits.data(), kVocabulary),
                  Plain(w.data(), kInputs), kTokens, kInputs, kVocabulary, false),
          product(Out(other.data(), kInputs), Plain(logits.data(), kVocabulary),
                  Plain(fw.data(), kInputs), kTokens, kInputs, kVocabulary, false));
  compare("weight gradient",
          product(Out(dw.data(), kInputs), Transposed(logits.data(), kVocabulary),
                  Plain(x.data(), kInputs), kVocabulary, kInputs, kTokens, true),
          product(Out(other.data(), kInputs), Plain(logits.data(), kTokens),
                  Plain(fx.data(), kInputs), kVocabulary, kInputs, kTokens, false));
}

}  // namespace
}  // namespace lockstep::kernels
