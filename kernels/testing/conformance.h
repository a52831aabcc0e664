// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite, the same for every operation: each case is run by the scalar reference and
// by every instruction set of this machine, with 1, 2, 3 and 5 threads, cut as finely as the
// operation allows, with hardware flushing on and off; all must give the same bits, write nothing
// outside their outputs, and leave their inputs alone. The reference's own bits are held by a
// digest in the operation's golden.txt, so that compilers and machines are compared with each
// other.
//
//   KERNEL_CASES(ResidualAdd, cases) {
//     for (InputKind kind : kAllInputKinds) {
//       Case& c = cases.New("33 elements", kind);
//       const ResidualAddArgs args = {.out = c.Output<BFloat16>(33), .x = c.Input<BFloat16>(33),
//       ...}; c.Runs(args);
//     }
//   }
#ifndef LOCKSTEP_KERNELS_TESTING_CONFORMANCE_H_
#define LOCKSTEP_KERNELS_TESTING_CONFORMANCE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/context.h"
#include "kernels/testing/inputs.h"

namespace lockstep::kernels {

// One call of an operation with the memory it works on. Buffers are deliberately misaligned by one
// element and fenced by guard bytes.
class Case {
 public:
  Case(std::string name, InputKind kind, uint64_t seed)
      : name_(std::move(name)), kind_(kind), seed_(seed) {}

  // Read only. Each call draws other values; with a kind, from that distribution and not the case's
  // own.
  template <class T>
  const T* Input(int64_t count) {
    return Input<T>(count, kind_);
  }
  template <class T>
  const T* Input(int64_t count, InputKind kind) {
    T* data = Typed<T>(New(count * sizeof(T), sizeof(T), false));
    FillInput(data, count, kind, seed_ * 1000 + buffers_.size());
    return data;
  }
  const int32_t* Indices(int64_t count, int32_t bound) {
    auto* data = Typed<int32_t>(New(count * sizeof(int32_t), sizeof(int32_t), false));
    FillIndices(data, count, bound, seed_ * 1000 + buffers_.size());
    return data;
  }
  // Read only, from the test's own values.
  template <class T>
  const T* Values(const std::vector<T>& values) {
    T* data = Typed<T>(New(values.size() * sizeof(T), sizeof(T), false));
    for (size_t i = 0; i < values.size(); ++i) data[i] = values[i];
    return data;
  }
  // Written only: filled with a pattern before each run.
  template <class T>
  T* Output(int64_t count) {
    return Typed<T>(New(count * sizeof(T), sizeof(T), true));
  }
  // Read and written: restored before each run. Written by the test through the pointer before
  // Runs().
  template <class T>
  T* InOut(int64_t count) {
    return InOut<T>(count, kind_);
  }
  template <class T>
  T* InOut(int64_t count, InputKind kind) {
    T* data = const_cast<T*>(Input<T>(count, kind));
    buffers_.back().output = true;
    return data;
  }

  // The call: a kernel of the list, or any operation. The reference is the same call on the
  // reference's table unless given.
  template <class Args>
  void Runs(const Args& args) {
    run_ = [args](const Context& context) { Run(context, args); };
  }
  void Calls(std::function<void(const Context&)> run) { run_ = std::move(run); }
  void Reference(std::function<void()> reference) { reference_ = std::move(reference); }

 private:
  friend class ConformanceRun;
  friend void RunConformance(const char* op, const char* file, class Cases& cases);
  struct Buffer {
    std::vector<std::byte> bytes;    // guard, data, guard
    size_t offset;                   // of the data
    size_t size;                     // of the data
    bool output;                     // may change
    std::vector<std::byte> initial;  // of the data, as prepared
  };
  Buffer& New(size_t bytes, size_t element, bool output);
  template <class T>
  static T* Typed(Buffer& buffer) {
    return reinterpret_cast<T*>(buffer.bytes.data() + buffer.offset);
  }

  std::string name_;
  InputKind kind_;
  uint64_t seed_;
  std::deque<Buffer> buffers_;
  std::function<void(const Context&)> run_;
  std::function<void()> reference_;
};

class Cases {
 public:
  // The name says the shape; the kind's name is added to it.
  Case& New(const std::string& name, InputKind kind);

 private:
  friend void RunConformance(const char* op, const char* file, Cases& cases);
  std::deque<Case> cases_;
};

// The folder of a test's source, from its __FILE__: where its golden files lie.
std::string SourceFolder(const char* file);

// Runs all cases of `op`; the golden digests are in golden.txt beside `file`. With
// LOCKSTEP_UPDATE_GOLDEN=1 they are written instead of compared.
void RunConformance(const char* op, const char* file, Cases& cases);

#define KERNEL_CASES(Op, cases)                              \
  static void Op##Cases(::lockstep::kernels::Cases&);        \
  TEST(Conformance, Op) {                                    \
    ::lockstep::kernels::Cases all;                          \
    Op##Cases(all);                                          \
    ::lockstep::kernels::RunConformance(#Op, __FILE__, all); \
  }                                                          \
  static void Op##Cases(::lockstep::kernels::Cases& cases)

}  // namespace lockstep::kernels

#endif  // LOCKSTEP_KERNELS_TESTING_CONFORMANCE_H_
