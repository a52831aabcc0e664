// SPDX-License-Identifier: Apache-2.0
//
// Checks of backward passes in float64: central differences, and the distance of a kernel's result
// from an independent implementation. For tests only.
#ifndef LOCKSTEP_KERNELS_TESTING_GRADIENTS_H_
#define LOCKSTEP_KERNELS_TESTING_GRADIENTS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/numeric.h"
#include "kernels/testing/inputs.h"

namespace lockstep::kernels {

// df/dx_i for every i by central differences with step h.
inline std::vector<double> FiniteDifferences(
    const std::function<double(const std::vector<double>&)>& f, std::vector<double> x,
    double h = 1e-5) {
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + h;
    const double above = f(x);
    x[i] = at - h;
    const double below = f(x);
    x[i] = at;
    gradient[i] = (above - below) / (2 * h);
  }
  return gradient;
}

// The largest difference between two vectors, in units of the largest magnitude of `want`.
inline double LargestError(const std::vector<double>& got, const std::vector<double>& want) {
  double error = got.size() == want.size() ? 0.0 : INFINITY;
  double scale = 0.0;
  for (double w : want) scale = std::max(scale, std::abs(w));
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    error = std::max(error, std::abs(got[i] - want[i]) / scale);
    if (std::isnan(got[i])) error = INFINITY;
  }
  return error;
}

template <class T>
std::vector<double> ToDoubles(const std::vector<T>& x) {
  std::vector<double> doubles;
  for (T value : x) doubles.push_back(static_cast<double>(ToFloat(value)));
  return doubles;
}

// Normal-like values of a tensor, from a seed.
template <class T>
std::vector<T> NormalInput(int64_t count, uint64_t seed) {
  std::vector<T> x(static_cast<size_t>(count));
  FillInput(x.data(), count, InputKind::kNormal, seed);
  return x;
}

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_TESTING_GRADIENTS_H_
