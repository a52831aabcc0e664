// SPDX-License-Identifier: Apache-2.0
//
// The rounds of SHA-256 (FIPS 180-4, section 6.2.2) by the SHA instructions of x86, for two
// messages in step: each instruction is written for one and then for the other, so that neither
// waits. Compiled for those instructions; nothing but the two entry points leaves this file.

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include "base/sha256_compress.h"

namespace lockstep::sha256_internal {
namespace {

// Section 4.2.2, four to a vector.
alignas(16) constexpr uint32_t kConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// The instructions take the eight words as two vectors, from the highest element: a b e f, c d g h.
struct Words {
  __m128i abef;
  __m128i cdgh;
};

inline Words Load(const uint32_t* state) {
  const auto* words = reinterpret_cast<const __m128i*>(state);
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);      // high: c d a b
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);  // high: e f g h
  return {.abef = _mm_alignr_epi8(badc, efgh, 8), .cdgh = _mm_blend_epi16(efgh, badc, 0xf0)};
}

inline void Store(const Words& words, uint32_t* state) {
  const __m128i abef = _mm_shuffle_epi32(words.abef, 0x1b);  // high: f e b a
  const __m128i cdgh = _mm_shuffle_epi32(words.cdgh, 0xb1);  // high: d c h g
  auto* out = reinterpret_cast<__m128i*>(state);
  _mm_storeu_si128(out, _mm_blend_epi16(abef, cdgh, 0xf0));   // d c b a
  _mm_storeu_si128(out + 1, _mm_alignr_epi8(cdgh, abef, 8));  // h g f e
}

}  // namespace

void CompressPair(uint32_t* const states[2], const uint8_t* const data[2], size_t blocks) noexcept {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  Words now[2] = {Load(states[0]), Load(states[1])};
  for (size_t block = 0; block < blocks; ++block) {
    const Words before[2] = {now[0], now[1]};
    __m128i schedule[2][4];  // the last sixteen words of each message's schedule
#pragma GCC unroll 16
    for (int four = 0; four < 16; ++four) {
      const __m128i constants =
          _mm_load_si128(reinterpret_cast<const __m128i*>(kConstants + 4 * four));
#pragma GCC unroll 2
      for (int m = 0; m < 2; ++m) {
        __m128i* const w = schedule[m];
        if (four < 4) {
          const uint8_t* const at = data[m] + 64 * block + 16 * four;
          w[four] =
              _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)), big_endian);
        } else {
          const __m128i last = w[(four + 3) % 4];
          const __m128i seven_back = _mm_alignr_epi8(last, w[(four + 2) % 4], 4);
          const __m128i sum =
              _mm_add_epi32(_mm_sha256msg1_epu32(w[four % 4], w[(four + 1) % 4]), seven_back);
          w[four % 4] = _mm_sha256msg2_epu32(sum, last);
        }
        const __m128i sums = _mm_add_epi32(w[four % 4], constants);
        now[m].cdgh = _mm_sha256rnds2_epu32(now[m].cdgh, now[m].abef, sums);
        now[m].abef =
            _mm_sha256rnds2_epu32(now[m].abef, now[m].cdgh, _mm_shuffle_epi32(sums, 0x0e));
      }
    }
    for (int m = 0; m < 2; ++m) {
      now[m].abef = _mm_add_epi32(now[m].abef, before[m].abef);
      now[m].cdgh = _mm_add_epi32(now[m].cdgh, before[m].cdgh);
    }
  }
  for (int m = 0; m < 2; ++m) Store(now[m], states[m]);
}

bool CanCompressPair() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSE4_1) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (b & bit_SHA) != 0;
}

}  // namespace lockstep::sha256_internal

#endif  // defined(__x86_64__)
