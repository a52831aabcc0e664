// SPDX-License-Identifier: Apache-2.0
//
// Those who would have something for nothing, against the whole coordinator through gRPC: what they
// get for it, what is kept of it, and what everybody can read afterwards. What each rule is in
// detail: core/coordinator_test.cc, scheduler/scheduler_population_test.cc, audit/ledger.

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "audit/evidence/dsse.h"
#include "audit/ledger/bundle.h"
#include "audit/ledger/verify_log.h"
#include "audit/testing/small_log.h"
#include "coordinator/testing/log_checker.h"
#include "coordinator/testing/service_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

using audit::OperatorKey;
using audit::StepState;
using audit::TestDigest;
using audit::TestEntry;
using audit::TestPublicKey;
using audit::WorkerKey;
using ::testing::Contains;
using ::testing::Field;

class CheatsTest : public ServiceTest {
 protected:
  absl::StatusOr<v1::SubmitAttestationResponse> Submit(const audit::Attestation& said, int key) {
    return client_->Submit(TestEntry(said, {key}), key);
  }
  // An honest match of one step, opened.
  void Match(const v1::Lease& lease, uint64_t step, int key) {
    const audit::Attestation said = Found(lease, step, key);
    const std::string envelope = TestEntry(said, {key});
    const auto submitted = client_->Submit(envelope, key);
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    if (submitted->challenge().empty()) return;
    const auto opened = client_->Signed<v1::SubmitOpeningResponse>(
        "SubmitOpening", key, Openings(said, envelope, *submitted, key));
    ASSERT_TRUE(opened.ok()) << opened.status();
  }
  std::vector<std::string> LogEntries() {
    return CheckLog(LogWriter::PublicDirectory(network_.options.directory + "/log"),
                    network_.options.origin, network_->log_key().key)
        .value();
  }
  // What `lockstep verify` says of these entries under this head, with the receipts of somebody.
  audit::LogReport Verify(const std::vector<std::string>& entries, const std::string& checkpoint,
                          std::vector<audit::Receipt> receipts) {
    const std::string path = network_.scratch().Path(absl::StrCat("bundle ", ++bundles_));
    audit::BundleWriter writer =
        audit::BundleWriter::Create(path, network_->log_key(), checkpoint).value();
    for (const std::string& entry : entries) EXPECT_TRUE(writer.Append(entry).ok());
    EXPECT_TRUE(writer.Commit().ok());
    audit::VerifyOptions options;
    options.log_key = network_->log_key();
    for (audit::Receipt& receipt : receipts) {
      options.receipts.push_back({.name = "a receipt", .receipt = std::move(receipt)});
    }
    ThreadPool pool(1);
    return audit::VerifyLog(*audit::OpenBundle(path).value(), options, pool).value();
  }

 private:
  int bundles_ = 0;
};

// The coordinator itself cheats: it takes a mismatch, and shows a log without it, signed anew.
TEST_F(CheatsTest, WhoHidesAMismatchIsShownByItsReceipt) {
  Begin(3);
  const v1::Lease lease = client_->Acquire(WorkerKey(0)).value().lease();
  audit::StepRecord found = network_.Record(0);
  found.parameters = TestDigest("other parameters", 0);
  const std::string mismatch = TestEntry(Found(lease, 0, WorkerKey(0), &found), {WorkerKey(0)});
  const auto submitted = client_->Submit(mismatch, WorkerKey(0));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  CheckReceipt(submitted->receipt(), mismatch);
  const audit::Receipt receipt{.entry = mismatch,
                               .proof = audit::ParseLogProof(submitted->receipt().proof()).value()};
  const v1::Lease second = client_->Acquire(WorkerKey(1)).value().lease();
  for (uint64_t step = second.begin_step(); step < second.end_step(); ++step) {
    Match(second, step, WorkerKey(1));
  }
  // The log grows, so that what is shown later is no older copy.
  ASSERT_TRUE(client_->Publish(network_.run_id(), network_.RecordEntries(3, 8)).ok());

  const std::vector<std::string> entries = LogEntries();
  const audit::LogReport honest = Verify(entries, network_->log().Checkpoint(), {receipt});
  EXPECT_TRUE(honest.IsSound());
  EXPECT_EQ(honest.runs[0].states[static_cast<size_t>(StepState::kDisputed)], 1u);

  // Without the mismatch and the dispute about it. Its key is the coordinator's own to sign with.
  std::vector<std::string> hiding;
  for (const std::string& entry : entries) {
    const audit::EntryKind kind = audit::LogEntry::Parse(entry).value().kind();
    if (entry != mismatch && kind != audit::EntryKind::kDispute) hiding.push_back(entry);
  }
  ASSERT_EQ(hiding.size(), entries.size() - 2);
  std::vector<Digest> leaves;
  for (const std::string& entry : hiding) leaves.push_back(MerkleLeafHash(AsBytes(entry)));
  const Ed25519PrivateKey key =
      Ed25519PrivateKey::Load(network_.options.directory + "/log.key").value();
  const std::string checkpoint = audit::SignLogCheckpoint(
      {.origin = network_.options.origin, .size = hiding.size(), .root = MerkleRoot(leaves)}, key);
  // By itself it looks well.
  const audit::LogReport alone = Verify(hiding, checkpoint, {});
  EXPECT_TRUE(alone.IsSound());
  EXPECT_EQ(alone.runs[0].states[static_cast<size_t>(StepState::kDisputed)], 0u);
  const audit::LogReport shown = Verify(hiding, checkpoint, {receipt});
  EXPECT_FALSE(shown.IsSound());
  EXPECT_THAT(shown.findings,
              Contains(Field(&audit::Finding::kind, audit::Finding::Kind::kReceipt)));
}

// RFC 8032's points of small order in all their encodings, and y that is not below the prime. With
// OpenSSL alone, one signature would hold for every message.
TEST_F(CheatsTest, KeysOfSmallOrderAreRegisteredNowhere) {
  const std::vector<std::string> refused = {
      std::string(64, '0'),
      "01" + std::string(62, '0'),
      "ec" + std::string(60, 'f') + "7f",
      std::string(62, '0') + "80",
      "01" + std::string(60, '0') + "80",
      "ec" + std::string(60, 'f') + "ff",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
      "ed" + std::string(60, 'f') + "7f",
      "ed" + std::string(60, 'f') + "ff",
      "ee" + std::string(60, 'f') + "7f",
      "ee" + std::string(60, 'f') + "ff",
      std::string(64, 'f')};
  network_.AddOperator(0);
  const audit::OperatorEvent an_operator{.operator_key = TestPublicKey(OperatorKey(1)),
                                         .revocation_key = TestPublicKey(audit::RevocationKey(1)),
                                         .name = "operator",
                                         .contact = ""};
  const audit::WorkerEvent worker{.worker_key = TestPublicKey(WorkerKey(0, 5)),
                                  .operator_key = TestPublicKey(OperatorKey(0)),
                                  .hardware = "a machine"};
  const std::vector<std::pair<std::string, Ed25519PublicKey>> honest = {
      {TestEntry(audit::KeyEvent(an_operator), {OperatorKey(1)}), an_operator.operator_key},
      {TestEntry(audit::KeyEvent(an_operator), {OperatorKey(1)}), an_operator.revocation_key},
      {TestEntry(audit::KeyEvent(worker), {OperatorKey(0), WorkerKey(0, 5)}), worker.worker_key}};
  for (const std::string& low : refused) {
    for (const auto& [envelope, key] : honest) {
      audit::DsseEnvelope forged = audit::ParseDsse(envelope).value();
      const std::string hex = key.ToHex();
      forged.payload.replace(forged.payload.find(hex), hex.size(), low);
      v1::SubmitKeyEventRequest request;
      request.set_envelope(audit::EncodeDsse(forged));
      EXPECT_THAT(client_->Call<v1::SubmitKeyEventResponse>(
                      client_->audit(), &v1::AuditService::Stub::SubmitKeyEvent, request),
                  HasReason("KEY_REFUSED"))
          << low;
    }
    // Nor as the key of a request, whose signature would hold whatever it asks for.
    v1::SignedRequest request;
    request.set_payload("anything");
    request.set_public_key(HexDecode(low).value());
    request.set_signature(std::string("\1", 1) + std::string(63, '\0'));
    EXPECT_THAT(client_->Send<v1::AcquireLeaseResponse>(request), HasReason("SIGNATURE_INVALID"));
  }
  EXPECT_EQ(LogEntries().size(), 2u);
}

// A registered key that signs what is nothing: as request, as envelope, as payload.
TEST_F(CheatsTest, WhoSignsGarbageGetsNowhere) {
  Begin(2);
  const int key = WorkerKey(0);
  const v1::Lease lease = client_->Acquire(key).value().lease();
  const size_t before = LogEntries().size();
  std::mt19937_64 random(1);
  const audit::Attestation honest = Found(lease, 0, key);
  const std::string payload = audit::EncodeAttestation(honest);
  const auto submit_payload = [&](const std::string& bytes, const std::string& type) {
    audit::DsseEnvelope envelope{.payload_type = type, .payload = bytes, .signatures = {}};
    const Ed25519Signature signature =
        audit::TestKey(key).Sign(AsBytes(audit::DssePae(type, bytes)));
    envelope.signatures.push_back({.key_id = TestPublicKey(key).Id().ToHex(),
                                   .bytes = std::string(signature.begin(), signature.end())});
    return client_->Submit(audit::EncodeDsse(envelope), key);
  };
  for (int i = 0; i < 64; ++i) {
    std::string bytes(random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    // Signed as a request.
    v1::SignedRequest request;
    request.set_payload(bytes);
    request.set_public_key(ToString(TestPublicKey(key).bytes));
    const Ed25519Signature signature = audit::TestKey(key).Sign(AsBytes(bytes));
    request.set_signature(std::string(signature.begin(), signature.end()));
    EXPECT_THAT(client_->Send<v1::SubmitOpeningResponse>(request), HasReason("SIGNATURE_INVALID"));
    // As an envelope in a good request; as a payload in a good envelope; and a good payload with a
    // byte that cannot be.
    EXPECT_THAT(client_->Submit(bytes, key), HasReason("ENVELOPE_INVALID"));
    EXPECT_THAT(submit_payload(bytes, audit::kAttestationPayloadType),
                HasReason("ENVELOPE_INVALID"));
    std::string changed = payload;
    changed[random() % changed.size()] = '\1';
    EXPECT_THAT(submit_payload(changed, audit::kAttestationPayloadType),
                HasReason("ENVELOPE_INVALID"));
  }
  EXPECT_THAT(submit_payload(payload, audit::kOpeningPayloadType), HasReason("ENVELOPE_INVALID"));
  EXPECT_EQ(LogEntries().size(), before);
  EXPECT_EQ(network_.StateOf(0), StepState::kClaimed);
  // The honest one is still taken.
  EXPECT_TRUE(submit_payload(payload, audit::kAttestationPayloadType).ok());
}

// A good attestation is public, and of no use to anybody else.
TEST_F(CheatsTest, AnothersAttestationIsOfNoUse) {
  Begin(8);
  const int honest = WorkerKey(0);
  const int cheat = WorkerKey(1);
  const v1::Lease lease = client_->Acquire(honest, 2).value().lease();
  ASSERT_EQ(lease.end_step(), 2u);
  const std::string envelope = TestEntry(Found(lease, 0, honest), {honest});
  ASSERT_TRUE(client_->Submit(envelope, honest).ok());
  const v1::Lease own = client_->Acquire(cheat, 2).value().lease();
  const size_t before = LogEntries().size();

  // As it is, under the cheat's name and lease: the signature is another's.
  EXPECT_THAT(client_->Submit(envelope, cheat), HasReason("ENVELOPE_INVALID"));
  // Signed anew, with the other's lease and nonce; and changed to fit in one place more.
  audit::Attestation copied = Found(lease, 0, honest);
  EXPECT_THAT(Submit(copied, cheat), HasReason("LEASE_FOREIGN"));
  copied.lease_id = HexEncode(AsBytes(own.lease_id()));
  EXPECT_THAT(Submit(copied, cheat), HasReason("NONCE_WRONG"));
  // For another step. (For another run: WhatIsTrueInOneRunIsOfNoUseInAnother.)
  copied = Found(own, 5, cheat);
  EXPECT_THAT(Submit(copied, cheat), HasReason("STEP_OUTSIDE_LEASE"));
  // The values of one step as those of another.
  copied = Found(own, own.begin_step(), cheat);
  copied.roots = audit::RootsOf(network_.Record(own.begin_step() + 1));
  EXPECT_THAT(Submit(copied, cheat), HasReason("FALSE_VERDICT"));
  // Once more it is the same entry, whoever carries it there: the signer, or a stranger who read it
  // in the log.
  v1::SubmitAttestationRequest carried = client_->Attestation(envelope, honest);
  for (const std::string& attempt : {carried.attempt_id(), std::string(16, 'x')}) {
    carried.set_attempt_id(attempt);
    const auto again = client_->Call<v1::SubmitAttestationResponse>(
        client_->audit(), &v1::AuditService::Stub::SubmitAttestation, carried);
    ASSERT_TRUE(again.ok()) << again.status();
    CheckReceipt(again->receipt(), envelope);
  }

  EXPECT_EQ(LogEntries().size(), before);
  const std::vector<EvidenceRow> evidence = network_.Evidence();
  for (const char* reason :
       {"LEASE_FOREIGN", "NONCE_WRONG", "STEP_OUTSIDE_LEASE", "FALSE_VERDICT"}) {
    EXPECT_THAT(evidence, Contains(Field(&EvidenceRow::reason, reason)));
  }
  EXPECT_EQ(network_.Trust(honest).invalid, 0);
  EXPECT_EQ(network_.Trust(cheat).invalid, 1);
}

// Replay from another run, which is registered too and has the step: true there, for this very key.
TEST_F(CheatsTest, WhatIsTrueInOneRunIsOfNoUseInAnother) {
  Begin(4);
  const int cheat = WorkerKey(0);
  const v1::Lease lease = client_->Acquire(cheat, 2).value().lease();
  ASSERT_EQ(lease.begin_step(), 0u);
  network_.UseRun(1);
  v1::RegisterRunRequest request;
  request.set_envelope(network_.RunEntry());
  ASSERT_TRUE(client_
                  ->Call<v1::RegisterRunResponse>(client_->trainer(),
                                                  &v1::TrainerService::Stub::RegisterRun, request)
                  .ok());
  ASSERT_TRUE(client_->Publish(network_.run_id(), network_.RecordEntries(0, 4)).ok());
  const size_t before = LogEntries().size();
  // With the lease and nonce of this one. Nothing but the run is wrong: it would be a match there.
  const audit::Attestation there = Found(lease, 0, cheat);
  EXPECT_THAT(Submit(there, cheat), HasReason("STEP_OUTSIDE_LEASE"));
  EXPECT_EQ(network_.StateOf(0), StepState::kUnaudited);
  // The values of that run as those of this.
  network_.UseRun(0);
  audit::Attestation copied = there;
  copied.run_id = network_.run_id();
  EXPECT_THAT(Submit(copied, cheat), HasReason("NOT_THE_PUBLISHED_RECORD"));
  copied = Found(lease, 0, cheat);
  copied.roots = there.roots;
  EXPECT_THAT(Submit(copied, cheat), HasReason("FALSE_VERDICT"));
  EXPECT_EQ(LogEntries().size(), before);
  EXPECT_EQ(network_.StateOf(0), StepState::kClaimed);
  const std::vector<EvidenceRow> evidence = network_.Evidence();
  for (const char* reason : {"STEP_OUTSIDE_LEASE", "NOT_THE_PUBLISHED_RECORD", "FALSE_VERDICT"}) {
    EXPECT_THAT(evidence, Contains(Field(&EvidenceRow::reason, reason)));
  }
  Match(lease, 0, cheat);
  EXPECT_EQ(network_.StateOf(0), StepState::kProvisional);
}

// Fitted to the lease in all that can be seen, the copy has a commitment to leaves that the cheat
// does not have, and cannot open it.
TEST_F(CheatsTest, WhoCopiesHashesCannotOpenThem) {
  Begin(2);
  const int cheat = WorkerKey(0);
  const v1::Lease lease = client_->Acquire(cheat).value().lease();
  audit::Attestation copied = Found(lease, 0, cheat);
  copied.openings_digest = TestDigest("made up", 0);
  const std::string envelope = TestEntry(copied, {cheat});
  const auto submitted = client_->Submit(envelope, cheat);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  ASSERT_FALSE(submitted->challenge().empty());
  // Leaves that it has read elsewhere do not lie under its own commitment.
  EXPECT_THAT(
      client_->Signed<v1::SubmitOpeningResponse>(
          "SubmitOpening", cheat, Openings(Found(lease, 0, cheat), envelope, *submitted, cheat)),
      HasReason("OPENING_WRONG"));
  EXPECT_NE(network_.StateOf(0), StepState::kProvisional);
  EXPECT_EQ(network_.CountEntries("dispute"), 1);
  EXPECT_EQ(network_.Trust(cheat).invalid, 1);
}

TEST_F(CheatsTest, WhoHoardsLeasesHoldsNobodyUp) {
  Begin(64);
  const int hoarder = WorkerKey(0);
  std::vector<v1::Lease> held;
  uint64_t steps = 0;
  std::string reason;
  for (int i = 0; i < 100 && reason.empty(); ++i) {
    const v1::AcquireLeaseResponse answer = client_->Acquire(hoarder).value();
    reason = answer.no_work_reason();
    if (!answer.has_lease()) continue;
    held.push_back(answer.lease());
    steps += answer.lease().end_step() - answer.lease().begin_step();
  }
  EXPECT_FALSE(reason.empty());
  EXPECT_LE(steps, static_cast<uint64_t>(network_.options.policy.trust.quota_steps_new));
  // Somebody else gets work meanwhile, of the same steps too.
  const v1::AcquireLeaseResponse other = client_->Acquire(WorkerKey(1)).value();
  ASSERT_TRUE(other.has_lease()) << other.no_work_reason();
  Match(other.lease(), other.lease().begin_step(), WorkerKey(1));
  // Heartbeats, as often as they are asked for, keep no lease for longer than it was given for.
  ASSERT_FALSE(held.empty());
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_lease_id(held[0].lease_id());
  absl::Status heard;
  int64_t lived_ms = 0;
  for (; heard.ok() && lived_ms < 2 * held[0].lifetime_ms(); lived_ms += held[0].heartbeat_ms()) {
    network_.clock.Advance(absl::Milliseconds(held[0].heartbeat_ms()));
    heard = client_->Signed<v1::HeartbeatResponse>("Heartbeat", hoarder, heartbeat).status();
  }
  EXPECT_EQ(rpc::ReasonOf(heard), "LEASE_EXPIRED") << heard;
  EXPECT_LE(lived_ms, held[0].lifetime_ms() + held[0].heartbeat_ms());
  ASSERT_TRUE(network_->Tick().ok());
  EXPECT_GE(network_.Trust(hoarder).expired, 1);
  EXPECT_LT(network_.Trust(hoarder).quota_steps, network_.options.policy.trust.quota_steps_new);
}

// Nor does it help to let go before a lease runs out. What became of each is there to be read.
TEST_F(CheatsTest, WhoHandsLeasesBackUndonePays) {
  Begin(64);
  const int hoarder = WorkerKey(0);
  const auto release = [&](v1::ReleaseLeaseRequest::Reason reason, const std::string& detail) {
    const v1::AcquireLeaseResponse answer = client_->Acquire(hoarder).value();
    ASSERT_TRUE(answer.has_lease()) << answer.no_work_reason();
    network_.clock.Advance(absl::Seconds(30));
    v1::ReleaseLeaseRequest request;
    request.set_lease_id(answer.lease().lease_id());
    request.set_reason(reason);
    request.set_detail(detail);
    ASSERT_TRUE(client_->Signed<v1::ReleaseLeaseResponse>("ReleaseLease", hoarder, request).ok());
  };
  release(v1::ReleaseLeaseRequest::REASON_CANCELED, "somebody is\nat the keyboard");
  release(v1::ReleaseLeaseRequest::REASON_FINISHED, "");
  EXPECT_EQ(network_.Trust(hoarder).expired, 0);
  release(v1::ReleaseLeaseRequest::REASON_CANCELED, "once more");
  EXPECT_EQ(network_.Trust(hoarder).expired, 1);
  release(v1::ReleaseLeaseRequest::REASON_INCONCLUSIVE, "a shard has another digest");
  EXPECT_EQ(network_.Trust(hoarder).expired, 2);
  EXPECT_EQ(client_->Acquire(hoarder)->no_work_reason(), "BACKOFF");

  v1::ListLeasesRequest request;
  request.set_run_id(ToString(network_.run_id().bytes));
  request.set_page_size(2);
  std::vector<std::pair<std::string, std::string>> ends;
  do {
    const auto page = client_->Call<v1::ListLeasesResponse>(
        client_->open(), &v1::PublicService::Stub::ListLeases, request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::EndedLease& lease : page->leases()) {
      EXPECT_EQ(lease.worker_key(), ToString(TestPublicKey(hoarder).bytes));
      EXPECT_EQ(lease.ended_ms() - lease.granted_ms(), 30'000);
      ends.emplace_back(lease.state(), lease.detail());
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(ends, ::testing::ElementsAre(
                        ::testing::Pair("inconclusive", "a shard has another digest"),
                        ::testing::Pair("canceled", "once more"), ::testing::Pair("done", ""),
                        ::testing::Pair("canceled", "somebody is at the keyboard")));
  request.set_page_token("no token");
  EXPECT_THAT(client_->Call<v1::ListLeasesResponse>(client_->open(),
                                                    &v1::PublicService::Stub::ListLeases, request),
              HasReason("REQUEST_INVALID"));
}

// A thousand keys of one operator are one operator: capped together, and counted once.
TEST_F(CheatsTest, AThousandKeysOfOneOperatorAreOne) {
  constexpr int kKeys = 1'000;
  network_.options.policy.leases_per_address_max = 1 << 20;  // from as many addresses
  network_.options.batch_rows_max = 1;                       // one client: no batch fills
  servers_.reset();
  ASSERT_TRUE(network_.Open().ok());
  Serve({});
  Begin(2);
  std::map<int, v1::Lease> leases;
  std::map<std::string, int> refused;
  for (int w = 1; w <= kKeys; ++w) {
    const int key = 1'000'000 + w;
    const auto added =
        client_->SubmitKey(audit::WorkerEvent{.worker_key = TestPublicKey(key),
                                              .operator_key = TestPublicKey(OperatorKey(0)),
                                              .hardware = "the same machine"},
                           {OperatorKey(0), key});
    ASSERT_TRUE(added.ok()) << added.status();
    const v1::AcquireLeaseResponse answer = client_->Acquire(key).value();
    if (answer.has_lease()) {
      leases.emplace(key, answer.lease());
    } else {
      ++refused[answer.no_work_reason()];
    }
  }
  EXPECT_LE(leases.size(), static_cast<size_t>(network_.options.policy.leases_per_operator_max));
  ASSERT_FALSE(leases.empty());
  for (const auto& [key, lease] : leases) {
    for (uint64_t step = lease.begin_step(); step < lease.end_step(); ++step)
      Match(lease, step, key);
  }
  for (const uint64_t step : {0, 1}) EXPECT_EQ(network_.StateOf(step), StepState::kProvisional);
  // Another operator, with one key, confirms what all of them could not.
  const v1::Lease other = client_->Acquire(WorkerKey(1)).value().lease();
  Match(other, 0, WorkerKey(1));
  EXPECT_EQ(network_.StateOf(0), StepState::kConfirmed);
  EXPECT_EQ(network_.StateOf(1), StepState::kProvisional);
}

// The trainer publishes a step once more, as it should have been.
TEST_F(CheatsTest, ARewrittenHistoryIsKeptBesideTheFirst) {
  Begin(4);
  const audit::StepRecord first = network_.Record(2);
  audit::StepRecord second = first;
  second.parameters = TestDigest("other parameters", 2);
  const std::string envelope = TestEntry(
      audit::PublishedRecord{.run_id = network_.run_id(), .record = second}, {audit::kTrainerKey});
  EXPECT_THAT(client_->Publish(network_.run_id(), {envelope}), HasReason("SECOND_HISTORY"));
  EXPECT_EQ(network_.StateOf(2), StepState::kDisputed);
  v1::ListDisputesRequest request;
  request.set_run_id(ToString(network_.run_id().bytes));
  const auto disputes = client_->Call<v1::ListDisputesResponse>(
      client_->open(), &v1::PublicService::Stub::ListDisputes, request);
  ASSERT_TRUE(disputes.ok()) << disputes.status();
  ASSERT_EQ(disputes->disputes_size(), 1);
  EXPECT_EQ(disputes->disputes(0).reason(), "second-history");
  // Both are there for whoever verifies the log.
  const audit::LogReport report = Verify(LogEntries(), network_->log().Checkpoint(), {});
  EXPECT_TRUE(report.IsSound());
  ASSERT_EQ(report.runs[0].disputed.size(), 1u);
  EXPECT_EQ(report.runs[0].disputed[0].published, Sha256(AsBytes(EncodeStepRecord(first))));
  EXPECT_THAT(report.runs[0].disputed[0].others,
              Contains(Sha256(AsBytes(EncodeStepRecord(second)))));
}

}  // namespace
}  // namespace lockstep::coordinator
