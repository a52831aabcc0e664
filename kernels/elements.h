// SPDX-License-Identifier: Apache-2.0
//
// Arrays whose element type is chosen at run time, for kernels that read or write bf16, f32 or int8
// alike, and how their elements become f32. No shape, no ownership.
#ifndef LOCKSTEP_KERNELS_ELEMENTS_H_
#define LOCKSTEP_KERNELS_ELEMENTS_H_

#include <cstdint>

#include "kernels/numeric.h"
#include "kernels/simd/scalar.h"

namespace lockstep::kernels {

enum class ElementKind : uint8_t { kBFloat16, kFloat32, kInt8 };

// Read only; null where a kernel says that it may be. Made from a typed pointer, so that call sites
// read as if the kernel took either.
struct ConstElements {
  const void* data = nullptr;
  ElementKind kind = ElementKind::kFloat32;

  ConstElements() = default;
  ConstElements(const BFloat16* p) : data(p), kind(ElementKind::kBFloat16) {}  // NOLINT
  ConstElements(const float* p) : data(p), kind(ElementKind::kFloat32) {}      // NOLINT
  ConstElements(const int8_t* p) : data(p), kind(ElementKind::kInt8) {}        // NOLINT
};

// Written: bf16 or f32.
struct FloatElements {
  void* data = nullptr;
  ElementKind kind = ElementKind::kFloat32;

  FloatElements() = default;
  FloatElements(BFloat16* p) : data(p), kind(ElementKind::kBFloat16) {}  // NOLINT
  FloatElements(float* p) : data(p), kind(ElementKind::kFloat32) {}      // NOLINT
};

// fn(typed pointer).
template <class Fn>
static inline void WithFloats(const ConstElements& x, Fn&& fn) {
  if (x.kind == ElementKind::kBFloat16) {
    fn(static_cast<const BFloat16*>(x.data));
  } else {
    fn(static_cast<const float*>(x.data));
  }
}
template <class Fn>
static inline void WithFloats(const FloatElements& x, Fn&& fn) {
  if (x.kind == ElementKind::kBFloat16) {
    fn(static_cast<BFloat16*>(x.data));
  } else {
    fn(static_cast<float*>(x.data));
  }
}
template <class Fn>
static inline void WithElements(const ConstElements& x, Fn&& fn) {
  if (x.kind == ElementKind::kInt8) {
    fn(static_cast<const int8_t*>(x.data));
  } else {
    WithFloats(x, fn);
  }
}

// The elements of bf16 or f32 from the i-th on, and the i-th itself.
static inline ConstElements From(const ConstElements& x, int64_t i) {
  if (x.kind == ElementKind::kFloat32) return static_cast<const float*>(x.data) + i;
  return static_cast<const BFloat16*>(x.data) + i;
}
static inline float At(const ConstElements& x, int64_t i) {
  if (x.kind == ElementKind::kFloat32) return static_cast<const float*>(x.data)[i];
  return ToFloat(static_cast<const BFloat16*>(x.data)[i]);
}

static inline float ElementToFloat(BFloat16 x) { return ToFloat(x); }
static inline float ElementToFloat(float x) { return x; }
static inline float ElementToFloat(int8_t x) { return static_cast<float>(x); }

// n elements (All{} or a count) as f32 lanes.
template <class V, class T, class N>
static inline typename V::F LoadElements(const T* p, N n) {
  return V::Load(p, n);
}
template <class V, class N>
static inline typename V::F LoadElements(const int8_t* p, N n) {
  return V::ToFloat(V::LoadI(p, n));
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_ELEMENTS_H_
