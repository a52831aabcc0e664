// SPDX-License-Identifier: Apache-2.0
//
// PublicService (proto/lockstep/v1/public.proto): what anyone may read.

#ifndef LOCKSTEP_COORDINATOR_SERVICE_PUBLIC_SERVICE_H_
#define LOCKSTEP_COORDINATOR_SERVICE_PUBLIC_SERVICE_H_

#include "coordinator/core/coordinator.h"
#include "coordinator/service/calls.h"
#include "lockstep/v1/public.grpc.pb.h"

namespace lockstep::coordinator {

class PublicService final : public v1::PublicService::Service {
 public:
  // Both outlive the service.
  PublicService(const Coordinator& coordinator, Calls& calls)
      : coordinator_(coordinator), calls_(calls) {}

  grpc::Status ListRuns(grpc::ServerContext* context, const v1::ListRunsRequest* request,
                        v1::ListRunsResponse* response) override;
  grpc::Status GetRun(grpc::ServerContext* context, const v1::GetRunRequest* request,
                      v1::GetRunResponse* response) override;
  grpc::Status GetCoverage(grpc::ServerContext* context, const v1::GetCoverageRequest* request,
                           v1::GetCoverageResponse* response) override;
  grpc::Status ListSteps(grpc::ServerContext* context, const v1::ListStepsRequest* request,
                         v1::ListStepsResponse* response) override;
  grpc::Status ListAttestations(grpc::ServerContext* context,
                                const v1::ListAttestationsRequest* request,
                                v1::ListAttestationsResponse* response) override;
  grpc::Status ListDisputes(grpc::ServerContext* context, const v1::ListDisputesRequest* request,
                            v1::ListDisputesResponse* response) override;
  grpc::Status ListLeases(grpc::ServerContext* context, const v1::ListLeasesRequest* request,
                          v1::ListLeasesResponse* response) override;
  grpc::Status ListOperators(grpc::ServerContext* context, const v1::ListOperatorsRequest* request,
                             v1::ListOperatorsResponse* response) override;
  grpc::Status GetLogHead(grpc::ServerContext* context, const v1::GetLogHeadRequest* request,
                          v1::GetLogHeadResponse* response) override;
  grpc::Status ListEntries(grpc::ServerContext* context, const v1::ListEntriesRequest* request,
                           v1::ListEntriesResponse* response) override;
  grpc::Status GetReceipt(grpc::ServerContext* context, const v1::GetReceiptRequest* request,
                          v1::GetReceiptResponse* response) override;

 private:
  absl::StatusOr<v1::Run> MakeRun(const Digest& run_id) const;

  const Coordinator& coordinator_;
  Calls& calls_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_SERVICE_PUBLIC_SERVICE_H_
