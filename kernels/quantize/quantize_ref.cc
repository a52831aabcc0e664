// SPDX-License-Identifier: Apache-2.0
//
// Scalar definitions of the kernels in quantize.h, weights.h and dequantize.h.
#include "kernels/gemm_i8/dequantize.h"
#include "kernels/quantize/dequantize.h"
#include "kernels/quantize/quantize.h"
#include "kernels/quantize/weights.h"
#include "kernels/sums.h"

namespace lockstep::kernels {
namespace {

// The largest magnitude of x(0..n-1).
template <class X>
float AmaxOf(int64_t n, X&& x) {
  int32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t bits = MagnitudeBits(x(i));
    if (bits > largest) largest = bits;
  }
  return FromBits(static_cast<uint32_t>(largest));
}

}  // namespace

void AmaxBlocksReference(const AmaxBlocksArgs& args, Range range) {
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t b = range.begin; b < range.end; ++b) {
      const int64_t first = b * kAmaxBlock;
      const int64_t left = args.count - first;
      const int64_t n = left < kAmaxBlock ? left : kAmaxBlock;
      args.amax[b] = AmaxOf(n, [&](int64_t i) { return ToFloat(x[first + i]); });
    }
  });
}

void QuantizeReference(const QuantizeArgs& args, Range range) {
  const Quantizer quantizer = QuantizerOfAmax(args.amax);
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      args.q[i] = static_cast<int8_t>(QuantizeOne(ToFloat(x[i]), quantizer));
    }
  });
}

void QuantizeRowsReference(const QuantizeRowsArgs& args, Range range) {
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t r = range.begin; r < range.end; ++r) {
      const auto at = [&](int64_t c) { return ToFloat(x[r * args.cols + c]); };
      const float amax = AmaxOf(args.cols, at);
      Store(&args.scale[r], StepOfAmax(amax) * args.gain);
      for (int64_t c = 0; c < args.cols; ++c) {
        const int32_t q = QuantizeOne(at(c), QuantizerOfAmax(amax));
        args.q[r * args.cols + c] = static_cast<int8_t>(q);
      }
    }
  });
}

void QuantizeColumnsReference(const QuantizeColumnsArgs& args, Range range) {
  const int64_t last = range.end * kColumnPanel;
  const int64_t end = last < args.cols ? last : args.cols;
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t c = range.begin * kColumnPanel; c < end; ++c) {
      const auto at = [&](int64_t r) { return ToFloat(x[r * args.cols + c]); };
      const float amax = AmaxOf(args.rows, at);
      Store(&args.scale[c], StepOfAmax(amax) * args.gain);
      for (int64_t r = 0; r < args.rows; ++r) {
        const int32_t q = QuantizeOne(at(r), QuantizerOfAmax(amax));
        args.q[r * args.cols + c] = static_cast<int8_t>(q);
      }
    }
  });
}

void QuantizeWeightsReference(const QuantizeWeightsArgs& args, Range range) {
  const float factor = LsqFactor(args.cols);
  WithFloats(args.w, [&](const auto* w) {
    for (int64_t o = range.begin; o < range.end; ++o) {
      const auto at = [&](int64_t k) { return ToFloat(w[o * args.cols + k]); };
      const float sum = RowSum(args.cols, [&](int64_t k) { return Snap(Abs(at(k))); });
      Store(&args.step[o], sum * factor);
      const Quantizer quantizer = QuantizerOfStep(args.step[o]);
      args.clipped[o] = 0;
      for (int64_t k = 0; k < args.cols; ++k) {
        args.q[o * args.cols + k] = static_cast<int8_t>(QuantizeOne(at(k), quantizer));
        if (Abs(at(k) * quantizer.inverse) >= kClipBound) ++args.clipped[o];
      }
    }
  });
}

void MaskClippedReference(const MaskClippedArgs& args, Range range) {
  WithFloats(args.w, [&](const auto* w) {
    for (int64_t o = range.begin; o < range.end; ++o) {
      if (args.clipped[o] == 0) continue;
      const float inverse = QuantizerOfStep(args.step[o]).inverse;
      for (int64_t i = o * args.cols; i < (o + 1) * args.cols; ++i) {
        if (Abs(ToFloat(w[i]) * inverse) >= kClipBound) args.gradient[i] = 0.0f;
      }
    }
  });
}

void DequantizeProductReference(const DequantizeProductArgs& args, Range range) {
  WithFloats(args.out, [&](auto* out) {
    for (int64_t r = range.begin; r < range.end; ++r) {
      for (int64_t c = 0; c < args.cols; ++c) {
        const int64_t i = r * args.cols + c;
        Store(&out[i], Dequantize(args.p[i], args.row_scale[r], args.col_scale[c]));
      }
    }
  });
}

void DequantizeRowsReference(const DequantizeRowsArgs& args, Range range) {
  WithFloats(args.out, [&](auto* out) {
    for (int64_t r = range.begin; r < range.end; ++r) {
      for (int64_t i = r * args.cols; i < (r + 1) * args.cols; ++i) {
        Store(&out[i], static_cast<float>(args.q[i]) * args.scale[r]);
      }
    }
  });
}

}  // namespace lockstep::kernels
