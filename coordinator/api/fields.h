// SPDX-License-Identifier: Apache-2.0
//
// The fields of the API's objects, in their order, for JsonWriter and CsvWriter alike. What each
// means: docs/api.md. WriteRow writes what a list has of an item.

#ifndef LOCKSTEP_COORDINATOR_API_FIELDS_H_
#define LOCKSTEP_COORDINATOR_API_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "audit/evidence/dispute.h"
#include "audit/evidence/quorum.h"
#include "coordinator/core/json_writer.h"
#include "coordinator/store/rows.h"
#include "coordinator/views/evidence.h"
#include "coordinator/views/keys.h"
#include "coordinator/views/leases.h"
#include "coordinator/views/runs.h"

namespace lockstep::coordinator {

inline std::optional<int64_t> TimeOrNull(int64_t ms) {
  return ms == kTimeUnknown ? std::nullopt : std::optional<int64_t>(ms);
}
inline std::optional<uint64_t> IndexOrNull(uint64_t log_index) {
  return log_index == audit::kNeverEnded ? std::nullopt : std::optional<uint64_t>(log_index);
}
inline Digest KeyText(const Ed25519PublicKey& key) { return Digest{key.bytes}; }
inline absl::string_view VerdictText(bool match) { return match ? "match" : "mismatch"; }

inline void WriteDifference(absl::string_view name, const audit::Difference& difference,
                            JsonWriter& json) {
  json.ObjectField(name);
  json.Field("field", difference.field);
  json.Field("expected", difference.expected);
  json.Field("found", difference.found);
  json.Field("place", difference.place);
  json.EndObject();
}

// `attestations`: a step's page has a list by that name.
template <typename Writer>
void WriteFields(const StepSummary& step, bool attestations, Writer& out) {
  const audit::StepRecord& record = step.record;
  out.Field("step", record.step);
  out.Field("state", audit::StepStateName(step.state));
  out.Field("outcome", static_cast<int>(record.outcome));
  out.Field("loss", record.loss);
  out.Field("z_loss", record.z_loss);
  out.Field("gradient_norm", record.gradient_norm);
  out.Field("learning_rate", record.learning_rate);
  out.Field("tokens", record.tokens);
  out.Field("tokens_before", record.tokens_before);
  out.Field("updates", record.updates);
  out.Field("matches", step.tally.matches);
  out.Field("operators", step.tally.operators);
  out.Field("backends", step.tally.backends);
  out.Field("awaiting_openings", step.tally.awaiting_openings);
  out.Field("mismatches", step.tally.mismatches);
  out.Field("voided", step.tally.voided);
  if (attestations) out.Field("attestations", step.attestations);
  out.Field("second_history", step.tally.second_history);
  out.Field("log_index", step.log_index);
  out.Field("received_ms", TimeOrNull(step.received_ms));
}

// `details`: nullptr in lists.
template <typename Writer>
void WriteFields(const AttestationSummary& attestation, const AttestationDetails* details,
                 Writer& out) {
  const auto detail = [&](auto member) {
    using Value = std::decay_t<decltype(member(*details))>;
    return details == nullptr ? std::nullopt : std::optional<Value>(member(*details));
  };
  out.Field("log_index", attestation.log_index);
  out.Field("run", attestation.run);
  out.Field("step", attestation.step);
  out.Field("worker_key", KeyText(attestation.worker_key));
  out.Field("operator_key", KeyText(attestation.operator_key));
  out.Field("operator", attestation.operator_name);
  out.Field("hardware", attestation.hardware);
  out.Field("backend", attestation.backend);
  out.Field("verdict", VerdictText(attestation.match));
  out.Field("counts", attestation.worth == Worth::kCounts);
  out.Field("why_not", WhyNotCounted(attestation.worth));
  out.Field("received_ms", TimeOrNull(attestation.received_ms));
  out.Field("openings_given", attestation.openings_given);
  out.Field("openings_needed", attestation.openings_needed);
  if constexpr (std::is_same_v<Writer, JsonWriter>) {
    using Details = AttestationDetails;
    out.Field("leaf_hash", detail([](const Details& d) { return d.leaf_hash; }));
    out.Field("isa", detail([](const Details& d) { return d.said.backend.isa; }));
    out.Field("cpu", detail([](const Details& d) { return d.said.backend.cpu; }));
    out.Field("threads", detail([](const Details& d) { return d.said.backend.threads; }));
    if (details != nullptr) {
      const audit::AttestingEngine& engine = details->said.engine;
      out.ObjectField("engine");
      out.Field("name", engine.name);
      out.Field("version", engine.version);
      out.Field("build", engine.build);
      out.Field("numerics", engine.numerics);
      out.EndObject();
    } else {
      out.Field("engine", std::nullopt);
    }
    out.Field("replayed_at", detail([](const Details& d) {
                return absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", d.said.replayed_at,
                                        absl::UTCTimeZone());
              }));
    out.Field("openings", detail([](const Details& d) { return d.openings; }));
    out.Field("envelope", detail([](const Details& d) { return d.envelope; }));
    if (attestation.difference) WriteDifference("difference", *attestation.difference, out);
  }
}

template <typename Writer>
void WriteStanding(const KeyStanding& standing, Writer& out) {
  out.ObjectField("credit");
  out.Field("valid", standing.credit.Of(Worth::kCounts));
  out.Field("pending", standing.credit.Of(Worth::kAwaiting));
  out.Field("rejected", standing.Rejected());
  out.Field("mismatches", standing.credit.Of(Worth::kMismatch));
  out.EndObject();
  out.Field("own_run", standing.credit.Of(Worth::kOwnRun));
  if constexpr (std::is_same_v<Writer, JsonWriter>) {
    out.ArrayField("rejected_why");
    for (const auto& [reason, count] : standing.rejected_why) {
      out.BeginObject();
      out.Field("reason", reason);
      out.Field("count", count);
      out.EndObject();
    }
    out.EndArray();
  }
  out.Field("backends", standing.backends);
  out.Field("last_seen_ms", TimeOrNull(standing.last_seen_ms));
}

// With what the store knows besides.
struct OperatorRow {
  OperatorSummary summary;
  std::optional<std::string> revoked_reason;
};
template <typename Writer>
void WriteFields(const OperatorRow& row, Writer& out) {
  const OperatorSummary& who = row.summary;
  out.Field("key", KeyText(who.key));
  out.Field("name", who.name);
  out.Field("contact", who.contact);
  out.Field("revoked", who.until != audit::kNeverEnded);
  out.Field("revoked_log_index", IndexOrNull(who.until));
  out.Field("revoked_reason", row.revoked_reason);
  out.Field("log_index", who.since);
  out.Field("received_ms", TimeOrNull(who.registered_ms));
  out.Field("worker_keys", who.worker_keys);
  WriteStanding(who.standing, out);
}

struct WorkerRow {
  WorkerSummary summary;
  KeyTrust trust;
};
template <typename Writer>
void WriteFields(const WorkerRow& row, Writer& out) {
  const WorkerSummary& worker = row.summary;
  out.Field("key", KeyText(worker.key));
  out.Field("operator_key", KeyText(worker.operator_key));
  out.Field("operator", worker.operator_name);
  out.Field("hardware", worker.hardware);
  out.Field("ended", worker.ended);
  out.Field("ended_log_index", IndexOrNull(worker.until));
  out.Field("log_index", worker.since);
  out.Field("received_ms", TimeOrNull(worker.registered_ms));
  WriteStanding(worker.standing, out);
  out.ObjectField("trust");
  out.Field("valid_in_a_row", row.trust.valid_in_a_row);
  out.Field("valid", row.trust.valid);
  out.Field("invalid", row.trust.invalid);
  out.Field("expired", row.trust.expired);
  out.EndObject();
}

template <typename Writer>
void WriteFields(const DisputeSummary& dispute, Writer& out) {
  out.Field("log_index", dispute.log_index);
  out.Field("run", dispute.run);
  out.Field("step", dispute.step);
  out.Field("reason", audit::DisputeReasonName(dispute.reason));
  out.Field("received_ms", dispute.received_ms);
  out.Field("state", audit::StepStateName(dispute.state));
}

template <typename Writer>
void WriteFields(const LeaseSummary& lease, Writer& out) {
  out.Field("run", lease.run);
  out.Field("state", LeaseStateName(lease.state));
  out.Field("first_step", lease.first_step);
  out.Field("end_step", lease.end_step);
  out.Field("worker_key", KeyText(lease.worker_key));
  out.Field("operator_key", KeyText(lease.operator_key));
  out.Field("operator", lease.operator_name);
  out.Field("hardware", lease.hardware);
  out.Field("backends", lease.backends);
  out.Field("granted_ms", lease.granted_ms);
  out.Field("ended_ms", lease.state == LeaseState::kLive ? std::nullopt
                                                         : std::optional<int64_t>(lease.ended_ms));
  out.Field("detail", lease.detail);
}

template <typename Writer>
void WriteFields(const EntryRow& entry, Writer& out) {
  out.Field("index", entry.log_index);
  out.Field("kind", entry.kind);
  out.Field("run", entry.run);
  out.Field("step", entry.step);
  out.Field("leaf_hash", entry.leaf_hash);
  out.Field("bytes", entry.envelope.size());
  out.Field("received_ms", entry.received_unix_ms);
}

// Rows of lists, and of exports.
template <typename Writer>
void WriteRow(const StepSummary& row, Writer& out) {
  WriteFields(row, true, out);
}
template <typename Writer>
void WriteRow(const AttestationSummary& row, Writer& out) {
  WriteFields(row, nullptr, out);
}
template <typename Writer>
void WriteRow(const OperatorRow& row, Writer& out) {
  WriteFields(row, out);
}
template <typename Writer>
void WriteRow(const WorkerRow& row, Writer& out) {
  WriteFields(row, out);
}
template <typename Writer>
void WriteRow(const DisputeSummary& row, Writer& out) {
  WriteFields(row, out);
}
template <typename Writer>
void WriteRow(const LeaseSummary& row, Writer& out) {
  WriteFields(row, out);
}
template <typename Writer>
void WriteRow(const EntryRow& row, Writer& out) {
  WriteFields(row, out);
}

// A dispute with its evidence, as in lists and on pages; a run.
void WriteDispute(const DisputeSummary& dispute, JsonWriter& json);
void WriteRun(const RunSummary& run, JsonWriter& json);

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_API_FIELDS_H_
