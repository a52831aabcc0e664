// SPDX-License-Identifier: Apache-2.0
//
// Each address of the API over a real coordinator and a real server.

#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "audit/log/log_proof.h"
#include "base/encoding.h"
#include "base/merkle.h"
#include "coordinator/api/api.h"
#include "coordinator/store/sqlite_store.h"
#include "coordinator/testing/api_fixture.h"

namespace lockstep::coordinator {
namespace {

using audit::OperatorKey;
using audit::WorkerKey;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RawClient;
using testing::RawResponse;
using ::testing::StartsWith;

TEST_F(ApiTest, Server) {
  const Json server = Get("server");
  EXPECT_EQ(server["origin"], "test.example/log");
  EXPECT_EQ(server["log_key"], network_->log_key().ToText());
  EXPECT_EQ(server["log_public_key"], (Digest{network_->log_key().key.bytes}.ToHex()));
  EXPECT_EQ(server["version"], "test");
  EXPECT_EQ(server["time_ms"], absl::ToUnixMillis(network_.clock.Now()));
  EXPECT_EQ(server["artifact_url"], "http://artifacts.example");
  EXPECT_EQ(server["worker_url"], "http://workers.example:7440");
  EXPECT_EQ(server["event_epoch"], "epoch");
  EXPECT_EQ(server["log_size"], 0);
}

TEST_F(ApiTest, HeadersOfAnswersAndErrors) {
  for (const char* const path : {"runs", "nothing", "runs?limit=0"}) {
    const RawResponse response = Ask(path);
    EXPECT_EQ(response.Header("Access-Control-Allow-Origin"), "*");
    EXPECT_EQ(response.Header("Cross-Origin-Resource-Policy"), "cross-origin");
    EXPECT_EQ(response.Header("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(response.Header("Content-Type"), "application/json; charset=utf-8");
    EXPECT_EQ(response.Header("Content-Security-Policy"),
              "default-src 'none'; frame-ancestors 'none'");
  }
  RawClient client(server_->port());
  client.Send("PUT /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  const RawResponse put = client.ReadResponse();
  EXPECT_EQ(put.status, 405);
  EXPECT_EQ(put.Header("Access-Control-Allow-Origin"), "");
}

TEST_F(ApiTest, NotModifiedAndHead) {
  const RawResponse first = Ask("runs");
  const std::string etag = first.Header("ETag");
  EXPECT_THAT(etag, StartsWith("\""));
  EXPECT_EQ(first.Header("Cache-Control"), "no-cache");
  const RawResponse again = Ask("runs", absl::StrCat("If-None-Match: ", etag, "\r\n"));
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.Header("ETag"), etag);
  EXPECT_EQ(again.body, "");
  RawClient client(server_->port());
  client.Send("HEAD /api/v1/runs HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawResponse head = client.ReadResponse(/*has_body=*/false);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.Header("Content-Length"), absl::StrCat(first.body.size()));
  EXPECT_EQ(head.Header("ETag"), etag);
  EXPECT_EQ(client.Get("/api/v1/runs").body, first.body);  // nothing came behind the head
  network_.AddRun(1);
  EXPECT_EQ(Ask("runs", absl::StrCat("If-None-Match: ", etag, "\r\n")).status, 200);
}

TEST_F(ApiTest, AddressesAndParametersThatAreNone) {
  network_.AddRun(2);
  for (const char* const path :
       {"", "nothing", "runs/", "runs.csv", "server/x", "log/entries/1/x", "steps"}) {
    EXPECT_EQ(Refusal(path, 404), "NOT_FOUND") << path;
  }
  EXPECT_EQ(RawClient(server_->port()).Get("/api/v2/runs").status, 404);
  const std::string nobody(64, '0');
  for (const std::string rest :
       {"", "/coverage", "/curves", "/steps", "/steps/0", "/attestations", "/disputes", "/leases",
        "/steps.csv", "/attestations.jsonl", "/leases.csv"}) {
    EXPECT_EQ(Refusal(absl::StrCat("runs/", nobody, rest), 404), "RUN_UNKNOWN") << rest;
    EXPECT_EQ(Refusal(absl::StrCat("runs/abc", rest), 400), "REQUEST_INVALID") << rest;
  }
  EXPECT_EQ(Refusal(RunPath("steps/2"), 404), "STEP_UNKNOWN");
  EXPECT_EQ(Refusal(RunPath("steps/-1"), 400), "REQUEST_INVALID");
  EXPECT_EQ(Refusal(RunPath("steps/9007199254740991"), 404), "STEP_UNKNOWN");
  EXPECT_EQ(Refusal(absl::StrCat("operators/", nobody), 404), "KEY_UNKNOWN");
  EXPECT_EQ(Refusal(absl::StrCat("workers/", KeyOf(audit::kTrainerKey)), 404), "KEY_UNKNOWN");
  EXPECT_EQ(Refusal("log/entries/1000", 404), "ENTRY_UNKNOWN");
  EXPECT_EQ(Refusal(absl::StrCat("log/entries/by-leaf/", nobody), 404), "ENTRY_UNKNOWN");
  for (const char* const query : {"limit=0", "limit=1001", "limit=x", "page=x", "page=-1", "x=1",
                                  "limit=1&limit=2", "limit", "limit=%", "newest=2"}) {
    for (const std::string& list :
         {std::string("runs"), std::string("operators"), std::string("workers"),
          std::string("log/entries"), RunPath("steps"), RunPath("attestations"),
          RunPath("disputes"), RunPath("leases"), std::string("leases")}) {
      EXPECT_EQ(Refusal(absl::StrCat(list, "?", query), 400), "REQUEST_INVALID") << list << query;
    }
  }
  EXPECT_EQ(Refusal(RunPath("steps?state=done"), 400), "REQUEST_INVALID");
  EXPECT_EQ(Refusal(RunPath("curves?buckets=4001"), 400), "REQUEST_INVALID");
  EXPECT_EQ(Refusal(RunPath("attestations?operator=x"), 400), "REQUEST_INVALID");
  EXPECT_EQ(Refusal(RunPath("attestations?verdict=maybe"), 400), "REQUEST_INVALID");
  EXPECT_EQ(Refusal(RunPath("leases?state=released"), 400), "REQUEST_INVALID");
  EXPECT_EQ(Refusal(RunPath("leases?worker=x"), 400), "REQUEST_INVALID");
  EXPECT_EQ(Refusal(RunPath("leases.csv?page=1"), 400), "REQUEST_INVALID");
  EXPECT_EQ(Refusal("server?x=1", 400), "REQUEST_INVALID");
  // A page beyond the end is an empty one.
  EXPECT_TRUE(Get("runs?page=9007199254740991")["runs"].empty());
  EXPECT_TRUE(Get(RunPath("steps?page=9007199254740991"))["steps"].empty());
  EXPECT_TRUE(Get("log/entries?page=9007199254740991")["entries"].empty());
}

TEST_F(ApiTest, Runs) {
  network_.AddOperator(0);
  network_.AddOperator(1);
  network_.AddRun(5);
  Json run = Get("runs")["runs"][0];
  EXPECT_EQ(run["run"], this->run());
  EXPECT_EQ(run["name"], network_.registration().manifest.name);
  EXPECT_EQ(run["trainer_key"], KeyOf(audit::kTrainerKey));
  EXPECT_TRUE(run["trainer_operator"].is_null());
  EXPECT_EQ(run["quorum"], Json::parse(R"({"operators":2,"backends":1,"openings":1})"));
  EXPECT_EQ(run["steps"], 5);
  EXPECT_EQ(run["first_step"], 0);
  EXPECT_GT(run["steps_planned"], 5);
  EXPECT_EQ(run["chain"], ChainAfter(network_.Record(4)).ToHex());
  EXPECT_EQ(run["counts"]["unaudited"], 5);
  EXPECT_EQ(run["log_index"], 4);
  EXPECT_EQ(run["registered_ms"], absl::ToUnixMillis(network_.clock.Now()));
  EXPECT_TRUE(run["parent"].is_null());
  EXPECT_EQ(run["tokens"], network_.Record(4).tokens_before + network_.Record(4).tokens);
  EXPECT_EQ(run["last_step"]["step"], 4);
  EXPECT_EQ(run["operators"], 0);
  EXPECT_TRUE(run["backends"].empty());
  EXPECT_EQ(run["records_per_hour"], 5);
  EXPECT_EQ(run["confirmed_per_hour"], 0);

  const LeaseRow lease = network_.Lease(WorkerKey(0)).lease;
  EXPECT_EQ(Get("runs")["runs"][0]["counts"]["claimed"], lease.end_step - lease.first_step);
  network_.Match(lease, 0, WorkerKey(0));
  network_.Match(network_.Lease(WorkerKey(1), 0, "x86-avx512").lease, 0, WorkerKey(1),
                 "x86-avx512");
  run = Get(absl::StrCat("runs/", this->run()));
  EXPECT_EQ(run["counts"]["confirmed"], 1);
  EXPECT_EQ(run["operators"], 2);
  EXPECT_EQ(run["attestations"], 2);
  EXPECT_EQ(run["matches"], 2);
  EXPECT_EQ(run["backends"], Json::parse(R"([{"backend":"x86-avx2","matches":1},
                                             {"backend":"x86-avx512","matches":1}])"));
  EXPECT_EQ(run["confirmed_per_hour"], 1);
  const std::string manifest = run["manifest"];
  EXPECT_EQ(Sha256(AsBytes(manifest)).ToHex(), this->run());
  EXPECT_EQ(run["registration"], network_.RunEntry());
  network_.clock.Advance(absl::Minutes(61));
  run = Get("runs")["runs"][0];
  EXPECT_EQ(run["confirmed_per_hour"], 0);
  EXPECT_EQ(run["records_per_hour"], 0);
}

TEST_F(ApiTest, CheckpointsOfARun) {
  network_.AddRun(4);
  for (const uint64_t step : {3, 2}) {
    network_
        ->AnnounceCheckpoint(audit::TestEntry(network_.StateBefore(step), {audit::kTrainerKey}), {})
        .value();
  }
  Json run = Get(absl::StrCat("runs/", this->run()));
  EXPECT_EQ(run["checkpoint_count"], 2);
  ASSERT_EQ(run["checkpoints"].size(), 2u);
  EXPECT_EQ(run["checkpoints"][0]["step"], 2);
  EXPECT_EQ(run["checkpoints"][1]["step"], 3);
  EXPECT_EQ(run["checkpoints"][1]["by"], KeyOf(audit::kTrainerKey));
  EXPECT_EQ(run["checkpoints"][1]["manifest"], network_.StateBefore(3).manifest.ToHex());
  EXPECT_EQ(run["checkpoints"][1]["chain"], network_.Record(3).previous_chain.ToHex());
  EXPECT_EQ(run["checkpoints"][1]["available"], false);
  network_.has_artifacts = true;
  run = Get(absl::StrCat("runs/", this->run()));
  EXPECT_EQ(run["checkpoints"][1]["available"], true);
}

TEST_F(ApiTest, Coverage) {
  network_.on_record = [](audit::StepRecord& record) {
    if (record.step == 3) record.outcome = audit::StepOutcome::kSkippedSpike;
  };
  network_.AddOperator(0);
  network_.AddRun(6);
  const LeaseRow lease = network_.Lease(WorkerKey(0), 2).lease;
  network_.Match(lease, lease.first_step, WorkerKey(0));
  ASSERT_EQ(lease.first_step, 0u);
  const RawResponse response = Ask(RunPath("coverage"));
  EXPECT_EQ(response.Header("Content-Type"), "application/octet-stream");
  EXPECT_EQ(response.Header("Lockstep-First-Step"), "0");
  EXPECT_EQ(response.body, std::string("\x03\x02\x01\x11\x01\x01"));
  EXPECT_EQ(
      Ask(RunPath("coverage"), absl::StrCat("If-None-Match: ", response.Header("ETag"), "\r\n"))
          .status,
      304);
}

TEST_F(ApiTest, CurvesHaveHeldOutLosses) {
  network_.AddRun(4);
  audit::Evaluation said{.run_id = network_.run_id(),
                         .next_step = 2,
                         .chain = network_.Record(2).previous_chain,
                         .files = {{.name = "whales.jsonl",
                                    .sha256 = audit::TestDigest("whales", 0),
                                    .documents = 1,
                                    .bytes = 100,
                                    .tokens = 30,
                                    .nats_per_token = 3},
                                   {.name = "\"<b>",
                                    .sha256 = audit::TestDigest("tags", 0),
                                    .documents = 1,
                                    .bytes = 100,
                                    .tokens = 10,
                                    .nats_per_token = 5}}};
  const audit::EntryRef where =
      network_->PublishEvaluation(audit::TestEntry(said, {audit::kTrainerKey})).value();
  said.next_step = 4;
  said.chain = audit::ChainAfter(network_.Record(3));
  said.files.pop_back();
  network_->PublishEvaluation(audit::TestEntry(said, {audit::kTrainerKey})).value();
  const Json all = Get(RunPath("curves"))["held_out"];
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0]["set"], "whales.jsonl");
  EXPECT_EQ(all[1]["set"], "\"<b>");
  EXPECT_EQ(all[1]["nats_per_token"], 5);
  EXPECT_EQ(all[2]["set"], "all");
  EXPECT_EQ(all[2]["nats_per_token"], 3.5);
  EXPECT_EQ(all[2]["step"], 2);
  EXPECT_EQ(all[2]["log_index"], where.log_index);
  EXPECT_EQ(all[3]["step"], 4);
  EXPECT_EQ(Get(RunPath("curves?begin=3"))["held_out"].size(), 1u);
  EXPECT_EQ(Get(RunPath("curves?end=1"))["held_out"].size(), 0u);
}

TEST_F(ApiTest, CurvesKeepSpikes) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  network_.on_record = [](audit::StepRecord& record) {
    const auto step = static_cast<float>(record.step);
    record.loss = 10 - step / 10;
    record.z_loss = 2;
    record.gradient_norm = record.step == 7 ? 1000 : 1;
    record.learning_rate = step;
    if (record.step == 7) record.outcome = audit::StepOutcome::kSkippedSpike;
    if (record.step == 10 || record.step == 11) {
      record.loss = kNan;
      record.outcome = audit::StepOutcome::kSkippedNonFinite;
    }
  };
  network_.AddRun(13);
  Json curves = Get(RunPath("curves?buckets=7"));
  EXPECT_EQ(curves["begin"], 0);
  EXPECT_EQ(curves["end"], 13);
  EXPECT_EQ(curves["bucket_steps"], 2);
  EXPECT_EQ(curves["step"], Json({0, 2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(curves["gradient_norm"]["max"], Json({1, 1, 1, 1000, 1, 1, 1}));
  EXPECT_EQ(curves["gradient_norm"]["min"], Json({1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(curves["gradient_norm"]["mean"][3], 500.5);
  EXPECT_EQ(curves["learning_rate"]["last"], Json({1, 3, 5, 7, 9, 11, 12}));
  EXPECT_EQ(curves["z_loss"]["mean"], Json({2, 2, 2, 2, 2, 2, 2}));
  EXPECT_NEAR(curves["loss"]["mean"][0].get<double>(), 9.95, 1e-6);
  EXPECT_TRUE(curves["loss"]["min"][5].is_null());
  EXPECT_TRUE(curves["loss"]["mean"][5].is_null());
  EXPECT_EQ(curves["skipped"], Json::parse(R"([{"step":7,"outcome":2},{"step":10,"outcome":1},
                                               {"step":11,"outcome":1}])"));
  EXPECT_EQ(curves["skipped_count"], 3);
  EXPECT_EQ(curves["spikes"], Json::parse(R"([{"step":7,"outcome":2}])"));
  EXPECT_EQ(curves["spike_count"], 1);
  EXPECT_EQ(curves["held_out"], Json::array());
  curves = Get(RunPath("curves?begin=6&end=8"));
  EXPECT_EQ(curves["step"], Json({6, 7}));
  EXPECT_EQ(curves["spikes"][0]["step"], 7);
  for (const char* const empty : {"begin=13", "begin=5&end=5", "begin=8&end=3", "end=0"}) {
    EXPECT_EQ(Get(RunPath(absl::StrCat("curves?", empty)))["step"], Json::array()) << empty;
  }
  EXPECT_EQ(Get(RunPath("steps/10"))["loss"], "nan");
}

TEST_F(ApiTest, StepsPageByPage) {
  network_.AddOperator(0);
  network_.AddRun(7);
  network_.Match(network_.Lease(WorkerKey(0)).lease, 2, WorkerKey(0));
  for (const int limit : {1, 2, 3, 7, 1000}) {
    const std::vector<Json> steps = All(RunPath("steps"), "steps", limit);
    ASSERT_EQ(steps.size(), 7u);
    for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i]["step"], i);
  }
  const Json step = Get(RunPath("steps?begin=2"))["steps"][0];
  EXPECT_EQ(step["step"], 2);
  EXPECT_EQ(step["state"], "provisional");
  EXPECT_EQ(step["matches"], 1);
  EXPECT_EQ(step["operators"], 1);
  EXPECT_EQ(step["backends"], 1);
  EXPECT_EQ(step["attestations"], 1);
  EXPECT_EQ(step["outcome"], 0);
  EXPECT_EQ(step["tokens_before"], network_.Record(2).tokens_before);
  EXPECT_EQ(step["updates"], 3);
  EXPECT_EQ(step["received_ms"], absl::ToUnixMillis(network_.clock.Now()));
  const std::vector<Json> unaudited = All(RunPath("steps?state=unaudited"), "steps", 1);
  const std::vector<Json> claimed = All(RunPath("steps?state=claimed"), "steps", 2);
  EXPECT_EQ(unaudited.size() + claimed.size(), 6u);
  EXPECT_EQ(Get(RunPath("steps?state=provisional"))["steps"].size(), 1u);
  EXPECT_EQ(Get(RunPath("steps?state=disputed"))["steps"].size(), 0u);
  EXPECT_TRUE(Get(RunPath("steps?begin=7"))["steps"].empty());
}

TEST_F(ApiTest, AStepWithAllThereIs) {
  network_.AddOperator(0);
  network_.AddRun(3);
  const LeaseRow lease = network_.Lease(WorkerKey(0)).lease;
  const audit::Attestation said = network_.Found(lease, 1, WorkerKey(0));
  const AttestationAnswer answer = network_.Attest(said, WorkerKey(0)).value();
  Json step = Get(RunPath("steps/1"));
  EXPECT_EQ(step["attestations"][0]["counts"], false);
  EXPECT_EQ(step["attestations"][0]["why_not"], "it has not opened what was asked for");
  EXPECT_EQ(step["awaiting_openings"], 1);
  network_.Open(network_.Openings(said, answer, WorkerKey(0)), WorkerKey(0)).value();
  step = Get(RunPath("steps/1"));
  const audit::StepRecord& record = network_.Record(1);
  EXPECT_EQ(step["run"], run());
  const std::string bytes = Base64Decode(step["record"].get<std::string>()).value();
  EXPECT_EQ(bytes, EncodeStepRecord(record));
  EXPECT_EQ(step["record_digest"], Sha256(AsBytes(bytes)).ToHex());
  EXPECT_EQ(step["previous_chain"], record.previous_chain.ToHex());
  EXPECT_EQ(step["chain"], ChainAfter(record).ToHex());
  EXPECT_EQ(step["roots"]["transcript"], record.transcript.ToHex());
  EXPECT_EQ(step["roots"]["parameters"], record.parameters.ToHex());
  EXPECT_EQ(step["record_envelope"], network_.RecordEntries(1, 1)[0]);
  EXPECT_EQ(step["attestation_count"], 1);
  EXPECT_EQ(step["openings_needed"], 1);
  EXPECT_EQ(step["transcript_leaves"], audit::TestTranscript(1).size());
  EXPECT_EQ(step["first_step"], 0);
  EXPECT_EQ(step["last_step"], 2);
  EXPECT_TRUE(step["second_record"].is_null());
  EXPECT_TRUE(step["disputes"].empty());
  const Json& attestation = step["attestations"][0];
  EXPECT_EQ(attestation["log_index"], answer.entry->log_index);
  EXPECT_EQ(attestation["leaf_hash"], answer.entry->leaf_hash.ToHex());
  EXPECT_EQ(attestation["envelope"], audit::TestEntry(said, {WorkerKey(0)}));
  EXPECT_EQ(attestation["worker_key"], KeyOf(WorkerKey(0)));
  EXPECT_EQ(attestation["operator_key"], KeyOf(OperatorKey(0)));
  EXPECT_EQ(attestation["operator"], "operator 0");
  EXPECT_EQ(attestation["backend"], "x86-avx2");
  EXPECT_EQ(attestation["isa"], "avx2");
  EXPECT_EQ(attestation["cpu"], "a processor");
  EXPECT_EQ(attestation["threads"], 4);
  EXPECT_EQ(attestation["engine"]["numerics"], said.engine.numerics);
  EXPECT_EQ(attestation["replayed_at"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(attestation["verdict"], "match");
  EXPECT_EQ(attestation["counts"], true);
  EXPECT_EQ(attestation["why_not"], "");
  EXPECT_EQ(attestation["openings_given"], 1);
  ASSERT_EQ(attestation["openings"].size(), 1u);
  EXPECT_EQ(Get(absl::StrCat("log/entries/", attestation["openings"][0].get<int>()))["kind"],
            "opening");
  ASSERT_EQ(step["leases"].size(), 1u);
  EXPECT_EQ(step["leases"][0]["operator"], "operator 0");
  EXPECT_EQ(step["leases"][0]["backend"], "x86-avx2");
  EXPECT_EQ(step["leases"][0]["granted_ms"], absl::ToUnixMillis(network_.clock.Now()));
  EXPECT_EQ(Get(RunPath("steps/0"))["state"], "claimed");
  // In a list the same attestation is without what only its envelope says.
  const Json listed = Get(RunPath("attestations"))["attestations"][0];
  for (const char* const field :
       {"leaf_hash", "isa", "cpu", "threads", "engine", "replayed_at", "openings", "envelope"}) {
    EXPECT_TRUE(listed.at(field).is_null()) << field;
  }
  Restart();
  EXPECT_TRUE(Get(RunPath("steps/1"))["leases"][0]["backend"].is_null());
}

TEST_F(ApiTest, AttestationsByFilter) {
  for (const int n : {0, 1}) network_.AddOperator(n, 2);
  network_.AddRun(4);
  for (const auto& [key, backend] :
       {std::pair(WorkerKey(0), "x86-avx2"), std::pair(WorkerKey(1), "x86-avx512"),
        std::pair(WorkerKey(0, 1), "x86-avx2")}) {
    const LeaseGrant grant = network_.Lease(key, 0, backend);
    for (uint64_t step = grant.begin_step; step < grant.lease.end_step; ++step) {
      network_.Match(grant.lease, step, key, backend);
    }
    if (key == WorkerKey(1)) break;
  }
  const auto count = [&](const std::string& query) {
    return All(RunPath(absl::StrCat("attestations?", query)), "attestations", 3).size();
  };
  EXPECT_EQ(count("newest=0"), 8u);
  EXPECT_EQ(count("newest=1"), 8u);
  EXPECT_EQ(count("backend=x86-avx2"), 4u);
  EXPECT_EQ(count("backend=cuda-sm90"), 0u);
  EXPECT_EQ(count("verdict=match"), 8u);
  EXPECT_EQ(count("verdict=mismatch"), 0u);
  EXPECT_EQ(count("step=2"), 2u);
  EXPECT_EQ(count("step=2&newest=1&backend=x86-avx512"), 1u);
  EXPECT_EQ(count("step=4000"), 0u);
  EXPECT_EQ(count(absl::StrCat("operator=", KeyOf(OperatorKey(1)))), 4u);
  EXPECT_EQ(count(absl::StrCat("operator=", KeyOf(OperatorKey(2)))), 0u);
  EXPECT_EQ(count(absl::StrCat("worker=", KeyOf(WorkerKey(0)))), 4u);
  EXPECT_EQ(count(absl::StrCat("worker=", KeyOf(WorkerKey(0, 1)))), 0u);
  EXPECT_EQ(count(absl::StrCat("worker=", KeyOf(audit::kTrainerKey))), 0u);
  std::vector<Json> up = All(RunPath("attestations"), "attestations", 3);
  const std::vector<Json> down = All(RunPath("attestations?newest=1"), "attestations", 3);
  std::reverse(up.begin(), up.end());
  EXPECT_EQ(up, down);
  // An operator's earlier key means the same operator.
  network_
      .AddKey(audit::RotateEvent{.old_key = audit::TestPublicKey(OperatorKey(1)),
                                 .new_key = audit::TestPublicKey(950)},
              {OperatorKey(1), 950})
      .value();
  EXPECT_EQ(count(absl::StrCat("operator=", KeyOf(OperatorKey(1)))), 4u);
  EXPECT_EQ(count(absl::StrCat("operator=", KeyOf(950))), 4u);
  EXPECT_EQ(up[0]["operator_key"], KeyOf(OperatorKey(1)));
  EXPECT_EQ(Get(RunPath("attestations?newest=1"))["attestations"][0]["operator_key"], KeyOf(950));
}

TEST_F(ApiTest, WhatBecameOfLeases) {
  network_.AddOperator(0, 2);
  AddOperator(1, "operator 1", "", "<b>a machine</b>");
  network_.AddRun(64);
  const auto ended = [&](int key, ReleaseReason reason, const std::string& detail) {
    const LeaseRow lease = network_.Lease(key).lease;
    network_.clock.Advance(absl::Seconds(30));
    EXPECT_TRUE(
        network_->ReleaseLease(network_.CallerOf(key), lease.lease_id, reason, detail).ok());
    return lease;
  };
  EXPECT_EQ(Get(RunPath("leases"))["leases"], Json::array());
  const int64_t granted = absl::ToUnixMillis(network_.clock.Now());
  const LeaseRow first =
      ended(WorkerKey(0), ReleaseReason::kCanceled, "somebody is\nat the keyboard");
  ended(WorkerKey(1), ReleaseReason::kInconclusive, "</td><b>\"a shard\" has another digest");
  const LeaseRow done = network_.Lease(WorkerKey(0), 1).lease;
  network_.clock.Advance(absl::Seconds(1));  // no two end at the same time
  network_.Match(done, done.first_step, WorkerKey(0));
  const LeaseRow late = network_.Lease(WorkerKey(0, 1), 2).lease;
  network_.clock.Advance(absl::Hours(100));
  const LeaseRow live = network_.Lease(WorkerKey(0), 1).lease;  // ends the one that ran out

  std::vector<Json> leases = All(RunPath("leases"), "leases", 1000);
  ASSERT_EQ(leases.size(), 4u);
  EXPECT_EQ(leases[0]["state"], "expired");
  EXPECT_EQ(leases[1]["state"], "done");
  EXPECT_EQ(leases[2]["state"], "inconclusive");
  EXPECT_EQ(leases[3], Json({{"run", run()},
                             {"state", "canceled"},
                             {"first_step", first.first_step},
                             {"end_step", first.end_step},
                             {"worker_key", KeyOf(WorkerKey(0))},
                             {"operator_key", KeyOf(OperatorKey(0))},
                             {"operator", "operator 0"},
                             {"hardware", "a machine"},
                             {"backends", Json::array({"x86-avx2"})},
                             {"granted_ms", granted},
                             {"ended_ms", granted + 30'000},
                             {"detail", "somebody is at the keyboard"}}));
  EXPECT_EQ(leases[2]["detail"], "</td><b>\"a shard\" has another digest");
  EXPECT_EQ(leases[2]["hardware"], "<b>a machine</b>");
  EXPECT_EQ(leases[2]["backends"], Json::array());  // it has not attested anything
  EXPECT_EQ(leases[1]["end_step"], done.end_step);
  EXPECT_EQ(leases[1]["detail"], "");
  EXPECT_EQ(leases[0]["first_step"], late.first_step);
  EXPECT_EQ(leases[0]["worker_key"], KeyOf(WorkerKey(0, 1)));
  for (const int limit : {1, 2, 3, 4}) {
    EXPECT_EQ(All(RunPath("leases"), "leases", limit), leases) << limit;
    EXPECT_EQ(All("leases", "leases", limit), leases) << limit;
  }
  const Json held = Get(RunPath("leases?state=live"));
  ASSERT_EQ(held["leases"].size(), 1u);
  EXPECT_TRUE(held["next"].is_null());
  EXPECT_EQ(held["leases"][0]["first_step"], live.first_step);
  EXPECT_EQ(held["leases"][0]["granted_ms"], absl::ToUnixMillis(network_.clock.Now()));
  EXPECT_TRUE(held["leases"][0]["ended_ms"].is_null());

  const auto states = [&](const std::string& query) {
    std::vector<std::string> found;
    for (const Json& lease : All(RunPath(absl::StrCat("leases?", query)), "leases", 2)) {
      found.push_back(lease["state"]);
    }
    return found;
  };
  EXPECT_THAT(states("state=unfinished"), ElementsAre("expired", "inconclusive", "canceled"));
  EXPECT_THAT(states("state=done"), ElementsAre("done"));
  const std::string zero = absl::StrCat("operator=", KeyOf(OperatorKey(0)));
  EXPECT_THAT(states(zero), ElementsAre("expired", "done", "canceled"));
  EXPECT_THAT(states(absl::StrCat(zero, "&state=live")), ElementsAre("live"));
  EXPECT_THAT(states(absl::StrCat(zero, "&worker=", KeyOf(WorkerKey(0)))),
              ElementsAre("done", "canceled"));
  EXPECT_THAT(states(absl::StrCat(zero, "&worker=", KeyOf(WorkerKey(1)))), ElementsAre());
  EXPECT_THAT(states(absl::StrCat("worker=", KeyOf(WorkerKey(1)))), ElementsAre("inconclusive"));
  for (const int nobodys : {OperatorKey(0), audit::kTrainerKey, 950}) {
    EXPECT_THAT(states(absl::StrCat("worker=", KeyOf(nobodys))), ElementsAre());
  }
  EXPECT_THAT(states(absl::StrCat("operator=", KeyOf(950))), ElementsAre());
  // An operator's earlier key means the same operator.
  network_
      .AddKey(audit::RotateEvent{.old_key = audit::TestPublicKey(OperatorKey(0)),
                                 .new_key = audit::TestPublicKey(950)},
              {OperatorKey(0), 950})
      .value();
  EXPECT_EQ(states(zero).size(), 3u);
  EXPECT_EQ(states(absl::StrCat("operator=", KeyOf(950))).size(), 3u);
  EXPECT_EQ(Get(RunPath("leases"))["leases"][3]["operator_key"], KeyOf(950));

  // A page goes on where the one before ended, though others have ended since.
  const std::string next = Get(RunPath("leases?limit=1"))["next"];
  network_.clock.Advance(absl::Seconds(1));
  network_->ReleaseLease(network_.CallerOf(WorkerKey(0)), live.lease_id, ReleaseReason::kCanceled)
      .IgnoreError();
  EXPECT_EQ(Get(RunPath(absl::StrCat("leases?page=", next)))["leases"][0]["state"], "done");
  EXPECT_EQ(Get(RunPath("leases"))["leases"].size(), 5u);
}

// Leases of two runs, and more of them than one page looks at.
TEST_F(ApiTest, ManyLeases) {
  constexpr int kLeases = 6'000;
  network_.AddOperator(0);
  network_.AddRun(4);
  const Digest first = network_.run_id();
  network_.UseRun(1);
  network_.AddRun(4);
  network_.Close();
  {
    const auto store = SqliteStore::Open(network_.options.directory + "/store.sqlite").value();
    const auto transaction = store->Write().value();
    for (int i = 0; i < kLeases; ++i) {
      const bool mine = i % 1'000 == 0;
      LeaseRow row{.lease_id = audit::TestDigest("lease", i).ToHex().substr(0, 32),
                   .key = mine ? Digest{audit::TestPublicKey(WorkerKey(0)).bytes}
                               : audit::TestDigest("somebody", i),
                   .operator_key = Digest{audit::TestPublicKey(OperatorKey(0)).bytes},
                   .address = "",
                   .attempt_id = "",
                   .nonce = audit::TestDigest("nonce", i),
                   .run = i % 3 == 0 ? first : network_.run_id(),
                   .end_step = 1,
                   .state = i % 2 == 0 ? LeaseState::kExpired : LeaseState::kDone,
                   .bound_ms = int64_t{1} << 50,
                   .granted_unix_ms = 1,
                   .ended_unix_ms = 2 + i / 4};  // some at the same time
      ASSERT_TRUE(transaction->PutLease(row).ok());
    }
    ASSERT_TRUE(transaction->Commit().ok());
  }
  Restart();
  const std::vector<Json> all = All("leases", "leases", 1000);
  ASSERT_EQ(all.size(), static_cast<size_t>(kLeases));
  EXPECT_EQ(All("leases", "leases", 77), all);
  for (size_t i = 1; i < all.size(); ++i) ASSERT_LE(all[i]["ended_ms"], all[i - 1]["ended_ms"]);
  EXPECT_EQ(All(RunPath("leases"), "leases", 1000).size(), size_t{kLeases} * 2 / 3);
  EXPECT_EQ(All("leases?state=expired", "leases", 1000).size(), size_t{kLeases} / 2);
  // Of somebody with few, a page at a time, and that is not the end of the list.
  const std::string mine = absl::StrCat("leases?worker=", KeyOf(WorkerKey(0)));
  const Json page = Get(mine);
  EXPECT_EQ(page["leases"].size(), 4u);
  EXPECT_FALSE(page["next"].is_null());
  EXPECT_EQ(All(mine, "leases", 100).size(), 6u);
  EXPECT_EQ(All(mine, "leases", 1).size(), 6u);
}

TEST_F(ApiTest, Disputes) {
  network_.AddOperator(0);
  network_.AddOperator(1);
  network_.AddRun(4);
  const LeaseRow lease = network_.Lease(WorkerKey(0)).lease;
  const LeaseRow other = network_.Lease(WorkerKey(1)).lease;
  audit::StepRecord wrong = network_.Record(0);
  wrong.parameters = audit::TestDigest("wrong", 0);
  const AttestationAnswer said =
      network_.Attest(network_.Found(lease, 0, WorkerKey(0), &wrong), WorkerKey(0)).value();
  const audit::StepRecord second =
      audit::TestRecord(network_.registration(), &network_.Record(0), "second");
  const std::string second_entry = audit::TestEntry(
      audit::PublishedRecord{.run_id = network_.run_id(), .record = second}, {audit::kTrainerKey});
  EXPECT_FALSE(network_->PublishRecords(network_.run_id(), {second_entry}).ok());
  const audit::Attestation copied = network_.Found(other, 2, WorkerKey(1));
  const AttestationAnswer answer = network_.Attest(copied, WorkerKey(1)).value();
  std::vector<audit::Opening> openings = network_.Openings(copied, answer, WorkerKey(1));
  openings[0].proof[0] = audit::TestDigest("made up", 1);
  EXPECT_FALSE(network_.Open(openings, WorkerKey(1)).ok());

  const std::vector<Json> disputes = All("disputes", "disputes", 2);
  ASSERT_EQ(disputes.size(), 3u);
  EXPECT_EQ(All(RunPath("disputes"), "disputes", 1), disputes);
  EXPECT_EQ(Get("disputes?newest=1&limit=1")["disputes"][0], disputes[2]);
  EXPECT_EQ(disputes[0]["reason"], "mismatch");
  EXPECT_EQ(disputes[0]["step"], 0);
  EXPECT_EQ(disputes[0]["run"], run());
  EXPECT_EQ(disputes[0]["state"], "disputed");
  EXPECT_EQ(
      disputes[0]["evidence"],
      Json({{{"log_index", said.entry->log_index}, {"leaf_hash", said.entry->leaf_hash.ToHex()}}}));
  EXPECT_EQ(Base64Decode(disputes[0]["published_record"].get<std::string>()).value(),
            EncodeStepRecord(network_.Record(0)));
  EXPECT_EQ(Base64Decode(disputes[0]["computed_record"].get<std::string>()).value(),
            EncodeStepRecord(wrong));
  EXPECT_EQ(disputes[0]["first_difference"]["field"], "parameters");
  EXPECT_EQ(disputes[0]["first_difference"]["place"], "tensor head, chunk 0 of 1");
  EXPECT_EQ(disputes[1]["reason"], "second-history");
  EXPECT_EQ(Base64Decode(disputes[1]["computed_record"].get<std::string>()).value(),
            EncodeStepRecord(second));
  EXPECT_EQ(disputes[1]["first_difference"]["field"], "parameters");
  EXPECT_EQ(disputes[2]["reason"], "bad-opening");
  EXPECT_EQ(disputes[2]["evidence"][0]["envelope"], audit::TestEntry(openings[0], {WorkerKey(1)}));
  EXPECT_FALSE(disputes[2].contains("published_record"));

  Json step = Get(RunPath("steps/0"));
  EXPECT_EQ(step["state"], "disputed");
  EXPECT_EQ(step["disputes"], Json::array({disputes[0]}));
  EXPECT_EQ(step["attestations"][0]["verdict"], "mismatch");
  EXPECT_EQ(step["attestations"][0]["difference"]["found"], wrong.parameters.ToHex());
  step = Get(RunPath("steps/1"));
  EXPECT_EQ(step["second_history"], true);
  EXPECT_EQ(step["second_record"]["envelope"], second_entry);
  EXPECT_EQ(Get(RunPath("steps/2"))["voided"], 1);
  EXPECT_EQ(Get("runs")["runs"][0]["disputes"], 3);
  EXPECT_EQ(Get("runs")["runs"][0]["mismatches"], 1);
}

TEST_F(ApiTest, OperatorsAndWorkers) {
  network_.AddOperator(0, 2);
  network_.AddOperator(1);
  network_.AddRun(4);
  const LeaseRow lease = network_.Lease(WorkerKey(0)).lease;
  network_.Match(lease, 0, WorkerKey(0));
  network_.Attest(network_.Found(lease, 1, WorkerKey(0)), WorkerKey(0)).value();
  audit::Attestation late = network_.Found(lease, 2, WorkerKey(0));
  late.nonce = audit::TestDigest("another nonce", 0);
  EXPECT_FALSE(network_.Attest(late, WorkerKey(0)).ok());
  network_.clock.Advance(absl::Seconds(5));
  const LeaseRow other = network_.Lease(WorkerKey(1)).lease;
  audit::StepRecord wrong = network_.Record(0);
  wrong.gradient = audit::TestDigest("wrong", 0);
  network_.Attest(network_.Found(other, 0, WorkerKey(1), &wrong), WorkerKey(1)).value();

  std::vector<Json> operators = All("operators", "operators", 1);
  ASSERT_EQ(operators.size(), 2u);
  EXPECT_EQ(operators[0]["key"], KeyOf(OperatorKey(0)));
  EXPECT_EQ(operators[0]["worker_keys"], 2);
  EXPECT_EQ(operators[0]["revoked"], false);
  EXPECT_TRUE(operators[0]["revoked_reason"].is_null());
  EXPECT_EQ(operators[0]["credit"],
            Json::parse(R"({"valid":1,"pending":1,"rejected":1,"mismatches":0})"));
  EXPECT_EQ(operators[0]["rejected_why"], Json::parse(R"([{"reason":"NONCE_WRONG","count":1}])"));
  EXPECT_EQ(operators[0]["backends"], Json::array({"x86-avx2"}));
  EXPECT_EQ(operators[0]["last_seen_ms"], absl::ToUnixMillis(network_.clock.Now()) - 5000);
  EXPECT_EQ(operators[0]["received_ms"], absl::ToUnixMillis(network_.clock.Now()) - 5000);
  EXPECT_EQ(operators[1]["credit"]["mismatches"], 1);
  EXPECT_EQ(operators[1]["last_seen_ms"], absl::ToUnixMillis(network_.clock.Now()));

  Json one = Get(absl::StrCat("operators/", KeyOf(OperatorKey(0))));
  ASSERT_EQ(one["workers"].size(), 2u);
  EXPECT_EQ(one["workers"][0]["key"], KeyOf(WorkerKey(0)));
  ASSERT_EQ(one["recent"].size(), 2u);
  EXPECT_EQ(one["recent"][0]["step"], 1);
  const std::vector<Json> workers = All("workers", "workers", 1);
  ASSERT_EQ(workers.size(), 3u);
  EXPECT_EQ(workers[0], one["workers"][0]);
  Json worker = Get(absl::StrCat("workers/", KeyOf(WorkerKey(0))));
  EXPECT_EQ(worker["recent"], one["recent"]);
  worker.erase("recent");
  EXPECT_EQ(worker, workers[0]);
  EXPECT_EQ(worker["operator"], "operator 0");
  EXPECT_EQ(worker["hardware"], "a machine");
  EXPECT_EQ(worker["ended"], false);
  EXPECT_TRUE(worker["trust"].contains("valid_in_a_row"));

  network_
      .AddKey(
          audit::RevokeEvent{.key = audit::TestPublicKey(OperatorKey(0)), .reason = "stolen <b>"},
          {OperatorKey(0)})
      .value();
  one = Get(absl::StrCat("operators/", KeyOf(OperatorKey(0))));
  EXPECT_EQ(one["revoked"], true);
  EXPECT_EQ(one["revoked_reason"], "stolen <b>");
  EXPECT_EQ(Get(absl::StrCat("log/entries/", one["revoked_log_index"].get<int>()))["kind"], "key");
  EXPECT_EQ(one["workers"][0]["ended"], true);
  EXPECT_EQ(one["workers"][0]["ended_log_index"], one["revoked_log_index"]);
}

TEST_F(ApiTest, TheLog) {
  network_.AddOperator(0);
  network_.AddRun(3);
  const Json head = Get("log");
  EXPECT_EQ(head["size"], 6);
  EXPECT_EQ(head["checkpoint"], network_->log().Checkpoint());
  EXPECT_EQ(head["root"], network_->log().Root().ToHex());
  EXPECT_EQ(head["key"], network_->log_key().ToText());
  const std::vector<Json> up = All("log/entries", "entries", 2);
  std::vector<Json> down = All("log/entries?newest=1", "entries", 4);
  ASSERT_EQ(up.size(), 6u);
  std::reverse(down.begin(), down.end());
  EXPECT_EQ(up, down);
  EXPECT_EQ(up[2]["kind"], "run");
  EXPECT_EQ(up[2]["run"], run());
  EXPECT_TRUE(up[2]["step"].is_null());
  EXPECT_EQ(up[4]["step"], 1);
  EXPECT_TRUE(up[0]["run"].is_null());
  EXPECT_EQ(Get("log/entries?begin=4")["entries"].size(), 2u);
  EXPECT_EQ(Get("log/entries?begin=4&newest=1")["entries"][0]["index"], 4);
  EXPECT_EQ(Get("log/entries?begin=4&newest=1")["entries"].size(), 5u);
  for (const Json& entry : up) {
    const Json page = Get(absl::StrCat("log/entries/", entry["index"].get<int>()));
    const std::string envelope = page["envelope"];
    EXPECT_EQ(page["bytes"], envelope.size());
    const Digest leaf_hash = MerkleLeafHash(AsBytes(envelope));
    EXPECT_EQ(page["leaf_hash"], leaf_hash.ToHex());
    const audit::LogProof proof = audit::ParseLogProof(page["receipt"].get<std::string>()).value();
    EXPECT_TRUE(audit::VerifyLogProof(proof, leaf_hash, network_->log_key()).ok());
    EXPECT_EQ(Get(absl::StrCat("log/entries/by-leaf/", leaf_hash.ToHex())), page);
  }
}

TEST_F(ApiTest, HostileNames) {
  const std::string name = "</script><b>\"'&\\ \u202e\u2028\U0001F600";
  const std::string contact = "javascript:alert(1)";
  const std::string hardware = "=cmd|' /C calc'!A0";
  AddOperator(0, name, contact, hardware);
  const RawResponse response = Ask("operators");
  EXPECT_EQ(Json::parse(response.body)["operators"][0]["name"], name);
  EXPECT_EQ(Json::parse(response.body)["operators"][0]["contact"], contact);
  EXPECT_EQ(Get("workers")["workers"][0]["hardware"], hardware);
  // Control characters and text that is no UTF-8 do not get into the log.
  for (const char* const refused : {"a\x01", "a\nb", "a\x7f"}) {
    EXPECT_FALSE(network_
                     .AddKey(audit::OperatorEvent{.operator_key = audit::TestPublicKey(960),
                                                  .revocation_key = audit::TestPublicKey(961),
                                                  .name = refused,
                                                  .contact = ""},
                             {960})
                     .ok());
  }
  const absl::StatusOr<audit::EntryRef> refused = network_->SubmitKeyEvent(
      R"({"payload":"eyJuYW1lIjoi/yJ9","payloadType":"application/vnd.lockstep.key-event.v1+json","signatures":[]})");
  EXPECT_FALSE(refused.ok());
}

TEST_F(ApiTest, EventsAsTheyHappen) {
  network_.AddOperator(0);
  network_.AddRun(2);
  RawClient listener(server_->port());
  listener.Send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(listener.ReceiveUntil("id: epoch."));
  EXPECT_THAT(listener.buffer(), HasSubstr("Access-Control-Allow-Origin: *"));
  const LeaseRow lease = network_.Lease(WorkerKey(0)).lease;
  const audit::Attestation said = network_.Found(lease, 1, WorkerKey(0));
  const AttestationAnswer answer = network_.Attest(said, WorkerKey(0)).value();
  network_.Open(network_.Openings(said, answer, WorkerKey(0)), WorkerKey(0)).value();
  network_->PublishRecords(network_.run_id(), network_.RecordEntries(2, 2)).value();
  network_.AddOperator(1);
  network_->ReleaseLease(network_.CallerOf(WorkerKey(0)), lease.lease_id, ReleaseReason::kCanceled)
      .IgnoreError();
  ASSERT_TRUE(listener.ReceiveUntil("\"claimed\":false}"));
  const std::string heard = listener.buffer();
  const std::string run_field = absl::StrCat(R"({"run":")", run(), R"(",)");
  for (const std::string& event :
       {absl::StrCat("event: lease\ndata: ", run_field, R"("begin":0,"end":2,"claimed":true})"),
        absl::StrCat("event: attestation\ndata: ", run_field, R"("step":1,"log_index":)",
                     answer.entry->log_index, R"(,"operator":"operator 0","operator_key":")",
                     KeyOf(OperatorKey(0)), R"(","backend":"x86-avx2","verdict":"match"})"),
        absl::StrCat("event: step\ndata: ", run_field, R"("step":1,"state":"provisional"})"),
        absl::StrCat("event: records\ndata: ", run_field,
                     R"("first_step":2,"end_step":4,"next_step":4})"),
        absl::StrCat("event: key\ndata: {\"operator\":\"", KeyOf(OperatorKey(1)), "\""),
        absl::StrCat("event: key\ndata: {\"worker\":\"", KeyOf(WorkerKey(1)), "\"")}) {
    EXPECT_THAT(heard, HasSubstr(event));
  }
}

// There is no state but what is on the disk.
TEST_F(ApiTest, ARestartChangesNothing) {
  for (const int n : {0, 1}) network_.AddOperator(n);
  network_.AddRun(4);
  for (const int n : {0, 1}) {
    const LeaseRow lease = network_.Lease(WorkerKey(n)).lease;
    for (uint64_t step = lease.first_step; step < lease.end_step; ++step) {
      network_.Match(lease, step, WorkerKey(n));
    }
  }
  const std::vector<std::string> paths = {"runs",
                                          absl::StrCat("runs/", run()),
                                          RunPath("curves"),
                                          RunPath("steps"),
                                          RunPath("steps/1"),
                                          RunPath("attestations"),
                                          RunPath("leases"),
                                          "operators",
                                          "workers",
                                          absl::StrCat("operators/", KeyOf(OperatorKey(1))),
                                          "log/entries"};
  std::vector<std::string> before;
  for (const std::string& path : paths) before.push_back(Ask(path).body);
  Restart();
  for (size_t i = 0; i < paths.size(); ++i) EXPECT_EQ(Ask(paths[i]).body, before[i]) << paths[i];
}

}  // namespace
}  // namespace lockstep::coordinator
