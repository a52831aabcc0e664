// SPDX-License-Identifier: Apache-2.0
//
// The f32 matrix product against OpenBLAS and oneDNN, all packing timed, operands plain by rows.
#include <string>
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
#endif

std::vector<Peer> Peers([[maybe_unused]] Matrices& x, [[maybe_unused]] int threads) {
  std::vector<Peer> peers;
#ifdef LOCKSTEP_HAS_OPENBLAS
  peers.push_back(OpenBlas(x, threads));
#endif
#ifdef LOCKSTEP_HAS_ONEDNN
  peers.push_back(OneDnnSgemm(x, threads));
  peers.push_back(OneDnnMatmul(x, threads));
#endif
  if (peers.empty()) peers.push_back({});
  return peers;
}

LOCKSTEP_BENCH(gemm_f32, "f32 matrix product, against OpenBLAS and oneDNN", b) {
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
          b.Compare({.name = shape.name() + " " + std::string(IsaName(isa)) + " " +
                             std::to_string(threads) + "T",
                     .unit = "GFLOP/s",
                     .work = shape.operations(),
                     .ours = [&] { GemmF32(context, args); },
                     .peer = peer.name,
                     .peer_call = peer.call});
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
