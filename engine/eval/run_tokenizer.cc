// SPDX-License-Identifier: Apache-2.0
//
// The file against the manifest.
#include "engine/eval/run_tokenizer.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace lockstep::engine {

absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadRunTokenizer(const audit::RunManifest& run,
                                                                  const std::string& path) {
  if (path.empty()) {
    return absl::NotFoundError(
        absl::StrCat("expected the tokenizer ", run.tokenizer.ToHex(),
                     " of the run; the run folder's places.json names no file: --tokenizer does"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<const Tokenizer> tokenizer, Tokenizer::Load(path));
  if (tokenizer->digest() != run.tokenizer) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": expected the run's tokenizer ",
                                                      run.tokenizer.ToHex(), "; found ",
                                                      tokenizer->digest().ToHex()));
  }
  if (tokenizer->vocab_size() > run.model.vocab) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": expected at most the ", run.model.vocab,
                     " tokens of the run's model; found ", tokenizer->vocab_size()));
  }
  return tokenizer;
}

}  // namespace lockstep::engine
