// SPDX-License-Identifier: Apache-2.0
//
// The services through real gRPC on loopback: what is refused and why, what may come again, what
// the public reads. What the operations do is core/coordinator_test.cc's.

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "coordinator/testing/service_fixture.h"

namespace lockstep::coordinator {
namespace {

using audit::TestDigest;
using audit::TestEntry;
using audit::TestPublicKey;
using audit::WorkerKey;
using ::testing::HasSubstr;

TEST_F(ServiceTest, AnAuditFromKeysToConfirmation) {
  Begin(3);
  const auto info = client_->Call<v1::GetServerInfoResponse>(
      client_->audit(), &v1::AuditService::Stub::GetServerInfo, v1::GetServerInfoRequest());
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->origin(), network_.options.origin);
  EXPECT_EQ(audit::NoteKey::FromText(info->log_key()).value(), network_->log_key());
  for (const int key : {WorkerKey(0), WorkerKey(1)}) {
    const v1::AcquireLeaseResponse acquired = client_->Acquire(key).value();
    ASSERT_TRUE(acquired.has_lease()) << acquired.no_work_reason();
    const v1::Lease& lease = acquired.lease();
    EXPECT_EQ(lease.run_envelope(), network_.RunEntry());
    ASSERT_EQ(static_cast<uint64_t>(lease.records_size()), lease.end_step() - lease.begin_step());
    EXPECT_EQ(lease.records(0), network_.RecordEntries(static_cast<int>(lease.begin_step()), 1)[0]);
    for (uint64_t step = lease.begin_step(); step < lease.end_step(); ++step) {
      const audit::Attestation said = Found(lease, step, key);
      const std::string envelope = TestEntry(said, {key});
      const auto submitted = client_->Submit(envelope, key);
      ASSERT_TRUE(submitted.ok()) << submitted.status();
      CheckReceipt(submitted->receipt(), envelope);
      ASSERT_EQ(submitted->challenge().size(), 64u);
      const v1::SubmitOpeningRequest openings = Openings(said, envelope, *submitted, key);
      const auto opened =
          client_->Signed<v1::SubmitOpeningResponse>("SubmitOpening", key, openings);
      ASSERT_TRUE(opened.ok()) << opened.status();
      CheckReceipt(opened->receipt(), openings.envelopes(openings.envelopes_size() - 1));
    }
  }
  v1::GetCoverageRequest request;
  request.set_run_id(ToString(network_.run_id().bytes));
  const auto coverage = client_->Call<v1::GetCoverageResponse>(
      client_->open(), &v1::PublicService::Stub::GetCoverage, request);
  ASSERT_TRUE(coverage.ok()) << coverage.status();
  EXPECT_EQ(coverage->states(), std::string(3, static_cast<char>(v1::STEP_STATE_CONFIRMED)));
  EXPECT_EQ(coverage->counts().confirmed(), 3u);
}

TEST_F(ServiceTest, ASignatureIsForOneMethodAndOneCoordinator) {
  Begin(2);
  const int key = WorkerKey(0);
  v1::HeartbeatRequest payload;
  *payload.mutable_header() = client_->Header(key);
  payload.set_lease_id(std::string(16, 'x'));
  const std::string method = "/lockstep.v1.AuditService/Heartbeat";
  const auto send = [&](const v1::SignedRequest& request) {
    return client_->Send<v1::HeartbeatResponse>(request);
  };
  const auto sign = [&](const std::string& name, const std::string& origin) {
    return rpc::SignRequest(audit::TestKey(key), name, origin, payload);
  };
  const std::string origin = network_.options.origin;
  EXPECT_THAT(send(sign(method, origin)), HasReason("LEASE_UNKNOWN"));
  EXPECT_THAT(send(sign("/lockstep.v1.AuditService/ReleaseLease", origin)),
              HasReason("SIGNATURE_INVALID"));
  EXPECT_THAT(send(sign(method, "another.example/log")), HasReason("SIGNATURE_INVALID"));
  v1::SignedRequest request = sign(method, origin);
  request.mutable_payload()->back() ^= 1;
  EXPECT_THAT(send(request), HasReason("SIGNATURE_INVALID"));
  request = sign(method, origin);
  request.set_public_key(std::string(1, '\1') + std::string(31, '\0'));
  EXPECT_THAT(send(request), HasReason("SIGNATURE_INVALID")) << "a key of small order";
  EXPECT_THAT(send(v1::SignedRequest()), HasReason("SIGNATURE_INVALID"));
}

TEST_F(ServiceTest, FieldsThatCannotBeAreNamed) {
  Begin(2);
  const int key = WorkerKey(0);
  v1::AcquireLeaseRequest acquire;
  *acquire.mutable_header() = client_->Header(key);
  acquire.mutable_header()->set_request_id("short");
  EXPECT_THAT(client_->Signed<v1::AcquireLeaseResponse>("AcquireLease", key, acquire),
              HasReason("REQUEST_INVALID"));
  *acquire.mutable_header() = client_->Header(key);
  acquire.mutable_capabilities()->set_backend_class("toaster");
  EXPECT_THAT(client_->Signed<v1::AcquireLeaseResponse>("AcquireLease", key, acquire),
              HasReason("BACKEND_UNKNOWN"));
  acquire.mutable_capabilities()->set_backend_class("x86-avx2");
  acquire.mutable_capabilities()->set_tokens_per_second(-1);
  EXPECT_THAT(client_->Signed<v1::AcquireLeaseResponse>("AcquireLease", key, acquire),
              HasReason("REQUEST_INVALID"));
  EXPECT_THAT(client_->Publish(network_.run_id(), {}), HasReason("REQUEST_INVALID"));
  v1::GetRunRequest run;
  run.set_run_id("x");
  EXPECT_THAT(
      client_->Call<v1::GetRunResponse>(client_->open(), &v1::PublicService::Stub::GetRun, run),
      HasReason("REQUEST_INVALID"));
  run.set_run_id(std::string(32, 'x'));
  EXPECT_THAT(
      client_->Call<v1::GetRunResponse>(client_->open(), &v1::PublicService::Stub::GetRun, run),
      HasReason("RUN_UNKNOWN"));
  v1::GetReceiptRequest receipt;
  EXPECT_THAT(client_->Call<v1::GetReceiptResponse>(client_->open(),
                                                    &v1::PublicService::Stub::GetReceipt, receipt),
              HasReason("REQUEST_INVALID"));
  receipt.set_index(UINT64_MAX);
  EXPECT_THAT(client_->Call<v1::GetReceiptResponse>(client_->open(),
                                                    &v1::PublicService::Stub::GetReceipt, receipt),
              HasReason("ENTRY_UNKNOWN"));
}

TEST_F(ServiceTest, TheSameRequestHasTheSameAnswer) {
  Begin(2);
  const int key = WorkerKey(0);
  v1::AcquireLeaseRequest request;
  *request.mutable_header() = client_->Header(key);
  request.mutable_capabilities()->set_backend_class("x86-avx2");
  request.mutable_capabilities()->set_memory_bytes(uint64_t{1} << 40);
  request.mutable_capabilities()->set_disk_bytes(uint64_t{1} << 40);
  const auto first = client_->Signed<v1::AcquireLeaseResponse>("AcquireLease", key, request);
  const auto again = client_->Signed<v1::AcquireLeaseResponse>("AcquireLease", key, request);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(first->has_lease());
  EXPECT_EQ(first->lease().SerializeAsString(), again->lease().SerializeAsString());
  request.set_steps_max(7);
  EXPECT_THAT(client_->Signed<v1::AcquireLeaseResponse>("AcquireLease", key, request),
              HasReason("REQUEST_ID_REUSED"));
  client_->SetAttempt("attempt 2");
  EXPECT_THAT(client_->Acquire(key), HasReason("KEY_IN_USE"));
  network_.clock.Advance(absl::Hours(1));
  client_->SetAttempt("attempt 1");
  v1::HeartbeatRequest late;
  late.set_lease_id(first->lease().lease_id());
  EXPECT_THAT(client_->Signed<v1::HeartbeatResponse>("Heartbeat", key, late),
              HasReason("LEASE_EXPIRED"));
}

TEST_F(ServiceTest, AFalseRecordIsServedAndItsSignatureDoesNotHold) {
  servers_.reset();
  network_.options.policy.trust.canary_share_new = 1;
  ASSERT_TRUE(network_.Open().ok());
  Serve({});
  Begin(4);
  const v1::Lease lease = client_->Acquire(WorkerKey(0)).value().lease();
  const std::string& served = lease.records(lease.records_size() - 1);
  const auto entry = audit::LogEntry::Parse(served).value();
  const auto& record = std::get<audit::PublishedRecord>(entry.payload()).record;
  EXPECT_EQ(record.step, lease.end_step() - 1);
  EXPECT_NE(record, network_.Record(record.step));
  EXPECT_EQ(record.previous_chain, network_.Record(record.step).previous_chain);
  EXPECT_FALSE(entry.IsSignedBy(TestPublicKey(audit::kTrainerKey)));
  EXPECT_EQ(served.size(), network_.RecordEntries(static_cast<int>(record.step), 1)[0].size());
}

TEST_F(ServiceTest, ALeaseHasTheTrainersMirrors) {
  Begin(2);
  v1::RegisterRunRequest again;
  again.set_envelope(network_.RunEntry());
  v1::Artifact& corpus = *again.add_artifacts();
  corpus.set_sha256(ToString(network_.registration().manifest.corpus.bytes));
  corpus.set_size(77);
  for (int i = 0; i < 8; ++i) corpus.add_mirrors(absl::StrCat("https://m", i, ".example"));
  ASSERT_TRUE(client_
                  ->Call<v1::RegisterRunResponse>(client_->trainer(),
                                                  &v1::TrainerService::Stub::RegisterRun, again)
                  .ok());
  const v1::Lease lease = client_->Acquire(WorkerKey(0)).value().lease();
  ASSERT_GE(lease.artifacts_size(), 1);
  EXPECT_EQ(lease.artifacts(0).size(), 77u);
  EXPECT_EQ(std::vector<std::string>(lease.artifacts(0).mirrors().begin(),
                                     lease.artifacts(0).mirrors().end()),
            std::vector<std::string>(corpus.mirrors().begin(), corpus.mirrors().end()));
  corpus.add_mirrors("https://m8.example");
  EXPECT_THAT(client_->Call<v1::RegisterRunResponse>(client_->trainer(),
                                                     &v1::TrainerService::Stub::RegisterRun, again),
              HasReason("REQUEST_INVALID"));
}

TEST_F(ServiceTest, WhoCallsTooOftenIsToldSo) {
  Begin(1);
  Serve({.limits = {.calls_per_second = 0.001, .calls_at_once = 3, .limit_loopback = true}});
  const auto call = [&] {
    return client_->Call<v1::GetLogHeadResponse>(
        client_->open(), &v1::PublicService::Stub::GetLogHead, v1::GetLogHeadRequest());
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(call().ok());
  EXPECT_THAT(call(), HasReason("RATE_LIMITED"));
}

TEST_F(ServiceTest, AnAddressAddsSoManyOperators) {
  GrpcServerOptions options;
  options.registry = std::make_shared<prometheus::Registry>();
  options.audit.operator_events = {
      .calls_per_second = 0.001, .calls_at_once = 2, .limit_loopback = true};
  servers_ = GrpcServers::Start(*network_, options).value();
  client_ = std::make_unique<TestClient>(
      servers_->public_port(), servers_->trainer_port(), network_.options.origin,
      [this] { return absl::ToUnixMillis(network_.clock.Now()); });
  const auto add = [&](int n) {
    return client_
        ->SubmitKey(audit::OperatorEvent{.operator_key = TestPublicKey(audit::OperatorKey(n)),
                                         .revocation_key = TestPublicKey(audit::RevocationKey(n)),
                                         .name = absl::StrCat("operator ", n),
                                         .contact = ""},
                    {audit::OperatorKey(n)})
        .status();
  };
  EXPECT_TRUE(add(0).ok());
  EXPECT_TRUE(add(1).ok());
  const absl::Status refused = add(2);
  EXPECT_THAT(refused, HasReason("RATE_LIMITED"));
  EXPECT_EQ(rpc::MetadataOf(refused)["retry_after_ms"], "1000000");
  const audit::WorkerEvent worker = {.worker_key = TestPublicKey(WorkerKey(0)),
                                     .operator_key = TestPublicKey(audit::OperatorKey(0)),
                                     .hardware = "a machine"};
  EXPECT_TRUE(client_->SubmitKey(worker, {audit::OperatorKey(0), WorkerKey(0)}).ok())
      << "workers are counted by themselves";
}

// The proxy's own word is the last, also where it adds a header rather than to one.
TEST_F(ServiceTest, WhatACallerSaysOfItsAddressIsNotBelieved) {
  Serve({.limits = {.calls_per_second = 0.001, .calls_at_once = 3}, .trust_proxy = true});
  const auto call = [&](const std::vector<std::string>& forwarded) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    for (const std::string& value : forwarded) context.AddMetadata("x-forwarded-for", value);
    v1::GetLogHeadResponse response;
    return rpc::FromGrpc(client_->open().GetLogHead(&context, v1::GetLogHeadRequest(), &response));
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(call({absl::StrCat("198.51.100.", i), "192.0.2.1"}).ok());
  }
  EXPECT_THAT(call({"198.51.100.9", "192.0.2.1"}), HasReason("RATE_LIMITED"));
  EXPECT_THAT(call({"198.51.100.9, 192.0.2.1"}), HasReason("RATE_LIMITED"));
  EXPECT_TRUE(call({"192.0.2.1", "198.51.100.9"}).ok());
}

TEST_F(ServiceTest, MessagesOfStrangersAreSmall) {
  v1::SubmitKeyEventRequest request;
  request.set_envelope(std::string((256 << 10) + 1, 'x'));
  EXPECT_EQ(client_
                ->Call<v1::SubmitKeyEventResponse>(client_->audit(),
                                                   &v1::AuditService::Stub::SubmitKeyEvent, request)
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
  request.set_envelope(std::string(200 << 10, 'x'));
  EXPECT_THAT(client_->Call<v1::SubmitKeyEventResponse>(
                  client_->audit(), &v1::AuditService::Stub::SubmitKeyEvent, request),
              HasReason("ENVELOPE_INVALID"));
}

TEST_F(ServiceTest, ListsComeInPagesAndTellTheTruth) {
  Begin(25);
  const Digest run = network_.run_id();
  v1::ListStepsRequest request;
  request.set_run_id(ToString(run.bytes));
  request.set_page_size(10);
  std::vector<uint64_t> steps;
  do {
    const auto page = client_->Call<v1::ListStepsResponse>(
        client_->open(), &v1::PublicService::Stub::ListSteps, request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::Step& step : page->steps()) {
      steps.push_back(step.step());
      EXPECT_EQ(step.record(), EncodeStepRecord(network_.Record(step.step())));
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(steps.size(), 25u);
  EXPECT_EQ(steps.back(), 24u);
  request.set_page_token("x");
  EXPECT_THAT(client_->Call<v1::ListStepsResponse>(client_->open(),
                                                   &v1::PublicService::Stub::ListSteps, request),
              HasReason("REQUEST_INVALID"));

  v1::ListEntriesRequest entries;
  entries.set_begin(0);
  entries.set_page_size(1000);
  const auto all = client_->Call<v1::ListEntriesResponse>(
      client_->open(), &v1::PublicService::Stub::ListEntries, entries);
  ASSERT_TRUE(all.ok()) << all.status();
  // All that the log has makes the same ledger as the coordinator's.
  audit::Ledger ledger(network_->log_key().key);
  for (int i = 0; i < all->envelopes_size(); ++i) {
    ASSERT_TRUE(
        ledger.Apply(static_cast<uint64_t>(i), all->envelopes(i), audit::Signatures::kVerify).ok());
  }
  EXPECT_EQ(ledger.FindRun(run)->chain(), network_->GetProgress(run).value().chain);

  const auto operators = client_->Call<v1::ListOperatorsResponse>(
      client_->open(), &v1::PublicService::Stub::ListOperators, v1::ListOperatorsRequest());
  ASSERT_TRUE(operators.ok()) << operators.status();
  EXPECT_EQ(operators->operators_size(), 2);
  EXPECT_EQ(operators->operators(0).worker_keys(), 1u);
  const auto runs = client_->Call<v1::ListRunsResponse>(
      client_->open(), &v1::PublicService::Stub::ListRuns, v1::ListRunsRequest());
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_EQ(runs->runs_size(), 1);
  EXPECT_EQ(runs->runs(0).steps(), 25u);
  EXPECT_EQ(runs->runs(0).counts().unaudited(), 25u);
}

TEST_F(ServiceTest, AMismatchIsShownToEverybodyWithItsEvidence) {
  Begin(2);
  const int key = WorkerKey(0);
  const v1::Lease lease = client_->Acquire(key).value().lease();
  audit::StepRecord found = network_.Record(0);
  found.gradient = TestDigest("another gradient", 0);
  const std::string envelope = TestEntry(Found(lease, 0, key, &found), {key});
  ASSERT_TRUE(client_->Submit(envelope, key).ok());
  v1::ListDisputesRequest disputes;
  disputes.set_run_id(ToString(network_.run_id().bytes));
  const auto listed = client_->Call<v1::ListDisputesResponse>(
      client_->open(), &v1::PublicService::Stub::ListDisputes, disputes);
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->disputes_size(), 1);
  EXPECT_EQ(listed->disputes(0).reason(), "mismatch");
  v1::ListAttestationsRequest attestations;
  attestations.set_run_id(disputes.run_id());
  const auto said = client_->Call<v1::ListAttestationsResponse>(
      client_->open(), &v1::PublicService::Stub::ListAttestations, attestations);
  ASSERT_TRUE(said.ok()) << said.status();
  ASSERT_EQ(said->attestations_size(), 1);
  EXPECT_FALSE(said->attestations(0).match());
  EXPECT_EQ(said->attestations(0).envelope(), envelope);
}

TEST_F(ServiceTest, ManyAtOnceAllGetTheirs) {
  Begin(4);
  constexpr int kThreads = 16;
  constexpr int kCalls = 20;
  std::vector<std::thread> threads;
  std::vector<int> answered(kThreads, 0);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      TestClient client(servers_->public_port(), servers_->trainer_port(), network_.options.origin,
                        [this] { return absl::ToUnixMillis(network_.clock.Now()); });
      client.SetAttempt(absl::StrCat("thread ", t));
      for (int i = 0; i < kCalls; ++i) {
        v1::HeartbeatRequest request;
        request.set_lease_id(std::string(16, 'x'));
        const auto answer =
            client.Signed<v1::HeartbeatResponse>("Heartbeat", WorkerKey(0), request);
        answered[t] += rpc::ReasonOf(answer.status()) == "LEASE_UNKNOWN" ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : answered) EXPECT_EQ(count, kCalls);
}

// What the standard health service says of one service: 1 for SERVING, 2 for NOT_SERVING.
int HealthOf(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  // HealthCheckRequest {string service = 1}; HealthCheckResponse {enum status = 1}.
  const std::string bytes =
      absl::StrCat("\x0a", std::string(1, static_cast<char>(service.size())), service);
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  call->Finish(&response, &status, &response);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) return -1;
  std::vector<grpc::Slice> slices;
  response.Dump(&slices).ok();
  std::string text;
  for (const grpc::Slice& part : slices) {
    text.append(reinterpret_cast<const char*>(part.begin()), part.size());
  }
  return text.size() == 2 && text[0] == '\x08' ? text[1] : -1;
}

// As coordinator/serve.cc has it: the writer fails, and everybody is told at once.
TEST_F(ServiceTest, WhenNothingCanBeWrittenItSaysNotServing) {
  servers_.reset();
  std::promise<absl::Status> failed;
  network_.options.on_failure = [&](const absl::Status& error) { failed.set_value(error); };
  ASSERT_TRUE(network_.Open().ok());
  Serve({});
  Begin(1);
  EXPECT_TRUE(network_->health().ok());
  const std::string stages = network_.options.directory + "/log/stage";
  std::filesystem::rename(stages, stages + ".gone");
  const auto refused = client_->Publish(network_.run_id(), network_.RecordEntries(1, 1));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable) << refused.status();
  EXPECT_THAT(failed.get_future().get().message(), HasSubstr("/log/stage/"));
  servers_->SetServing(false);
  EXPECT_EQ(HealthOf(client_->public_channel(), "lockstep.v1.AuditService"), 2);
  EXPECT_EQ(network_->health().code(), absl::StatusCode::kUnavailable);
  // Nothing more is written, though the folder comes back; what was acknowledged can be read.
  std::filesystem::rename(stages + ".gone", stages);
  EXPECT_EQ(client_->Publish(network_.run_id(), network_.RecordEntries(1, 1)).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(client_
                  ->Call<v1::GetLogHeadResponse>(client_->open(),
                                                 &v1::PublicService::Stub::GetLogHead,
                                                 v1::GetLogHeadRequest())
                  .ok());
  // The next life has it, and goes on. The record that got no answer was in the store already.
  servers_.reset();
  network_.options.on_failure = [](const absl::Status&) {};
  ASSERT_TRUE(network_.Open().ok());
  Serve({});
  EXPECT_EQ(network_->GetProgress(network_.run_id()).value().next_step, 2u);
  EXPECT_EQ(client_->Publish(network_.run_id(), network_.RecordEntries(1, 2)).value().next_step(),
            3u);
}

TEST_F(ServiceTest, HealthSaysWhetherItServes) {
  EXPECT_EQ(HealthOf(client_->public_channel(), ""), 1);
  EXPECT_EQ(HealthOf(client_->public_channel(), "lockstep.v1.AuditService"), 1);
  EXPECT_EQ(HealthOf(client_->public_channel(), "lockstep.v1.TrainerService"), -1)
      << "that is another port's";
  servers_->SetServing(false);
  EXPECT_EQ(HealthOf(client_->public_channel(), "lockstep.v1.AuditService"), 2);
}

class TlsTest : public ServiceTest {
 protected:
  // A certificate for loopback that signs itself.
  TlsOptions MakeCertificate(const std::string& name) {
    const std::string certificate = network_.scratch().Path(name + ".pem");
    const std::string key = network_.scratch().Path(name + ".key");
    const std::string command = absl::StrCat(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=",
        name, " -addext subjectAltName=IP:127.0.0.1 -keyout ", key, " -out ", certificate,
        " 2>/dev/null");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return {.certificate = certificate, .key = key, .client_ca = ""};
  }
  static absl::Status Ask(int port, const grpc::SslCredentialsOptions& options) {
    const auto stub = v1::TrainerService::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::SslCredentials(options)));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    v1::QueryArtifactsResponse response;
    return rpc::FromGrpc(stub->QueryArtifacts(&context, v1::QueryArtifactsRequest(), &response));
  }
};

TEST_F(TlsTest, TrainersShowACertificate) {
  const TlsOptions server = MakeCertificate("server");
  const TlsOptions trainer = MakeCertificate("trainer");
  const TlsOptions stranger = MakeCertificate("stranger");
  GrpcServerOptions options;
  options.registry = std::make_shared<prometheus::Registry>();
  options.trainer_tls = server;
  options.trainer_tls.client_ca = trainer.certificate;
  const auto servers = GrpcServers::Start(*network_, options);
  ASSERT_TRUE(servers.ok()) << servers.status();
  const auto credentials = [&](const TlsOptions* client) {
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = ReadFile(server.certificate, 1 << 20).value();
    if (client != nullptr) {
      ssl.pem_cert_chain = ReadFile(client->certificate, 1 << 20).value();
      ssl.pem_private_key = ReadFile(client->key, 1 << 20).value();
    }
    return ssl;
  };
  const int port = (*servers)->trainer_port();
  EXPECT_TRUE(Ask(port, credentials(&trainer)).ok()) << Ask(port, credentials(&trainer));
  EXPECT_EQ(Ask(port, credentials(nullptr)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Ask(port, credentials(&stranger)).code(), absl::StatusCode::kUnavailable);
  options.trainer_tls.key.clear();
  EXPECT_EQ(GrpcServers::Start(*network_, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// So that a worker knows the trainer's records from false ones.
TEST_F(ServiceTest, ALeaseLeadsToTheTrainersPresentKey) {
  Begin(2);
  const int kNewKey = 901;
  const audit::RotateEvent rotation = {.old_key = audit::TestPublicKey(audit::kTrainerKey),
                                       .new_key = audit::TestPublicKey(kNewKey)};
  EXPECT_EQ(client_->Acquire(WorkerKey(0), 1).value().lease().trainer_rotations_size(), 0);
  ASSERT_THAT(client_->SubmitKey(rotation, {audit::kTrainerKey, kNewKey}), IsOk());
  const v1::Lease lease = client_->Acquire(WorkerKey(1), 1).value().lease();
  ASSERT_EQ(lease.trainer_rotations_size(), 1);
  EXPECT_EQ(lease.trainer_rotations(0),
            audit::TestEntry(audit::KeyEvent(rotation), {audit::kTrainerKey, kNewKey}));
}

TEST_F(TlsTest, TrainersBeyondLoopbackShowCertificates) {
  GrpcServerOptions options;
  options.registry = std::make_shared<prometheus::Registry>();
  options.trainer_address = "0.0.0.0:0";
  options.trainer_tls = MakeCertificate("server");
  const absl::Status refused = GrpcServers::Start(*network_, options).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--trainer-tls-client-ca"));
  options.trainer_tls.client_ca = options.trainer_tls.certificate;
  EXPECT_TRUE(GrpcServers::Start(*network_, options).ok());
}

TEST_F(ServiceTest, WithoutTlsOnlyLoopbackIsServed) {
  GrpcServerOptions options;
  options.registry = std::make_shared<prometheus::Registry>();
  options.public_address = "0.0.0.0:0";
  EXPECT_EQ(GrpcServers::Start(*network_, options).status().code(),
            absl::StatusCode::kFailedPrecondition);
  options.public_address = absl::StrCat("127.0.0.1:", servers_->public_port());
  EXPECT_EQ(GrpcServers::Start(*network_, options).status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "the port is another server's";
}

}  // namespace
}  // namespace lockstep::coordinator
