// SPDX-License-Identifier: Apache-2.0
//
// See fields.h.

#include "coordinator/api/fields.h"

#include "base/encoding.h"

namespace lockstep::coordinator {

void WriteDispute(const DisputeSummary& dispute, JsonWriter& json) {
  json.BeginObject();
  WriteFields(dispute, json);
  json.Field("envelope", dispute.envelope);
  json.ArrayField("evidence");
  for (const auto& evidence : dispute.evidence) {
    json.BeginObject();
    if (const auto* entry = std::get_if<audit::EntryRef>(&evidence)) {
      json.Field("log_index", entry->log_index);
      json.Field("leaf_hash", entry->leaf_hash);
    } else {
      json.Field("envelope", std::get<std::string>(evidence));
    }
    json.EndObject();
  }
  json.EndArray();
  const auto record = [&](absl::string_view name, const std::optional<audit::StepRecord>& record) {
    if (record) json.Field(name, Base64Encode(AsBytes(EncodeStepRecord(*record))));
  };
  record("published_record", dispute.published);
  record("computed_record", dispute.computed);
  if (dispute.difference) WriteDifference("first_difference", *dispute.difference, json);
  json.EndObject();
}

void WriteRun(const RunSummary& run, JsonWriter& json) {
  json.Field("run", run.run);
  json.Field("name", run.name);
  json.Field("trainer_key", KeyText(run.trainer_key));
  json.Key("trainer_operator");
  run.trainer_operator ? json.Value(KeyText(*run.trainer_operator)) : json.Null();
  json.ObjectField("quorum");
  json.Field("operators", run.quorum.operators);
  json.Field("backends", run.quorum.backends);
  json.Field("openings", run.quorum.openings);
  json.EndObject();
  json.Field("steps", run.steps);
  json.Field("steps_planned", run.steps_planned);
  json.Field("first_step", run.first_step);
  json.Field("chain", run.chain);
  json.ObjectField("counts");
  for (int state = 0; state < audit::kStepStates; ++state) {
    json.Field(audit::StepStateName(static_cast<audit::StepState>(state)),
               run.counts[static_cast<size_t>(state)]);
  }
  json.EndObject();
  json.Field("log_index", run.log_index);
  json.Field("registered_ms", TimeOrNull(run.registered_ms));
  json.Field("parent", run.parent);
  json.Field("tokens", run.tokens);
  json.Key("last_step");
  if (run.last) {
    json.BeginObject();
    json.Field("step", run.last->step);
    json.Field("loss", run.last->loss);
    json.Field("gradient_norm", run.last->gradient_norm);
    json.Field("learning_rate", run.last->learning_rate);
    json.Field("outcome", static_cast<int>(run.last->outcome));
    json.EndObject();
  } else {
    json.Null();
  }
  json.Field("operators", run.operators);
  json.ArrayField("backends");
  for (const auto& [backend, matches] : run.backends) {
    json.BeginObject();
    json.Field("backend", backend);
    json.Field("matches", matches);
    json.EndObject();
  }
  json.EndArray();
  uint64_t attestations = 0;
  for (const uint64_t count : run.attestations.by_worth) attestations += count;
  json.Field("attestations", attestations);
  json.Field("matches", run.attestations.Of(Worth::kCounts));
  json.Field("mismatches", run.attestations.Of(Worth::kMismatch));
  json.Field("confirmed_per_hour", run.confirmed_last_hour);
  json.Field("records_per_hour", run.records_last_hour);
  json.Field("last_record_ms", TimeOrNull(run.last_record_ms));
  json.Field("disputes", run.disputes);
}

}  // namespace lockstep::coordinator
