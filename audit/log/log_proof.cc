// SPDX-License-Identifier: Apache-2.0
//
// Proofs as lines of text.
#include "audit/log/log_proof.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/encoding.h"
#include "base/merkle.h"
#include "base/status.h"

namespace lockstep::audit {
namespace {

constexpr absl::string_view kHead = "c2sp.org/tlog-proof@v1";
constexpr size_t kHashesMax = 64;

absl::Status Error(absl::string_view message) {
  return absl::DataLossError(absl::StrCat("log proof: ", message));
}

// The next line, without its end; false if there is no whole one.
bool TakeLine(absl::string_view* rest, absl::string_view* line) {
  const size_t end = rest->find('\n');
  if (end == rest->npos) return false;
  *line = rest->substr(0, end);
  rest->remove_prefix(end + 1);
  return true;
}

// Standard base64, padded.
bool Decode(absl::string_view text, std::string* bytes) {
  absl::StatusOr<std::string> decoded = Base64Decode(text);
  if (!decoded.ok() || Base64Encode(AsBytes(*decoded)) != text) return false;
  *bytes = *std::move(decoded);
  return true;
}

}  // namespace

std::string EncodeLogProof(const LogProof& proof) {
  std::string text = absl::StrCat(kHead, "\n");
  if (proof.extra) absl::StrAppend(&text, "extra ", Base64Encode(AsBytes(*proof.extra)), "\n");
  absl::StrAppend(&text, "index ", proof.index, "\n");
  for (const Digest& hash : proof.hashes) absl::StrAppend(&text, Base64Encode(hash.bytes), "\n");
  absl::StrAppend(&text, "\n", proof.checkpoint);
  return text;
}

absl::StatusOr<LogProof> ParseLogProof(absl::string_view text) {
  if (text.size() > kLogProofBytesMax) {
    return Error(absl::StrCat("expected at most ", kLogProofBytesMax, " bytes"));
  }
  LogProof proof;
  absl::string_view rest = text;
  absl::string_view line;
  if (!TakeLine(&rest, &line) || line != kHead) return Error(absl::StrCat("expected ", kHead));
  bool more = TakeLine(&rest, &line);
  if (more && absl::ConsumePrefix(&line, "extra ")) {
    if (!Decode(line, &proof.extra.emplace())) return Error("expected base64 as extra data");
    more = TakeLine(&rest, &line);
  }
  if (!more || !absl::ConsumePrefix(&line, "index ") || !absl::SimpleAtoi(line, &proof.index) ||
      absl::StrCat(proof.index) != line) {
    return Error("expected an index in decimal digits");
  }
  while (true) {
    if (!TakeLine(&rest, &line)) return Error("expected hashes, an empty line and a checkpoint");
    if (line.empty()) break;
    std::string bytes;
    if (proof.hashes.size() == kHashesMax || !Decode(line, &bytes) || bytes.size() != 32) {
      return Error(absl::StrCat("expected at most ", kHashesMax, " hashes as base64"));
    }
    proof.hashes.push_back(*Digest::FromBytes(AsBytes(bytes)));
  }
  proof.checkpoint = std::string(rest);
  return proof;
}

absl::StatusOr<LogCheckpoint> VerifyLogProof(const LogProof& proof, const Digest& leaf_hash,
                                             const NoteKey& key) {
  LOCKSTEP_ASSIGN_OR_RETURN(LogCheckpoint checkpoint, OpenLogCheckpoint(proof.checkpoint, key),
                            "log proof");
  LOCKSTEP_RETURN_IF_ERROR(
      VerifyMerkleInclusion(leaf_hash, proof.index, checkpoint.size, proof.hashes, checkpoint.root),
      "log proof");
  return checkpoint;
}

}  // namespace lockstep::audit
