// SPDX-License-Identifier: Apache-2.0
//
// The statement's text, and the rules that hold within one attestation.
#include "audit/evidence/attestation.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "audit/evidence/payload_fields.h"
#include "base/canonical_json.h"
#include "base/encoding.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {
namespace {

constexpr char kStatementType[] = "https://in-toto.io/Statement/v1";
constexpr size_t kTextBytesMax = 256;
constexpr size_t kLeaseIdBytesMax = 64;
constexpr int64_t kThreadsMax = 1 << 20;
constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%SZ";

std::string SubjectName(uint64_t step) { return absl::StrCat("step-", step, ".record"); }

std::string TimeText(absl::Time time) {
  return absl::FormatTime(kTimeFormat, time, absl::UTCTimeZone());
}

absl::Time ReadTime(JsonReader& reader, const char* key) {
  const std::string text = reader.String(key, 32);
  absl::Time time;
  std::string error;
  // Formatted again, it must be the text: four digits of a year, and no other way to write it.
  if (text.size() == 20 && absl::ParseTime(kTimeFormat, text, absl::UTCTimeZone(), &time, &error) &&
      TimeText(time) == text) {
    return time;
  }
  if (reader.ok()) {
    reader.Fail(key, "a time as 2006-01-02T15:04:05Z", absl::StrCat("\"", text, "\""));
  }
  return absl::UnixEpoch();
}

nlohmann::json WriteRoots(const AttestedRoots& roots) {
  return {{"cursor", roots.cursor.ToHex()},
          {"firstMoment", roots.first_moment.ToHex()},
          {"gradient", roots.gradient.ToHex()},
          {"parameters", roots.parameters.ToHex()},
          {"secondMoment", roots.second_moment.ToHex()},
          {"transcript", roots.transcript.ToHex()},
          {"windows", roots.windows.ToHex()}};
}

AttestedRoots ReadRoots(JsonReader& reader) {
  JsonReader roots(reader.Object("roots"), absl::StrCat(reader.where(), ".roots"));
  const AttestedRoots result = {.parameters = roots.Sha256Digest("parameters"),
                                .first_moment = roots.Sha256Digest("firstMoment"),
                                .second_moment = roots.Sha256Digest("secondMoment"),
                                .gradient = roots.Sha256Digest("gradient"),
                                .windows = roots.Sha256Digest("windows"),
                                .transcript = roots.Sha256Digest("transcript"),
                                .cursor = roots.Sha256Digest("cursor")};
  reader.Join(roots.Finish());
  return result;
}

AttestingEngine ReadEngine(JsonReader& reader) {
  JsonReader engine(reader.Object("engine"), absl::StrCat(reader.where(), ".engine"));
  AttestingEngine result;
  result.name = ReadLine(engine, "name", 64);
  result.version = ReadLine(engine, "version", 64);
  result.build = engine.Sha256Digest("buildDigest");
  result.numerics = ReadLine(engine, "numerics", 64);
  reader.Join(engine.Finish());
  return result;
}

AttestingBackend ReadBackend(JsonReader& reader) {
  JsonReader backend(reader.Object("backend"), absl::StrCat(reader.where(), ".backend"));
  AttestingBackend result;
  result.backend_class = backend.String("class", 32);
  if (backend.ok() && !IsBackendClass(result.backend_class)) {
    backend.Fail("class", "a known class of backends",
                 absl::StrCat("\"", result.backend_class, "\""));
  }
  result.isa = ReadLine(backend, "isa", 64);
  result.cpu = ReadLine(backend, "cpu", kTextBytesMax);
  result.threads = backend.Integer("threads", 1, kThreadsMax);
  reader.Join(backend.Finish());
  return result;
}

Verdict ReadVerdict(JsonReader& reader) {
  const std::string word = reader.String("verdict", 16);
  if (word == VerdictName(Verdict::kMismatch)) return Verdict::kMismatch;
  if (reader.ok() && word != VerdictName(Verdict::kMatch)) {
    reader.Fail("verdict", "\"match\" or \"mismatch\"", absl::StrCat("\"", word, "\""));
  }
  return Verdict::kMatch;
}

std::string ReadLeaseId(JsonReader& reader) {
  std::string id = reader.String("leaseId", kLeaseIdBytesMax);
  const bool plain = std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<uint8_t>(c)) || c == '-' || c == '_';
  });
  if (reader.ok() && (id.empty() || !plain)) {
    reader.Fail("leaseId", "letters, digits, '-' and '_'", "something else");
  }
  return id;
}

Difference ReadDifference(JsonReader& reader, uint64_t step) {
  JsonReader difference(reader.Object("firstDifference"),
                        absl::StrCat(reader.where(), ".firstDifference"));
  Difference result;
  result.step = step;
  result.field = ReadLine(difference, "field", 64);
  result.expected = ReadLine(difference, "expected", kTextBytesMax);
  result.found = ReadLine(difference, "found", kTextBytesMax);
  if (difference.Has("place")) result.place = ReadLine(difference, "place", kTextBytesMax);
  reader.Join(difference.Finish());
  return result;
}

// The parts of a mismatch, and that they say what the rest says.
void ReadMismatch(JsonReader& reader, Attestation* attestation) {
  attestation->difference = ReadDifference(reader, attestation->step);
  const std::string bytes = ReadBase64(reader, "computedRecord", kStepRecordBytes);
  if (!reader.ok()) return;
  const absl::StatusOr<StepRecord> record = DecodeStepRecord(AsBytes(bytes));
  if (!record.ok()) {
    reader.Fail("computedRecord", "a step record", record.status().message());
    return;
  }
  if (record->step != attestation->step || record->previous_chain != attestation->from_chain ||
      RootsOf(*record) != attestation->roots ||
      ChainAfter(*record) != attestation->computed_chain) {
    reader.Fail("computedRecord", "the record of step, fromChain, roots and computedChain",
                "another one");
  }
  attestation->computed_record = *record;
}

void ReadPredicate(JsonReader& reader, Attestation* attestation) {
  JsonReader predicate(reader.Object("predicate"), absl::StrCat(reader.where(), ".predicate"));
  attestation->run_id = predicate.Sha256Digest("runId");
  attestation->step = ReadStep(predicate, "step");
  attestation->from_chain = predicate.Sha256Digest("fromChain");
  attestation->computed_chain = predicate.Sha256Digest("computedChain");
  attestation->roots = ReadRoots(predicate);
  attestation->verdict = ReadVerdict(predicate);
  attestation->lease_id = ReadLeaseId(predicate);
  attestation->nonce = predicate.Sha256Digest("nonce");
  attestation->openings_digest = predicate.Sha256Digest("openingsDigest");
  attestation->engine = ReadEngine(predicate);
  attestation->backend = ReadBackend(predicate);
  attestation->replayed_at = ReadTime(predicate, "replayedAt");
  if (attestation->verdict == Verdict::kMismatch) ReadMismatch(predicate, attestation);
  reader.Join(predicate.Finish());
}

void ReadSubject(JsonReader& reader, Attestation* attestation) {
  const nlohmann::json& subjects = reader.Array("subject", 1);
  if (reader.ok() && subjects.size() != 1) reader.Fail("subject", "one subject", "none");
  if (!reader.ok()) return;
  JsonReader subject(subjects[0], absl::StrCat(reader.where(), ".subject[0]"));
  ReadConstant(subject, "name", SubjectName(attestation->step));
  JsonReader digest(subject.Object("digest"), absl::StrCat(subject.where(), ".digest"));
  attestation->record = digest.Sha256Digest("sha256");
  subject.Join(digest.Finish());
  reader.Join(subject.Finish());
}

}  // namespace

AttestedRoots RootsOf(const StepRecord& record) {
  return {.parameters = record.parameters,
          .first_moment = record.first_moment,
          .second_moment = record.second_moment,
          .gradient = record.gradient,
          .windows = record.windows,
          .transcript = record.transcript,
          .cursor = record.cursor};
}

bool IsBackendClass(absl::string_view name) {
  constexpr absl::string_view kClasses[] = {"reference", "x86-avx2", "x86-avx512", "arm-neon"};
  if (std::find(std::begin(kClasses), std::end(kClasses), name) != std::end(kClasses)) return true;
  constexpr absl::string_view kCuda = "cuda-sm";
  if (!absl::StartsWith(name, kCuda)) return false;
  const absl::string_view digits = name.substr(kCuda.size());
  return (digits.size() == 2 || digits.size() == 3) && digits[0] != '0' &&
         std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit);
}

std::string EncodeAttestation(const Attestation& a) {
  nlohmann::json predicate = {{"backend",
                               {{"class", a.backend.backend_class},
                                {"cpu", a.backend.cpu},
                                {"isa", a.backend.isa},
                                {"threads", a.backend.threads}}},
                              {"computedChain", a.computed_chain.ToHex()},
                              {"engine",
                               {{"buildDigest", a.engine.build.ToHex()},
                                {"name", a.engine.name},
                                {"numerics", a.engine.numerics},
                                {"version", a.engine.version}}},
                              {"fromChain", a.from_chain.ToHex()},
                              {"leaseId", a.lease_id},
                              {"nonce", a.nonce.ToHex()},
                              {"openingsDigest", a.openings_digest.ToHex()},
                              {"replayedAt", TimeText(a.replayed_at)},
                              {"roots", WriteRoots(a.roots)},
                              {"runId", a.run_id.ToHex()},
                              {"step", a.step},
                              {"verdict", std::string(VerdictName(a.verdict))}};
  if (a.computed_record.has_value()) {
    predicate["computedRecord"] = Base64Encode(AsBytes(EncodeStepRecord(*a.computed_record)));
    nlohmann::json& difference = predicate["firstDifference"];
    difference = {{"expected", a.difference.expected},
                  {"field", a.difference.field},
                  {"found", a.difference.found}};
    if (!a.difference.place.empty()) difference["place"] = a.difference.place;
  }
  nlohmann::json subject = {{"digest", {{"sha256", a.record.ToHex()}}},
                            {"name", SubjectName(a.step)}};
  return EncodePayload({{"_type", kStatementType},
                        {"predicate", std::move(predicate)},
                        {"predicateType", kStepAuditPredicateType},
                        {"subject", nlohmann::json::array({std::move(subject)})}});
}

absl::StatusOr<Attestation> ParseAttestation(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(text), "attestation");
  JsonReader reader(json, "attestation");
  ReadConstant(reader, "_type", kStatementType);
  ReadConstant(reader, "predicateType", kStepAuditPredicateType);
  Attestation attestation;
  ReadPredicate(reader, &attestation);
  ReadSubject(reader, &attestation);
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  if (attestation.computed_record.has_value() &&
      Sha256(AsBytes(EncodeStepRecord(*attestation.computed_record))) == attestation.record) {
    return absl::DataLossError(
        "attestation.predicate.computedRecord: expected a record other than the subject; found it");
  }
  return attestation;
}

}  // namespace lockstep::audit
