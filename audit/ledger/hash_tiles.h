// SPDX-License-Identifier: Apache-2.0
//
// Tiles of hashes beside a log's entries: nobody needs them who has all entries, but monitors and
// those who ask for proofs do, and a coordinator that serves others than its entries have gives
// proofs that do not hold.
#ifndef LOCKSTEP_AUDIT_LEDGER_HASH_TILES_H_
#define LOCKSTEP_AUDIT_LEDGER_HASH_TILES_H_

#include <memory>
#include <string>
#include <vector>

#include "audit/ledger/log_source.h"
#include "base/merkle.h"

namespace lockstep::audit {

// The same source, which puts the leaf hash of each entry that goes by into `tree`.
std::unique_ptr<LogSource> HashingSource(std::unique_ptr<LogSource> source, MerkleTree* tree);

// Holds every tile of hashes that a log of tree.size() entries has against the tree. For each one
// that is missing, or has other hashes, a sentence that names its file. None if the directory has
// no tiles of hashes at all: a copy may do without.
std::vector<std::string> CheckHashTiles(const std::string& directory, const MerkleTree& tree);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LEDGER_HASH_TILES_H_
