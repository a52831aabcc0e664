// SPDX-License-Identifier: Apache-2.0
//
// lockstep-kernels-demo FILE [STEPS]: trains the byte model on the file once with each instruction
// set of this machine (or the one that LOCKSTEP_ISA names) and once with several threads, and
// prints losses and the digest of the final state, which must be one and the same.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "kernels/demo/byte_model.h"

namespace lockstep::kernels {
namespace {

constexpr int kReports = 6;  // losses printed of each run

Digest Train(const Context& context, ByteSpan text, int steps) {
  std::printf("%-10s %d thread%s: loss", std::string(IsaName(context.kernels.isa)).c_str(),
              context.pool.threads(), context.pool.threads() == 1 ? " " : "s");
  const auto start = std::chrono::steady_clock::now();
  ByteModel model(context, 42);
  for (int step = 0; step < steps; ++step) {
    const float loss = model.Step(text);
    if (step == 0 || (step + 1) % ((steps + kReports - 1) / kReports) == 0) {
      std::printf(" %.4f", static_cast<double>(loss));
      std::fflush(stdout);
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Digest digest = model.StateDigest();
  std::printf("  %6.0f tokens/s\n%23sstate %s\n", steps * ByteModel::kTokens / seconds, "",
              digest.ToHex().c_str());
  return digest;
}

int Main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: lockstep-kernels-demo FILE [STEPS]\n");
    return 2;
  }
  const int steps = argc == 3 ? std::atoi(argv[2]) : 60;
  const absl::StatusOr<std::string> text = ReadFile(argv[1], size_t{64} << 20);
  if (!text.ok()) {
    std::fprintf(stderr, "%s\n", std::string(text.status().message()).c_str());
    return 1;
  }
  if (text->size() <= ByteModel::kSequence || steps < 1) {
    std::fprintf(stderr, "the text must have more than %d bytes, and STEPS be at least 1\n",
                 static_cast<int>(ByteModel::kSequence));
    return 2;
  }
  const absl::StatusOr<Isa> chosen = ChooseIsa();
  if (!chosen.ok()) {
    std::fprintf(stderr, "%s\n", std::string(chosen.status().message()).c_str());
    return 1;
  }
  bool same = true;
  Digest first;
  ThreadPool one(1);
  const bool only_chosen = std::getenv("LOCKSTEP_ISA") != nullptr;
  const std::vector<Isa> isas = only_chosen ? std::vector<Isa>{*chosen} : AvailableIsas();
  for (const Isa isa : isas) {
    const Digest digest = Train(Context{one, KernelsFor(isa)}, AsBytes(*text), steps);
    if (isa == isas.front()) first = digest;
    same = same && digest == first;
  }
  ThreadPool three(3);
  same = same && Train(Context{three, KernelsFor(*chosen)}, AsBytes(*text), steps) == first;
  std::printf(same ? "all the same, bit for bit\n"
                   : "NOT the same: this machine or build breaks the contract\n");
  return same ? 0 : 3;
}

}  // namespace
}  // namespace lockstep::kernels

int main(int argc, char** argv) { return lockstep::kernels::Main(argc, argv); }
