// SPDX-License-Identifier: Apache-2.0
//
// Logs as people name them on the command line: a bundle, a folder with tiles, a coordinator's
// address.
#ifndef LOCKSTEP_CLI_LOG_SOURCE_H_
#define LOCKSTEP_CLI_LOG_SOURCE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "audit/ledger/log_source.h"
#include "audit/log/signed_note.h"
#include "net/http_client.h"

namespace lockstep::cli {

// A key's text, or the name of a file that holds it. InvalidArgument for what is neither.
absl::StatusOr<audit::NoteKey> ParseLogKey(const std::string& text);

// The folder with `checkpoint` and tiles that a path means: itself, or `public` in it, as a
// coordinator has it; nullopt if the path is no folder.
std::optional<std::string> TileFolder(const std::string& path);

// A bundle, or such a folder.
absl::StatusOr<std::unique_ptr<audit::LogSource>> OpenLog(const std::string& path);

// "http://..." or "https://...".
bool IsAddress(const std::string& text);

// The log of a coordinator or of a mirror of its tiles, as it is now. `address` has no slash at its
// end; `client` outlives the source. Tiles that the signed head speaks of are fetched as entries
// are asked for. Errors of net/http_client.h, and DataLoss as those of a folder.
absl::StatusOr<std::unique_ptr<audit::LogSource>> OpenRemoteLog(net::HttpClient& client,
                                                                const std::string& address);

// The same log, which ends in DataLoss unless its entries are those that its head is signed for by
// `key`; `passed` hears of each entry.
absl::StatusOr<std::unique_ptr<audit::LogSource>> CheckedLog(
    std::unique_ptr<audit::LogSource> source, const audit::NoteKey& key,
    std::function<void()> passed);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_LOG_SOURCE_H_
