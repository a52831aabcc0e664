// SPDX-License-Identifier: Apache-2.0
//
// How far an ingest has come: written after each part, read by the run that goes on. Nothing else
// needs to survive a kill. Format: docs/corpus_format.md.
#ifndef LOCKSTEP_ENGINE_CORPUS_INGEST_STATE_H_
#define LOCKSTEP_ENGINE_CORPUS_INGEST_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/sha256.h"
#include "engine/corpus/document_store.h"
#include "engine/corpus/ingest_report.h"
#include "engine/corpus/record_reader.h"

namespace lockstep::engine {

inline constexpr char kProgressFile[] = "progress.json";

struct IngestState {
  Digest config;         // of what the run was asked for
  Digest input_listing;  // and of the files it found
  Digest input_times;    // InputFiles::times: what was read is not read again
  InputPosition position;
  // Over the files before position.file: from 32 zero bytes, SHA-256(so far, SHA-256(name), u64
  // size, file's digest).
  Digest input_digest;
  IngestReport report;  // of everything before position
  std::vector<StorePart> parts;

  void AddInput(absl::string_view name, int64_t bytes, const Digest& file_digest);
};

std::string EncodeIngestState(const IngestState& state);
// DataLoss for what is no such state.
absl::StatusOr<IngestState> ParseIngestState(absl::string_view bytes);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_INGEST_STATE_H_
