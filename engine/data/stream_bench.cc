// SPDX-License-Identifier: Apache-2.0
//
// The walk over windows that somebody else computes, and the reading of one's own. The corpus is
// made here, with documents as long as those of web text; or LOCKSTEP_BENCH_SHARDS names a folder
// that `lockstep corpus build` wrote.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/logging.h"
#include "base/sha256.h"
#include "bench/harness.h"
#include "bench/temporary_folder.h"
#include "engine/data/build.h"
#include "engine/data/step_reader.h"
#include "kernels/random/random.h"

namespace lockstep::engine {
namespace {

// The harness counts work in units of 1e-9.
constexpr double kMega = 1e3;

constexpr uint64_t kWalked = 100'000;
constexpr uint64_t kStepWindows = 64;
constexpr int64_t kParts = 16;
constexpr uint64_t kPartDocuments = 1000;

// Lengths spread evenly on a logarithmic scale, 32 to 8,192 tokens: 1,470 on average.
uint64_t Length(uint64_t source, uint64_t document) {
  const uint64_t octave = kernels::RandomBelow(7, source, 2 * document, 8);
  return (32 + kernels::RandomBelow(7, source, 2 * document + 1, 32)) << octave;
}

BuildSource MakeSource(uint64_t number) {
  return {
      .name = "source-" + std::to_string(number),
      .licence = "CC0-1.0",
      .store = Sha256(AsBytes("bench")),
      .text_bytes = 0,
      .parts = kParts,
      .read_part = [number](int64_t part) -> absl::StatusOr<std::vector<Document>> {
        std::vector<Document> documents(kPartDocuments);
        for (uint64_t d = 0; d < kPartDocuments; ++d) {
          const uint64_t length = Length(number, part * kPartDocuments + d) - 1;
          documents[d] = {std::to_string(d), std::string(length, static_cast<char>('a' + d % 26))};
        }
        return documents;
      }};
}

// A folder with a corpus in it, for as long as the process lives.
std::string CorpusFolder(ThreadPool& pool) {
  if (const char* folder = std::getenv("LOCKSTEP_BENCH_SHARDS")) return folder;
  static const bench::TemporaryFolder folder;
  const BuildTokenizer bytewise = {
      .digest = Sha256(AsBytes("bytewise")),
      .vocab_size = 128256,
      .separator = 128000,
      .encode_all = [](const std::vector<absl::string_view>& texts, ThreadPool&) {
        std::vector<std::vector<int32_t>> ids;
        for (const absl::string_view text : texts) ids.emplace_back(text.begin(), text.end());
        return ids;
      }};
  BuildOptions options;
  options.out = folder.path();
  const auto report = BuildCorpus(
      bytewise, {MakeSource(0), MakeSource(1), MakeSource(2), MakeSource(3)}, options, pool,
      {.progress = [](int64_t) {}, .resumed = [](int64_t) {}, .interrupted = [] { return false; }});
  LOCKSTEP_CHECK(report.ok(), "{}", report.status());
  return folder.path();
}

Stream OpenStream(const std::shared_ptr<const CorpusReader>& corpus, uint64_t seq_len) {
  absl::StatusOr<Stream> stream = Stream::Open(corpus, 42, seq_len);
  LOCKSTEP_CHECK(stream.ok(), "{}", stream.status());
  return *std::move(stream);
}

StepReader OpenSteps(const std::shared_ptr<const CorpusReader>& corpus,
                     const BatchSchedule& schedule) {
  absl::StatusOr<StepReader> data = StepReader::Open(corpus, 42, schedule);
  LOCKSTEP_CHECK(data.ok(), "{}", data.status());
  return *std::move(data);
}

LOCKSTEP_BENCH(stream_walk, "windows passed over, and read, of the data stream", b) {
  const std::string folder = CorpusFolder(b.Pool(2));
  const auto opened = CorpusReader::OpenFolder(folder);
  LOCKSTEP_CHECK(opened.ok(), "{}", opened.status());
  const std::shared_ptr<const CorpusReader> corpus = *opened;
  for (const uint64_t seq_len : {4096, 512}) {
    Stream stream = OpenStream(corpus, seq_len);
    b.Compare({.name = "pass over, " + std::to_string(seq_len) + " tokens 1T",
               .unit = "Mwindow/s",
               .work = static_cast<double>(kWalked) * kMega,
               .ours = [&] { LOCKSTEP_CHECK(stream.Skip(kWalked).ok()); },
               .peer = "",
               .peer_call = nullptr});
  }
  // Not only passed over: the documents behind each window are listed.
  const auto schedule = BatchSchedule::Create({{kStepWindows, std::nullopt}}, 4096);
  {
    StepReader data = OpenSteps(corpus, *schedule);
    b.Compare({.name = "trace, 4096 tokens 1T",
               .unit = "Mwindow/s",
               .work = static_cast<double>(kStepWindows) * kMega,
               .ours = [&] { LOCKSTEP_CHECK(data.Next().ok()); },
               .peer = "",
               .peer_call = nullptr});
  }
  // Tokens read by one of 8 ranks, which passes over the others', all of them checked. Each round
  // reads the disk cache and not our own.
  for (int threads : {1, 2}) {
    ThreadPool& pool = b.Pool(threads);
    const auto fresh = CorpusReader::OpenFolder(folder);
    LOCKSTEP_CHECK(fresh.ok(), "{}", fresh.status());
    StepReader data = OpenSteps(*fresh, *schedule);
    std::vector<std::vector<int32_t>> windows(kStepWindows / 8, std::vector<int32_t>(4097));
    b.Compare({.name = "read an eighth, 4096 tokens " + std::to_string(threads) + "T",
               .unit = "Mtoken/s",
               .work = static_cast<double>(kStepWindows / 8 * 4097) * kMega,
               .ours =
                   [&] {
                     const absl::StatusOr<Step> step = data.Next();
                     LOCKSTEP_CHECK(step.ok(), "{}", step.status());
                     pool.ParallelFor(kStepWindows / 8, 1, [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         LOCKSTEP_CHECK(data.ReadWindow(*step, 8 * i, windows[i]).ok());
                       }
                     });
                   },
               .peer = "",
               .peer_call = nullptr});
  }
}

}  // namespace
}  // namespace lockstep::engine
