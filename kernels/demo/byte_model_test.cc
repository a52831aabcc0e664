// SPDX-License-Identifier: Apache-2.0
//
// The byte model learns, and its state after some steps is one constant for every instruction set,
// number of threads, flush mode, compiler and machine.
#include "kernels/demo/byte_model.h"

#include <string>

#include "gtest/gtest.h"
#include "kernels/testing/flush_mode.h"
#include "kernels/testing/isas.h"

namespace lockstep::kernels {
namespace {

constexpr char kGolden[] = "652ef92f1daf1554c83a291a9bf80be89748bf12de8162f9a032c8600824581b";
constexpr int kSteps = 6;

std::string Text() {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "every step of the run number " + std::to_string(i * i) + " can be computed again; ";
  }
  return text;
}

std::string StateAfterTraining(Isa isa, int threads, float* last_loss) {
  const std::string text = Text();
  ThreadPool pool(threads);
  const Context context{pool, KernelsFor(isa), threads == 1 ? int64_t{1} << 40 : 1};
  ByteModel model(context, 42);
  for (int step = 0; step < kSteps; ++step) *last_loss = model.Step(AsBytes(text));
  return model.StateDigest().ToHex();
}

TEST(ByteModel, Learns) {
  float loss;
  StateAfterTraining(AvailableIsas().back(), 1, &loss);
  EXPECT_LT(loss, 4.0f);  // ln 256 = 5.55 at the start
}

TEST(ByteModel, IsTheSameEverywhere) {
  std::vector<Isa> isas = TestedIsas();
  isas.push_back(Isa::kReference);
  for (Isa isa : isas) {
    for (int threads : {1, 2, 3, 5}) {
      if (isa == Isa::kReference && threads > 1) continue;  // slow, and threads are tried above
      for (bool flush : {false, true}) {
        const FlushMode mode(flush);
        float loss;
        EXPECT_EQ(StateAfterTraining(isa, threads, &loss), kGolden)
            << IsaName(isa) << ", " << threads << " threads, flushing " << flush;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
