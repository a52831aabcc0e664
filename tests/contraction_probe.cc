// SPDX-License-Identifier: Apache-2.0
//
// Two functions for scripts/check-objects to disassemble, compiled with the flags of the scalar
// definitions: in Apart the compiler must not fuse, in Together it must.
#include "kernels/numeric.h"

extern "C" {

float Apart(float a, float b, float c) { return a * b + c; }
void ApartOverArrays(float* out, const float* a, const float* b, int n) {
  for (int i = 0; i < n; ++i) out[i] = a[i] * b[i] - out[i];
}
float Together(float a, float b, float c) { return lockstep::kernels::Fma(a, b, c); }
}
