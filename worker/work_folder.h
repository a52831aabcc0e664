// SPDX-License-Identifier: Apache-2.0
//
// The folder that a lease is replayed in: a run folder (engine/run/run_folder.h) made from what the
// coordinator and its mirrors gave, for one run, kept from lease to lease.
//
//   runs/<run id>/run.json                 from the registration
//   runs/<run id>/checkpoints/<step>       links into the artifact cache, or a state of our own
//   runs/<run id>/corpus                   what was fetched of the corpus
//   runs/<run id>/spill                    while a replay runs
//
// All of it can be fetched or computed again.
#ifndef LOCKSTEP_WORKER_WORK_FOLDER_H_
#define LOCKSTEP_WORKER_WORK_FOLDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/data/open_corpus.h"
#include "engine/run/run_folder.h"
#include "engine/run/run_inputs.h"
#include "net/artifact_cache.h"
#include "net/http_client.h"
#include "worker/lease.h"

namespace lockstep::worker {

class WorkFolder {
 public:
  // Makes what is missing under `root`. Of a folder that was cut off in the making, or whose
  // run.json is damaged, nothing is kept.
  static absl::StatusOr<WorkFolder> Open(const std::string& root, const WorkLease& lease);

  const engine::RunFolder& run() const { return run_; }
  std::string spill_folder() const { return run_.path() + "/spill"; }

  // Where the corpus is: the mirrors, by digest, over a folder here.
  engine::CorpusLocation Corpus(const std::vector<std::string>& mirrors,
                                const net::HttpOptions& http) const;

  // The latest state to reach step `next` from, at or after the lease's own start: one that was
  // saved here, or the lease's, fetched through the cache from its mirrors and these. Errors of
  // ArtifactCache::Get and FetchArtifact.
  absl::StatusOr<engine::StartPoint> FetchStart(const WorkLease& lease, uint64_t next,
                                                net::ArtifactCache& cache, net::HttpClient& client,
                                                const std::vector<std::string>& mirrors) const;

  // Drops all states but that before `keep`.
  absl::Status DropStates(uint64_t keep) const;

  // Drops the folders of all runs under `root` but this.
  absl::Status DropOtherRuns(const std::string& root) const;

 private:
  explicit WorkFolder(engine::RunFolder run) : run_(std::move(run)) {}
  engine::RunFolder run_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_WORK_FOLDER_H_
