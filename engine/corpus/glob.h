// SPDX-License-Identifier: Apache-2.0
//
// Patterns for paths, as in corpus.toml: `*` stands for any characters within one folder or file
// name, `?` for one character, `[a-z]` or `[!a-z]` for one of a set, `**` as a whole name for any
// number of folders, none among them. Bytes, not characters; case matters. Nothing is read from the
// file system here.
#ifndef LOCKSTEP_ENGINE_CORPUS_GLOB_H_
#define LOCKSTEP_ENGINE_CORPUS_GLOB_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::engine {

// Whether the whole of `path` fits the whole of `pattern`; both have '/' between names. Time at
// most |pattern| * |path|, whatever the pattern.
bool GlobMatches(absl::string_view pattern, absl::string_view path);

// The leading folders of a pattern that hold no special character: where a search may begin ("" for
// the root). A pattern without special characters is its own prefix.
std::string GlobPrefix(absl::string_view pattern);

bool HasGlobCharacters(absl::string_view pattern);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_GLOB_H_
