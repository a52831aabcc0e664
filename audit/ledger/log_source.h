// SPDX-License-Identifier: Apache-2.0
//
// A log to be read from its first entry to its last: a bundle (bundle.h), or a directory of tiles.
// A source hands over bytes; verify_log.h finds out what they are worth.
#ifndef LOCKSTEP_AUDIT_LEDGER_LOG_SOURCE_H_
#define LOCKSTEP_AUDIT_LEDGER_LOG_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::audit {

class LogSource {
 public:
  virtual ~LogSource() = default;

  // The log's signed head, a note.
  virtual const std::string& checkpoint() const = 0;
  // The log's key as the source itself gives it (NoteKey::ToText); empty if it does not. A
  // stranger's word.
  virtual const std::string& named_key() const = 0;
  // The next entry; none after as many as the checkpoint says. DataLoss if they are not there, or
  // if something comes after them.
  virtual absl::StatusOr<std::optional<std::string>> Next() = 0;
};

// A directory as docs/log.md lays it out: `checkpoint`, and `tile/entries/`. Only files beneath it
// are opened.
absl::StatusOr<std::unique_ptr<LogSource>> OpenTileDirectory(const std::string& directory);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_LEDGER_LOG_SOURCE_H_
