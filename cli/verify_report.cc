// SPDX-License-Identifier: Apache-2.0
//
// Text and JSON of a report. Strings of strangers are quoted in the text; JSON quotes them itself.
#include "cli/verify_report.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "audit/ledger/key_registry.h"
#include "audit/ledger/run_ledger.h"
#include "cli/output.h"

namespace lockstep::cli {
namespace {

using audit::StepState;

constexpr size_t kRangesShown = 40;
constexpr size_t kDisputedShown = 40;
constexpr StepState kStatesShown[] = {StepState::kConfirmed, StepState::kProvisional,
                                      StepState::kUnaudited, StepState::kDisputed};

absl::string_view FindingName(audit::Finding::Kind kind) {
  switch (kind) {
    case audit::Finding::Kind::kSignature:
      return "signature";
    case audit::Finding::Kind::kRoot:
      return "root";
    case audit::Finding::Kind::kRefusedEntry:
      return "refused-entry";
    case audit::Finding::Kind::kKnownCheckpoint:
      return "known-checkpoint";
    case audit::Finding::Kind::kReceipt:
      return "receipt";
    case audit::Finding::Kind::kTile:
      return "tile";
    case audit::Finding::Kind::kNewer:
      return "newer";
  }
  return "unknown";
}

uint64_t CountOf(const audit::RunReport& run, StepState state) {
  return run.states[static_cast<size_t>(state)];
}

std::string Plural(uint64_t count, absl::string_view one, absl::string_view many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

std::string RangeText(const StepRange& range) {
  return range.first == range.last ? absl::StrCat(range.first)
                                   : absl::StrCat(range.first, "..", range.last);
}

// What an operator said about a run.
struct Witness {
  uint64_t matches = 0;  // not void, whether they have been opened or not
  uint64_t mismatches = 0;
  uint64_t voided = 0;
};

std::map<uint32_t, Witness> WitnessesOf(const audit::Ledger& ledger, const audit::RunLedger& run) {
  std::map<uint32_t, Witness> witnesses;
  for (const audit::AttestationFacts& facts : run.attestations()) {
    Witness& witness = witnesses[ledger.keys().keys()[facts.key_id].operator_id];
    if (facts.standing == audit::Standing::kMatch) ++witness.matches;
    if (facts.standing == audit::Standing::kMismatch) ++witness.mismatches;
    if (facts.standing == audit::Standing::kVoid) ++witness.voided;
  }
  return witnesses;
}

const Ed25519PublicKey& KeyOf(const audit::Ledger& ledger, uint32_t operator_id) {
  const audit::KeyRegistry& keys = ledger.keys();
  return keys.keys()[keys.operators()[operator_id].key_id].key;
}

// The operator in the log that a key of the list belongs to.
std::optional<uint32_t> OperatorOf(const audit::Ledger& ledger, const Ed25519PublicKey& key) {
  const uint32_t id = ledger.keys().Find(key);
  if (id == audit::kNoId) return std::nullopt;
  const audit::KeyFacts& facts = ledger.keys().keys()[id];
  if (facts.role != audit::KeyRole::kOperator) return std::nullopt;
  return facts.operator_id;
}

void AppendLog(const audit::LogReport& report, std::string* out) {
  absl::StrAppendFormat(out, "log %s: %s, root %s\n", Quoted(report.checkpoint.origin),
                        Plural(report.checkpoint.size, "entry", "entries"),
                        report.checkpoint.root.ToHex());
  absl::StrAppend(out, "  key ", Quoted(report.log_key.ToText()), ": ",
                  report.log_key_given
                      ? "the one you gave\n"
                      : "named by the file itself, so it shows that the log is of one piece and "
                        "not whose it is; give --log-key\n");
  absl::StrAppend(out, "  accepted:");
  for (int kind = 0; kind < audit::kEntryKinds; ++kind) {
    absl::StrAppend(out, kind == 0 ? " " : ", ",
                    audit::EntryKindName(static_cast<audit::EntryKind>(kind)), " ",
                    report.entries[static_cast<size_t>(kind)]);
  }
  absl::StrAppend(out, "; refused ", report.refused, "\n");
  absl::StrAppendFormat(out, "  %s, %s, %s\n", Plural(report.operators, "operator", "operators"),
                        Plural(report.worker_keys, "worker key", "worker keys"),
                        Plural(report.ended_keys, "key ended", "keys ended"));
  if (report.promises + report.promises_of_other_logs == 0) return;
  absl::StrAppend(out, "  held to ", Plural(report.promises, "promise", "promises"),
                  " that it made before");
  if (report.promises_of_other_logs > 0) {
    absl::StrAppend(out, "; passed over ", report.promises_of_other_logs, " of other logs");
  }
  absl::StrAppend(out, "\n");
}

void AppendTrusted(const audit::LogReport& report,
                   const std::vector<audit::TrustedOperator>& trusted, std::string* out) {
  absl::StrAppend(out, "operators you listen to:\n");
  for (const audit::TrustedOperator& mine : trusted) {
    const std::optional<uint32_t> id = OperatorOf(*report.ledger, mine.key);
    absl::StrAppend(
        out, "  ", mine.key.ToHex(), " ", Quoted(mine.name), ": ",
        id ? absl::StrCat("registered as ", Quoted(report.ledger->keys().operators()[*id].name))
           : "no operator of this log",
        "\n");
  }
}

void AppendCoverage(const audit::RunReport& run, std::string* out) {
  for (const StepState state : kStatesShown) {
    const uint64_t count = CountOf(run, state);
    if (count == 0) continue;
    absl::StrAppendFormat(out, "  %-11s %d of %d steps, %.1f %%\n", audit::StepStateName(state),
                          count, run.steps,
                          100.0 * static_cast<double>(count) / static_cast<double>(run.steps));
  }
  const std::vector<StepRange> ranges = RangesOf(run);
  for (size_t i = 0; i < std::min(ranges.size(), kRangesShown); ++i) {
    absl::StrAppend(out, i == 0 ? "  steps: " : ", ", RangeText(ranges[i]), " ",
                    audit::StepStateName(ranges[i].state));
  }
  if (ranges.size() > kRangesShown) {
    absl::StrAppend(out, ", and ", ranges.size() - kRangesShown, " more ranges (--json)");
  }
  if (!ranges.empty()) absl::StrAppend(out, "\n");
}

void AppendDisputed(const audit::RunReport& run, std::string* out) {
  for (size_t i = 0; i < std::min(run.disputed.size(), kDisputedShown); ++i) {
    const audit::DisputedStep& step = run.disputed[i];
    absl::StrAppend(out, "  step ", step.step, " is disputed: published ", step.published.ToHex(),
                    "\n");
    for (size_t k = 0; k < step.others.size(); ++k) {
      absl::StrAppend(out, "    entry ", step.evidence[k], " has ", step.others[k].ToHex(), "\n");
    }
    for (const std::string& place : step.places) {
      absl::StrAppend(out, "    a replay first differed in ", Quoted(place), "\n");
    }
  }
  const uint64_t disputed = CountOf(run, StepState::kDisputed);
  const uint64_t shown = std::min(run.disputed.size(), kDisputedShown);
  if (disputed > shown) {
    absl::StrAppend(out, "  and ", disputed - shown, " more disputed steps (--json)\n");
  }
}

void AppendRun(const audit::LogReport& report, const audit::RunReport& run, std::string* out) {
  absl::StrAppend(out, "run ", Quoted(run.name), " ", run.run_id.ToHex(), "\n");
  absl::StrAppend(out, "  trainer's key ", run.trainer_key.ToHex(), "\n");
  if (run.steps == 0) {
    absl::StrAppend(out, "  no step has a record\n");
    return;
  }
  absl::StrAppend(out, "  records of steps ", run.first_step, "..", run.first_step + run.steps - 1,
                  ", one chain, at its end ", run.chain.ToHex(), "\n");
  absl::StrAppend(
      out,
      "  held to: ", Plural(static_cast<uint64_t>(run.quorum.operators), "operator", "operators"),
      ", ", Plural(static_cast<uint64_t>(run.quorum.backends), "backend class", "backend classes"),
      ", ", Plural(static_cast<uint64_t>(run.quorum.openings), "opening", "openings"),
      " an attestation\n");
  AppendCoverage(run, out);
  absl::StrAppend(out, "  ", Plural(run.attestations, "attestation", "attestations"), ": ",
                  Plural(run.matches, "match that counts", "matches that count"), ", ",
                  run.awaiting_openings, " not opened, ",
                  Plural(run.mismatches, "mismatch", "mismatches"), ", ", run.voided, " void\n");
  const audit::Ledger& ledger = *report.ledger;
  for (const auto& [id, witness] : WitnessesOf(ledger, *ledger.FindRun(run.run_id))) {
    absl::StrAppend(out, "    by operator ", KeyOf(ledger, id).ToHex(), " ",
                    Quoted(ledger.keys().operators()[id].name), ": ",
                    Plural(witness.matches, "match", "matches"), ", ",
                    Plural(witness.mismatches, "mismatch", "mismatches"), ", ", witness.voided,
                    " void\n");
  }
  AppendDisputed(run, out);
}

void AppendMeaning(const audit::LogReport& report, std::string* out) {
  const bool confirmed = std::any_of(
      report.runs.begin(), report.runs.end(),
      [](const audit::RunReport& run) { return CountOf(run, StepState::kConfirmed) > 0; });
  absl::StrAppend(
      out, confirmed
               ? "what this shows: the operators above, if they are who you think and not one "
                 "person, each\n"
                 "  computed the confirmed steps from the state that the chain commits to and got "
                 "the\n"
                 "  published record to the last bit, and showed parts of it that were picked "
                 "afterwards.\n"
               : "what this shows: who said what, in which order. No step is confirmed.\n");
  absl::StrAppend(
      out,
      "what it does not show: that data or recipe are good; which machine was at work; that\n"
      "  operators are different people (--trust names those you know); anything about other\n"
      "  steps",
      report.promises > 0 ? "" : "; or that this is the whole log (--receipts, --known-checkpoint)",
      ". docs/verify.md\n");
}

// What somebody can do about a fault.
absl::string_view AdviceOn(audit::Finding::Kind kind) {
  switch (kind) {
    case audit::Finding::Kind::kSignature:
      return "this copy is not signed by that key. Ask somebody you trust for the log's key, and "
             "get another copy";
    case audit::Finding::Kind::kRoot:
      return "these entries are not what the log's key signed for. Get another copy; if it comes "
             "again from the coordinator, keep it and tell others";
    case audit::Finding::Kind::kRefusedEntry:
      return "an entry that is refused counts for nothing, here or in anything above; but an "
             "honest coordinator appends none: tell its operator";
    case audit::Finding::Kind::kKnownCheckpoint:
    case audit::Finding::Kind::kReceipt:
      return "the log's key has signed for two histories, or one of the files is of another log. "
             "Keep this copy and those files: the two signed heads prove it to everyone. Publish "
             "both, and believe nothing else that this log says";
    case audit::Finding::Kind::kTile:
      return "the entries are whole; the hashes beside them are not, so others get wrong proofs. "
             "Make a bundle, and tell the coordinator's operator";
    case audit::Finding::Kind::kNewer:
      return "this copy is older than what you have seen. Get a newer one (`lockstep bundle`); a "
             "coordinator that has none hides what came after";
  }
  return "";
}

void AppendAdvice(const audit::LogReport& report, std::string* out) {
  std::set<absl::string_view> given;
  for (const audit::Finding& finding : report.findings) {
    const absl::string_view advice = AdviceOn(finding.kind);
    if (given.insert(advice).second) {
      absl::StrAppend(out, "what to do (", FindingName(finding.kind), "): ", advice, ".\n");
    }
  }
  for (const audit::RunReport& run : report.runs) {
    if (run.disputed.empty()) continue;
    const uint64_t step = run.disputed.front().step;
    absl::StrAppend(
        out,
        "what to do (disputed): the log does not say who is right. Whoever has the run's data ",
        "finds\n  out: `lockstep replay RUN --steps ", step,
        "` compares the step with the published record.\n",
        "  Steps after it follow from the state that was published, right or wrong.\n");
    break;
  }
}

}  // namespace

std::vector<StepRange> RangesOf(const audit::RunReport& run) {
  std::vector<StepRange> ranges;
  for (size_t i = 0; i < run.step_states.size(); ++i) {
    const uint64_t step = run.first_step + i;
    if (!ranges.empty() && ranges.back().state == run.step_states[i]) {
      ranges.back().last = step;
    } else {
      ranges.push_back({.first = step, .last = step, .state = run.step_states[i]});
    }
  }
  return ranges;
}

ExitCode VerdictOf(const audit::LogReport& report) {
  if (!report.IsSound()) return kExitBadArtifact;
  const bool disputed = std::any_of(
      report.runs.begin(), report.runs.end(),
      [](const audit::RunReport& run) { return CountOf(run, StepState::kDisputed) > 0; });
  return disputed ? kExitMismatch : kExitOk;
}

std::string ReportText(const audit::LogReport& report,
                       const std::optional<std::vector<audit::TrustedOperator>>& trusted) {
  std::string out;
  AppendLog(report, &out);
  if (trusted) AppendTrusted(report, *trusted, &out);
  for (const audit::RunReport& run : report.runs) AppendRun(report, run, &out);
  if (report.runs.empty()) absl::StrAppend(&out, "no run is registered in this log\n");
  for (const audit::Finding& finding : report.findings) {
    absl::StrAppend(&out, "FAULT ", FindingName(finding.kind), ": ",
                    absl::Utf8SafeCHexEscape(finding.message), "\n");
  }
  if (report.refused > audit::kRefusedListed) {
    absl::StrAppend(&out, "FAULT: ", report.refused, " entries are refused; listed are the first ",
                    audit::kRefusedListed, "\n");
  }
  AppendMeaning(report, &out);
  AppendAdvice(report, &out);
  switch (VerdictOf(report)) {
    case kExitBadArtifact:
      absl::StrAppend(&out, "result: the log is NOT SOUND: ",
                      Plural(report.findings.size(), "fault", "faults"), "\n");
      break;
    case kExitMismatch:
      absl::StrAppend(&out, "result: the log is sound; steps are DISPUTED\n");
      break;
    default:
      absl::StrAppend(&out, "result: the log is sound; no step is disputed\n");
  }
  return out;
}

namespace {

nlohmann::json DisputedJson(const audit::RunReport& run) {
  nlohmann::json steps = nlohmann::json::array();
  for (const audit::DisputedStep& step : run.disputed) {
    nlohmann::json others = nlohmann::json::array();
    for (size_t i = 0; i < step.others.size(); ++i) {
      others.push_back({{"record", step.others[i].ToHex()}, {"entry", step.evidence[i]}});
    }
    steps.push_back({{"step", step.step},
                     {"published", step.published.ToHex()},
                     {"others", others},
                     {"places", step.places}});
  }
  return steps;
}

nlohmann::json RunJson(const audit::LogReport& report, const audit::RunReport& run) {
  nlohmann::json states = nlohmann::json::object();
  for (const StepState state : kStatesShown) {
    states[std::string(audit::StepStateName(state))] = CountOf(run, state);
  }
  nlohmann::json ranges = nlohmann::json::array();
  for (const StepRange& range : RangesOf(run)) {
    ranges.push_back({{"first", range.first},
                      {"last", range.last},
                      {"state", std::string(audit::StepStateName(range.state))}});
  }
  nlohmann::json operators = nlohmann::json::array();
  const audit::Ledger& ledger = *report.ledger;
  for (const auto& [id, witness] : WitnessesOf(ledger, *ledger.FindRun(run.run_id))) {
    operators.push_back({{"key", KeyOf(ledger, id).ToHex()},
                         {"name", ledger.keys().operators()[id].name},
                         {"matches", witness.matches},
                         {"mismatches", witness.mismatches},
                         {"void", witness.voided}});
  }
  return {{"run", run.run_id.ToHex()},
          {"name", run.name},
          {"trainer_key", run.trainer_key.ToHex()},
          {"first_step", run.first_step},
          {"steps", run.steps},
          {"chain", run.chain.ToHex()},
          {"quorum",
           {{"operators", run.quorum.operators},
            {"backends", run.quorum.backends},
            {"openings", run.quorum.openings}}},
          {"states", states},
          {"ranges", ranges},
          {"attestations", run.attestations},
          {"matches", run.matches},
          {"awaiting_openings", run.awaiting_openings},
          {"mismatches", run.mismatches},
          {"void", run.voided},
          {"operators", operators},
          {"disputed", DisputedJson(run)}};
}

}  // namespace

nlohmann::json ReportJson(const audit::LogReport& report,
                          const std::optional<std::vector<audit::TrustedOperator>>& trusted) {
  nlohmann::json accepted = nlohmann::json::object();
  for (int kind = 0; kind < audit::kEntryKinds; ++kind) {
    accepted[std::string(audit::EntryKindName(static_cast<audit::EntryKind>(kind)))] =
        report.entries[static_cast<size_t>(kind)];
  }
  nlohmann::json faults = nlohmann::json::array();
  for (const audit::Finding& finding : report.findings) {
    faults.push_back(
        {{"kind", std::string(FindingName(finding.kind))}, {"message", finding.message}});
  }
  nlohmann::json runs = nlohmann::json::array();
  for (const audit::RunReport& run : report.runs) runs.push_back(RunJson(report, run));
  nlohmann::json out = {{"log", report.checkpoint.origin},
                        {"size", report.checkpoint.size},
                        {"root", report.checkpoint.root.ToHex()},
                        {"log_key", report.log_key.ToText()},
                        {"log_key_given", report.log_key_given},
                        {"sound", report.IsSound()},
                        {"disputed", VerdictOf(report) == kExitMismatch},
                        {"accepted", accepted},
                        {"refused", report.refused},
                        {"operators", report.operators},
                        {"worker_keys", report.worker_keys},
                        {"ended_keys", report.ended_keys},
                        {"promises", report.promises},
                        {"promises_of_other_logs", report.promises_of_other_logs},
                        {"faults", faults},
                        {"runs", runs}};
  if (trusted) {
    nlohmann::json list = nlohmann::json::array();
    for (const audit::TrustedOperator& mine : *trusted) {
      const std::optional<uint32_t> id = OperatorOf(*report.ledger, mine.key);
      nlohmann::json item = {{"key", mine.key.ToHex()}, {"name", mine.name}};
      if (id) item["registered_as"] = report.ledger->keys().operators()[*id].name;
      list.push_back(item);
    }
    out["trusted"] = list;
  }
  return out;
}

}  // namespace lockstep::cli
