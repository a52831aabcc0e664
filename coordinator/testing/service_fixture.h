// SPDX-License-Identifier: Apache-2.0
//
// A small network (small_network.h) served by the real gRPC services on loopback, and a client of
// them. For tests only.

#ifndef LOCKSTEP_COORDINATOR_TESTING_SERVICE_FIXTURE_H_
#define LOCKSTEP_COORDINATOR_TESTING_SERVICE_FIXTURE_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "audit/log/log_proof.h"
#include "base/encoding.h"
#include "base/merkle.h"
#include "coordinator/service/server.h"
#include "coordinator/testing/reason_matcher.h"
#include "coordinator/testing/small_network.h"
#include "coordinator/testing/test_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(network_.Open().ok());
    Serve({});
  }
  void Serve(CallOptions calls) {
    servers_.reset();
    GrpcServerOptions options;
    options.calls = calls;
    options.audit = {.version = "test", .artifact_url = "http://artifacts.example"};
    options.registry = std::make_shared<prometheus::Registry>();
    servers_ = GrpcServers::Start(*network_, options).value();
    client_ = std::make_unique<TestClient>(
        servers_->public_port(), servers_->trainer_port(), network_.options.origin,
        [this] { return absl::ToUnixMillis(network_.clock.Now()); });
  }
  void Begin(int steps) {
    network_.AddOperator(0);
    network_.AddOperator(1);
    v1::RegisterRunRequest request;
    request.set_envelope(network_.RunEntry());
    ASSERT_TRUE(client_
                    ->Call<v1::RegisterRunResponse>(client_->trainer(),
                                                    &v1::TrainerService::Stub::RegisterRun, request)
                    .ok());
    if (steps == 0) return;
    ASSERT_EQ(
        client_->Publish(network_.run_id(), network_.RecordEntries(0, steps)).value().next_step(),
        static_cast<uint64_t>(steps));
  }
  // What an honest worker finds for a step of the lease.
  audit::Attestation Found(const v1::Lease& lease, uint64_t step, int key,
                           const audit::StepRecord* found = nullptr) {
    LeaseRow row;
    row.lease_id = HexEncode(AsBytes(lease.lease_id()));
    row.nonce = Digest::FromBytes(AsBytes(lease.nonce())).value();
    return network_.Found(row, step, key, found);
  }
  // The openings that a submitted attestation asks for, honest.
  v1::SubmitOpeningRequest Openings(const audit::Attestation& said, const std::string& envelope,
                                    const v1::SubmitAttestationResponse& submitted, int key) {
    AttestationAnswer answer{
        .entry = audit::EntryRef{.leaf_hash = MerkleLeafHash(AsBytes(envelope))},
        .challenge = Ed25519Signature()};
    std::copy(submitted.challenge().begin(), submitted.challenge().end(),
              answer.challenge->begin());
    v1::SubmitOpeningRequest openings;
    for (const audit::Opening& opening : network_.Openings(said, answer, key)) {
      openings.add_envelopes(audit::TestEntry(opening, {key}));
    }
    return openings;
  }
  void CheckReceipt(const v1::Receipt& receipt, const std::string& envelope) {
    const audit::LogProof proof = audit::ParseLogProof(receipt.proof()).value();
    const Digest leaf_hash = MerkleLeafHash(AsBytes(envelope));
    EXPECT_EQ(receipt.leaf_hash(), ToString(leaf_hash.bytes));
    const auto head = audit::VerifyLogProof(proof, leaf_hash, network_->log_key());
    ASSERT_TRUE(head.ok()) << head.status();
    EXPECT_EQ(head->size, receipt.tree_size());
    EXPECT_EQ(proof.index, receipt.index());
  }

  SmallNetwork network_;
  std::unique_ptr<GrpcServers> servers_;
  std::unique_ptr<TestClient> client_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_TESTING_SERVICE_FIXTURE_H_
