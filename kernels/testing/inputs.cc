// SPDX-License-Identifier: Apache-2.0
//
// The distributions of kernels/testing/inputs.h, made from bit patterns so that no library decides
// a value.
#include "kernels/testing/inputs.h"

namespace lockstep::kernels {
namespace {

// Sign and fraction from random bits, the exponent uniform in [low, high].
float WithExponent(uint64_t random, int low, int high) {
  const uint32_t sign = static_cast<uint32_t>(random >> 63) << 31;
  const uint32_t fraction = static_cast<uint32_t>(random) & 0x7fffffu;
  const int exponent =
      low + static_cast<int>((random >> 32) % static_cast<uint64_t>(high - low + 1));
  return FromBits(sign | (static_cast<uint32_t>(exponent + 127) << 23) | fraction);
}

float Special(TestRandom& random) {
  constexpr uint32_t kValues[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0u,
                                  0x7f7fffffu, 0xff7fffffu, 0x3f800000u};
  const int64_t choice = random.Below(64);
  return choice < 7 ? FromBits(kValues[choice]) : WithExponent(random.Next(), -2, 1);
}

float Draw(InputKind kind, TestRandom& random, float previous, int64_t i) {
  switch (kind) {
    case InputKind::kNormal:
      return WithExponent(random.Next(), -4, 1);
    case InputKind::kSmall:
      return WithExponent(random.Next(), -24, -16);
    case InputKind::kTiny:
      return random.Below(8) == 0 ? 0.0f : WithExponent(random.Next(), -126, -123);
    case InputKind::kSnap:
      return random.Below(2) == 0 ? WithExponent(random.Next(), -64, -60)
                                  : WithExponent(random.Next(), -42, -39);
    case InputKind::kCancel:
      return i % 2 == 0 ? WithExponent(random.Next(), -3, 3)
                        : FromBits((Bits(previous) ^ 0x80000000u) + 1);
    case InputKind::kWide:
      return WithExponent(random.Next(), -100, 100);
    case InputKind::kSpecial:
      return Special(random);
  }
  return 0.0f;
}

template <class T>
void Fill(T* out, int64_t count, InputKind kind, uint64_t seed) {
  TestRandom random(seed * 2654435761u + static_cast<uint64_t>(kind));
  float previous = 0.0f;
  for (int64_t i = 0; i < count; ++i) {
    previous = Draw(kind, random, previous, i);
    Store(&out[i], previous);
  }
}

}  // namespace

const char* InputKindName(InputKind kind) {
  constexpr const char* kNames[] = {"normal", "small", "tiny", "snap", "cancel", "wide", "special"};
  return kNames[static_cast<int>(kind)];
}

uint64_t TestRandom::Next() {
  state_ += 0x9e3779b97f4a7c15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void FillInput(float* out, int64_t count, InputKind kind, uint64_t seed) {
  Fill(out, count, kind, seed);
}
void FillInput(BFloat16* out, int64_t count, InputKind kind, uint64_t seed) {
  Fill(out, count, kind, seed);
}

void FillInput(int8_t* out, int64_t count, InputKind kind, uint64_t seed) {
  TestRandom random(seed + 77 * static_cast<uint64_t>(kind));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t choice = random.Below(16);
    const int64_t value = choice == 0 ? 127 : choice == 1 ? -127 : random.Below(255) - 127;
    out[i] = static_cast<int8_t>(value);
  }
}

void FillIndices(int32_t* out, int64_t count, int32_t bound, uint64_t seed) {
  TestRandom random(seed);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int32_t>(random.Below(bound));
}

}  // namespace lockstep::kernels
