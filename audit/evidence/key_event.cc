// SPDX-License-Identifier: Apache-2.0
//
// Key events as canonical JSON.
#include "audit/evidence/key_event.h"

#include "absl/strings/str_cat.h"
#include "audit/evidence/payload_fields.h"
#include "base/canonical_json.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {
namespace {

nlohmann::json Write(const OperatorEvent& event) {
  nlohmann::json json = {{"event", "operator"},
                         {"name", event.name},
                         {"operatorKey", event.operator_key.ToHex()},
                         {"revocationKey", event.revocation_key.ToHex()}};
  if (!event.contact.empty()) json["contact"] = event.contact;
  return json;
}
nlohmann::json Write(const WorkerEvent& event) {
  return {{"event", "worker"},
          {"hardware", event.hardware},
          {"operatorKey", event.operator_key.ToHex()},
          {"workerKey", event.worker_key.ToHex()}};
}
nlohmann::json Write(const RotateEvent& event) {
  return {
      {"event", "rotate"}, {"newKey", event.new_key.ToHex()}, {"oldKey", event.old_key.ToHex()}};
}
nlohmann::json Write(const RevokeEvent& event) {
  return {{"event", "revoke"}, {"key", event.key.ToHex()}, {"reason", event.reason}};
}

OperatorEvent ReadOperator(JsonReader& reader) {
  OperatorEvent event;
  event.name = ReadLine(reader, "name", 64);
  if (reader.Has("contact")) event.contact = ReadLine(reader, "contact", 256);
  event.operator_key = ReadPublicKey(reader, "operatorKey");
  event.revocation_key = ReadPublicKey(reader, "revocationKey");
  if (reader.ok() && event.operator_key == event.revocation_key) {
    reader.Fail("revocationKey", "a key other than operatorKey", "the same");
  }
  return event;
}

WorkerEvent ReadWorker(JsonReader& reader) {
  WorkerEvent event;
  event.hardware = ReadLine(reader, "hardware", 128);
  event.operator_key = ReadPublicKey(reader, "operatorKey");
  event.worker_key = ReadPublicKey(reader, "workerKey");
  if (reader.ok() && event.operator_key == event.worker_key) {
    reader.Fail("workerKey", "a key other than operatorKey", "the same");
  }
  return event;
}

RotateEvent ReadRotate(JsonReader& reader) {
  RotateEvent event;
  event.new_key = ReadPublicKey(reader, "newKey");
  event.old_key = ReadPublicKey(reader, "oldKey");
  if (reader.ok() && event.new_key == event.old_key) {
    reader.Fail("newKey", "a key other than oldKey", "the same");
  }
  return event;
}

RevokeEvent ReadRevoke(JsonReader& reader) {
  RevokeEvent event;
  event.key = ReadPublicKey(reader, "key");
  event.reason = ReadLine(reader, "reason", 256);
  return event;
}

KeyEvent Read(JsonReader& reader) {
  const std::string word = reader.String("event", 16);
  if (word == "operator") return ReadOperator(reader);
  if (word == "worker") return ReadWorker(reader);
  if (word == "rotate") return ReadRotate(reader);
  if (word == "revoke") return ReadRevoke(reader);
  if (reader.ok()) {
    reader.Fail("event", "\"operator\", \"worker\", \"rotate\" or \"revoke\"",
                absl::StrCat("\"", word, "\""));
  }
  return RevokeEvent();
}

}  // namespace

std::string EncodeKeyEvent(const KeyEvent& event) {
  return EncodePayload(std::visit([](const auto& e) { return Write(e); }, event));
}

absl::StatusOr<KeyEvent> ParseKeyEvent(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(text), "key event");
  JsonReader reader(json, "key event");
  const KeyEvent event = Read(reader);
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return event;
}

}  // namespace lockstep::audit
