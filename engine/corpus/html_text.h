// SPDX-License-Identifier: Apache-2.0
//
// The text of an HTML page: tags stripped, not a browser. It never fails, takes time linear in the
// page, and does the same everywhere. The rules are written down in docs/corpus_format.md.
#ifndef LOCKSTEP_ENGINE_CORPUS_HTML_TEXT_H_
#define LOCKSTEP_ENGINE_CORPUS_HTML_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::engine {

// `html` is valid UTF-8, and so is the result.
std::string HtmlToText(absl::string_view html);

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_CORPUS_HTML_TEXT_H_
