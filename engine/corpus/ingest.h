// SPDX-License-Identifier: Apache-2.0
//
// `lockstep corpus ingest`: one source's input files into a document store. Streaming, on several
// threads, and resumable: a run that was stopped in any way goes on after its last finished part,
// and what comes out depends on the files and the configuration alone. Memory: some blocks of a
// thread each (a few MiB, more only for longer records), and with deduplication 20 to 40 bytes for
// each document that was kept.
#ifndef LOCKSTEP_ENGINE_CORPUS_INGEST_H_
#define LOCKSTEP_ENGINE_CORPUS_INGEST_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/corpus/corpus_config.h"
#include "engine/corpus/ingest_report.h"
#include "engine/corpus/input_files.h"

namespace lockstep::engine {

struct IngestOptions {
  int threads = 1;
  // A part ends with the first record that brings its text to so many bytes. Decides what comes
  // out.
  int64_t part_bytes = 64'000'000;
  // How much of a file is read at a time. Does not decide what comes out.
  int64_t block_bytes = int64_t{1} << 20;
};

// Each may be empty. Called from any of the threads, and no hook by two of them at a time.
struct IngestHooks {
  // True asks the run to stop soon; it then returns Cancelled, with all finished parts in place.
  std::function<bool()> interrupted = nullptr;
  // Bytes of the input files (as they lie, compressed or not) before where this run began, and read
  // by it.
  std::function<void(int64_t bytes_before, int64_t bytes_read)> progress = nullptr;
  // Something has become durable: "part", "progress", "report" or "manifest". For tests of what a
  // kill leaves behind.
  std::function<void(const char* what)> durable = nullptr;
};

// Reads `inputs` (ListInputFiles of `source`) into `folder`, which is made if need be and belongs
// to this source alone. A folder that is finished already is left as it is and its report returned.
// Errors: FailedPrecondition if the folder holds the work of another configuration or of other
// files, or another run is at work in it; DataLoss for a damaged input file or folder; Cancelled.
absl::StatusOr<IngestReport> IngestSource(const SourceConfig& source, const InputFiles& inputs,
                                          const std::string& folder, const IngestOptions& options,
                                          const IngestHooks& hooks);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_INGEST_H_
