// SPDX-License-Identifier: Apache-2.0
//
// Scalar definition of the Walsh-Hadamard transform and of its compositions with quantisation.
#include "kernels/hadamard/hadamard.h"
#include "kernels/numeric.h"
#include "kernels/scratch.h"

namespace lockstep::kernels {
namespace {

// v [block], snapped.
void Transform(float* v, int64_t block) {
  for (int64_t h = 1; h < block; h *= 2) {
    for (int64_t i = 0; i < block; ++i) {
      if ((i & h) != 0) continue;
      const float a = v[i];
      const float b = v[i + h];
      v[i] = a + b;
      v[i + h] = a - b;
    }
  }
}

int32_t Larger(int32_t a, float x) {
  const int32_t b = MagnitudeBits(x);
  return a > b ? a : b;
}

// A line of n values, transformed block by block, then quantised with its own step.
struct Line {
  float* v;  // [n] scratch
  int64_t n;
  int64_t block;
  float gain;

  // x(i) is element i; put(i, q) takes its integer; the scale is stored.
  template <class X, class Put>
  void Quantize(X&& x, Put&& put, float* scale) const {
    int32_t largest = 0;
    for (int64_t i = 0; i < n; ++i) v[i] = Snap(x(i));
    for (int64_t b = 0; b < n; b += block) Transform(v + b, block);
    for (int64_t i = 0; i < n; ++i) largest = Larger(largest, Canon(v[i]));
    const float amax = FromBits(static_cast<uint32_t>(largest));
    Store(scale, StepOfAmax(amax) * gain);
    for (int64_t i = 0; i < n; ++i) {
      put(i, static_cast<int8_t>(QuantizeOne(Canon(v[i]), QuantizerOfAmax(amax))));
    }
  }
};

}  // namespace

void HadamardRowsReference(const HadamardRowsArgs& args, Range range) {
  float v[kHadamardBlockMax];
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t b = range.begin; b < range.end; ++b) {
      const int64_t first = b * args.block;
      for (int64_t i = 0; i < args.block; ++i) v[i] = Snap(ToFloat(x[first + i]));
      Transform(v, args.block);
      for (int64_t i = 0; i < args.block; ++i) Store(&args.out[first + i], v[i]);
    }
  });
}

void HadamardColumnsReference(const HadamardColumnsArgs& args, Range range) {
  float v[kHadamardBlockMax];
  const int64_t last = range.end * kColumnPanel;
  const int64_t end = last < args.cols ? last : args.cols;
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t c = range.begin * kColumnPanel; c < end; ++c) {
      for (int64_t b = 0; b < args.rows; b += args.block) {
        const int64_t first = b * args.cols + c;
        for (int64_t i = 0; i < args.block; ++i) v[i] = Snap(ToFloat(x[first + i * args.cols]));
        Transform(v, args.block);
        for (int64_t i = 0; i < args.block; ++i) Store(&args.out[first + i * args.cols], v[i]);
      }
    }
  });
}

void HadamardQuantizeRowsReference(const HadamardQuantizeRowsArgs& args, Range range) {
  ScratchFrame scratch;
  const Line line = {
      .v = scratch.Get<float>(args.cols), .n = args.cols, .block = args.block, .gain = args.gain};
  WithFloats(args.x, [&](const auto* x) {
    for (int64_t r = range.begin; r < range.end; ++r) {
      const int64_t row = r * args.cols;
      line.Quantize([&](int64_t i) { return ToFloat(x[row + i]); },
                    [&](int64_t i, int8_t q) { args.q[row + i] = q; }, &args.scale[r]);
    }
  });
}

void HadamardQuantizeColumnsReference(const HadamardQuantizeColumnsArgs& args, Range range) {
  ScratchFrame scratch;
  const Line line = {
      .v = scratch.Get<float>(args.rows), .n = args.rows, .block = args.block, .gain = args.gain};
  const int64_t last = range.end * kColumnPanel;
  const int64_t end = last < args.cols ? last : args.cols;
  WithElements(args.x, [&](const auto* x) {
    for (int64_t c = range.begin * kColumnPanel; c < end; ++c) {
      const auto at = [&](int64_t r) {
        const float value = ElementToFloat(x[r * args.cols + c]);
        return args.row_scale != nullptr ? Canon(value * args.row_scale[r]) : value;
      };
      line.Quantize(
          at, [&](int64_t r, int8_t q) { args.q[r * args.cols + c] = q; }, &args.scale[c]);
    }
  });
}

}  // namespace lockstep::kernels
