// SPDX-License-Identifier: Apache-2.0
//
// Run registrations as canonical JSON; the manifest stands in it as the object that it is.
#include "audit/evidence/run_registration.h"

#include "absl/strings/str_cat.h"
#include "audit/evidence/payload_fields.h"
#include "audit/step_record.h"
#include "base/canonical_json.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {
namespace {

Genesis ReadGenesis(JsonReader& reader) {
  JsonReader genesis(reader.Object("genesis"), absl::StrCat(reader.where(), ".genesis"));
  const Genesis result = {.parameters = genesis.Sha256Digest("parameters"),
                          .first_moment = genesis.Sha256Digest("firstMoment"),
                          .second_moment = genesis.Sha256Digest("secondMoment"),
                          .cursor = genesis.Sha256Digest("cursor")};
  reader.Join(genesis.Finish());
  return result;
}

Quorum ReadQuorum(JsonReader& reader) {
  JsonReader quorum(reader.Object("quorum"), absl::StrCat(reader.where(), ".quorum"));
  const Quorum result = {
      .operators = static_cast<int>(quorum.Integer("operators", 1, kQuorumOperatorsMax)),
      .backends = static_cast<int>(quorum.Integer("backends", 1, kQuorumBackendsMax)),
      .openings = static_cast<int>(quorum.Integer("openings", 0, kQuorumOpeningsMax))};
  reader.Join(quorum.Finish());
  return result;
}

RunManifest ReadManifest(JsonReader& reader) {
  const nlohmann::json& json = reader.Object("manifest");
  if (!reader.ok()) return {};
  // A part of a canonical text has a canonical text.
  const absl::StatusOr<std::string> text = CanonicalJson(json);
  absl::StatusOr<RunManifest> manifest =
      text.ok() ? ParseRunManifest(*text) : absl::StatusOr<RunManifest>(text.status());
  if (manifest.ok()) return *std::move(manifest);
  reader.Fail("manifest", "a run manifest", manifest.status().message());
  return {};
}

}  // namespace

Digest RunRegistration::first_chain() const {
  if (manifest.parent.has_value()) return manifest.parent->chain;
  const Genesis g = genesis.value_or(Genesis());
  return GenesisChain(RunIdOf(manifest), g.parameters, g.first_moment, g.second_moment, g.cursor);
}

uint64_t RunRegistration::first_step() const {
  return manifest.parent.has_value() ? static_cast<uint64_t>(manifest.parent->step) : 0;
}

std::string EncodeRunRegistration(const RunRegistration& registration) {
  nlohmann::json json = {
      {"manifest", nlohmann::json::parse(EncodeRunManifest(registration.manifest))},
      {"quorum",
       {{"backends", registration.quorum.backends},
        {"openings", registration.quorum.openings},
        {"operators", registration.quorum.operators}}},
      {"trainerKey", registration.trainer_key.ToHex()}};
  if (registration.genesis.has_value()) {
    json["genesis"] = {{"cursor", registration.genesis->cursor.ToHex()},
                       {"firstMoment", registration.genesis->first_moment.ToHex()},
                       {"parameters", registration.genesis->parameters.ToHex()},
                       {"secondMoment", registration.genesis->second_moment.ToHex()}};
  }
  return EncodePayload(json);
}

absl::StatusOr<RunRegistration> ParseRunRegistration(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(text),
                            "run registration");
  JsonReader reader(json, "run registration");
  RunRegistration registration;
  registration.manifest = ReadManifest(reader);
  registration.trainer_key = ReadPublicKey(reader, "trainerKey");
  registration.quorum = ReadQuorum(reader);
  if (!registration.manifest.parent.has_value()) registration.genesis = ReadGenesis(reader);
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return registration;
}

}  // namespace lockstep::audit
