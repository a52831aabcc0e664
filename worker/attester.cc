// SPDX-License-Identifier: Apache-2.0
//
// Attestations of replayed steps.
#include "worker/attester.h"

#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "audit/evidence/log_entry.h"
#include "audit/evidence/opening.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::worker {
namespace {

constexpr size_t kCpuBytesMax = 128;

// For people; printable ASCII of /proc/cpuinfo.
std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!absl::StartsWith(line, "model name")) continue;
    std::string name;
    for (const char c : line.substr(line.find(':') + 1)) {
      if (name.size() < kCpuBytesMax && c >= ' ' && c <= '~') name += c;
    }
    const absl::string_view text = absl::StripLeadingAsciiWhitespace(name);
    if (!text.empty()) return std::string(text);
  }
  return "unknown";
}

}  // namespace

std::string BackendClass(kernels::Isa isa) {
  switch (isa) {
    case kernels::Isa::kReference:
      return "reference";
    case kernels::Isa::kAvx2:
      return "x86-avx2";
    case kernels::Isa::kAvx512:
      return "x86-avx512";
    case kernels::Isa::kNeon:
      return "arm-neon";
  }
  return "reference";
}

absl::StatusOr<Witness> ThisWitness(int threads) {
  LOCKSTEP_ASSIGN_OR_RETURN(const kernels::Isa isa, kernels::ChooseIsa());
  LOCKSTEP_ASSIGN_OR_RETURN(const Digest build, FileDigest("/proc/self/exe", [](int64_t) {}));
  return Witness{.engine = {.name = "lockstep",
                            .version = LOCKSTEP_VERSION,
                            .build = build,
                            .numerics = audit::kNumericsVersion},
                 .backend = {.backend_class = BackendClass(isa),
                             .isa = std::string(kernels::IsaName(isa)),
                             .cpu = CpuName(),
                             .threads = threads}};
}

absl::StatusOr<OutboxItem> MakeAttestation(const WorkLease& lease, const std::string& origin,
                                           const Witness& witness, const Ed25519PrivateKey& key,
                                           const engine::StepResult& result,
                                           const audit::Difference* difference,
                                           absl::Time replayed_at) {
  const audit::StepRecord& published = lease.records[result.record.step - lease.start_step];
  audit::Attestation attestation = {
      .run_id = lease.run_id,
      .step = result.record.step,
      .record = Sha256(AsBytes(audit::EncodeStepRecord(published))),
      .from_chain = result.record.previous_chain,
      .computed_chain = result.chain,
      .roots = audit::RootsOf(result.record),
      .verdict = difference == nullptr ? audit::Verdict::kMatch : audit::Verdict::kMismatch,
      .lease_id = lease.id_hex(),
      .nonce = lease.nonce,
      .openings_digest = audit::OpeningsDigest(lease.nonce, key.public_key(), result.transcript),
      .engine = witness.engine,
      .backend = witness.backend,
      .replayed_at = absl::FromUnixSeconds(absl::ToUnixSeconds(replayed_at)),
      .computed_record = std::nullopt,
      .difference = {}};
  if (difference != nullptr) {
    attestation.computed_record = result.record;
    attestation.difference = *difference;
  }
  const Ed25519PrivateKey* const signers[] = {&key};
  OutboxItem item = {.origin = origin,
                     .run_id = lease.run_id,
                     .step = result.record.step,
                     .lease_id = lease.id,
                     .envelope = {},
                     .trainer_signed = lease.trainer_signed[result.record.step - lease.start_step],
                     .nonce = lease.nonce,
                     .openings = lease.registration.quorum.openings,
                     .leaves = {}};
  // Of a mismatch nothing is opened.
  if (difference == nullptr) item.leaves = result.transcript;
  LOCKSTEP_ASSIGN_OR_RETURN(item.envelope, audit::MakeLogEntry(attestation, signers));
  return item;
}

}  // namespace lockstep::worker
