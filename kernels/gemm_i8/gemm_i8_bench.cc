// SPDX-License-Identifier: Apache-2.0
//
// The int8 matrix product, packing included, against oneDNN's with operands as they lie in memory:
// at the shapes that both matrix products are measured at, and in the three layouts of a linear
// layer; then what dequantising on the way out costs.
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/harness.h"
#include "bench/shapes.h"
#include "kernels/gemm_i8/gemm_i8.h"

#ifdef LOCKSTEP_HAS_ONEDNN
#include "dnnl.hpp"
extern "C" void omp_set_num_threads(int threads);  // of the OpenMP library that oneDNN uses
#endif

namespace lockstep::kernels {
namespace {

using bench::GemmShape;

struct Layout {
  std::string name;
  bool transpose_a;
  bool transpose_b;
};

struct Matrices {
  Matrices(const GemmShape& s, const Layout& l)
      : shape(s),
        layout(l),
        a(s.m * s.k),
        b(s.k * s.n),
        out(s.m * s.n),
        bf16(s.m * s.n),
        scales(s.m > s.n ? s.m : s.n, 0x1p-7f) {
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<int8_t>(i % 251 - 125);
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<int8_t>(i % 241 - 120);
  }

  GemmI8Args Args() {
    return {.out_i32 = out.data(),
            .ld_out = shape.n,
            .a = a.data(),
            .lda = layout.transpose_a ? shape.m : shape.k,
            .transpose_a = layout.transpose_a,
            .b = b.data(),
            .ldb = layout.transpose_b ? shape.k : shape.n,
            .transpose_b = layout.transpose_b,
            .m = shape.m,
            .n = shape.n,
            .k = shape.k};
  }
  GemmI8Args ArgsToBFloat16() {
    GemmI8Args args = Args();
    args.out_i32 = nullptr;
    args.out_bf16 = bf16.data();
    args.row_scale = {scales.data(), false};
    args.col_scale = {scales.data(), false};
    return args;
  }

  GemmShape shape;
  Layout layout;
  std::vector<int8_t> a;
  std::vector<int8_t> b;
  std::vector<int32_t> out;
  std::vector<BFloat16> bf16;
  std::vector<float> scales;
};

std::function<void()> OneDnn([[maybe_unused]] Matrices& x, [[maybe_unused]] int threads) {
#ifdef LOCKSTEP_HAS_ONEDNN
  using dnnl::memory;
  const GemmShape& s = x.shape;
  omp_set_num_threads(threads);  // the primitive is made for this many
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto bytes = [](int64_t rows, int64_t columns, bool transposed) {
    return memory::desc({rows, columns}, memory::data_type::s8,
                        transposed ? memory::format_tag::ba : memory::format_tag::ab);
  };
  const memory::desc a = bytes(s.m, s.k, x.layout.transpose_a);
  const memory::desc b = bytes(s.k, s.n, x.layout.transpose_b);
  const memory::desc out({s.m, s.n}, memory::data_type::s32, memory::format_tag::ab);
  const dnnl::matmul matmul({dnnl::matmul::desc(a, b, out), engine});
  const std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, memory(a, engine, x.a.data())},
      {DNNL_ARG_WEIGHTS, memory(b, engine, x.b.data())},
      {DNNL_ARG_DST, memory(out, engine, x.out.data())}};
  return [matmul, arguments, stream = dnnl::stream(engine), threads]() mutable {
    omp_set_num_threads(threads);
    matmul.execute(stream, arguments);
    stream.wait();
  };
#else
  return nullptr;
#endif
}

std::string Name(const Matrices& x, Isa isa, int threads) {
  return x.shape.name() + x.layout.name + " " + std::string(IsaName(isa)) + " " +
         std::to_string(threads) + "T";
}

void AgainstOneDnn(bench::Bench& b, const GemmShape& shape, const Layout& layout) {
  Matrices x(shape, layout);
  for (Isa isa : bench::Bench::Isas()) {
    for (int threads : {1, 2}) {
      const Context context = b.ContextOf(isa, threads);
      b.Compare({.name = Name(x, isa, threads),
                 .unit = "GOP/s",
                 .work = shape.operations(),
                 .ours = [&] { GemmI8(context, x.Args()); },
                 .peer = "oneDNN",
                 .peer_call = OneDnn(x, threads),
                 .peer_has_threads = true});
    }
  }
}

LOCKSTEP_BENCH(gemm_i8, "int8 matrix product, plain operands, against oneDNN", b) {
  for (const GemmShape& shape : bench::kGemmShapes) AgainstOneDnn(b, shape, {"", false, false});
}

// The widest linear layer of Open-1B, 2048 inputs and 2 * 5632 outputs, over 2048 tokens.
LOCKSTEP_BENCH(gemm_i8_layer, "int8 matrix products of a linear layer, against oneDNN", b) {
  AgainstOneDnn(b, {2048, 11264, 2048}, {" output", false, true});
  AgainstOneDnn(b, {2048, 2048, 11264}, {" input gradient", false, false});
  AgainstOneDnn(b, {11264, 2048, 2048}, {" weight gradient", true, false});
}

LOCKSTEP_BENCH(gemm_i8_dequantize, "int8 matrix product to bf16, against raw int32 output", b) {
  for (const GemmShape& shape : bench::kGemmShapes) {
    Matrices x(shape, {"", false, true});
    for (Isa isa : bench::Bench::Isas()) {
      const Context context = b.ContextOf(isa, 1);
      b.Compare({.name = Name(x, isa, 1),
                 .unit = "GOP/s",
                 .work = shape.operations(),
                 .ours = [&] { GemmI8(context, x.ArgsToBFloat16()); },
                 .peer = "int32 output",
                 .peer_call = [&] { GemmI8(context, x.Args()); }});
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
