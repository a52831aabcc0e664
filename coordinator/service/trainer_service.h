// SPDX-License-Identifier: Apache-2.0
//
// TrainerService (proto/lockstep/v1/trainer.proto) over the coordinator.

#ifndef LOCKSTEP_COORDINATOR_SERVICE_TRAINER_SERVICE_H_
#define LOCKSTEP_COORDINATOR_SERVICE_TRAINER_SERVICE_H_

#include "coordinator/core/coordinator.h"
#include "coordinator/service/calls.h"
#include "lockstep/v1/trainer.grpc.pb.h"

namespace lockstep::coordinator {

class TrainerService final : public v1::TrainerService::Service {
 public:
  // Both outlive the service.
  TrainerService(Coordinator& coordinator, Calls& calls)
      : coordinator_(coordinator), calls_(calls) {}

  grpc::Status RegisterRun(grpc::ServerContext* context, const v1::RegisterRunRequest* request,
                           v1::RegisterRunResponse* response) override;
  grpc::Status GetProgress(grpc::ServerContext* context, const v1::GetProgressRequest* request,
                           v1::GetProgressResponse* response) override;
  grpc::Status PublishRecords(grpc::ServerContext* context,
                              const v1::PublishRecordsRequest* request,
                              v1::PublishRecordsResponse* response) override;
  grpc::Status AnnounceCheckpoint(grpc::ServerContext* context,
                                  const v1::AnnounceCheckpointRequest* request,
                                  v1::AnnounceCheckpointResponse* response) override;
  grpc::Status PublishEvaluation(grpc::ServerContext* context,
                                 const v1::PublishEvaluationRequest* request,
                                 v1::PublishEvaluationResponse* response) override;
  grpc::Status QueryArtifacts(grpc::ServerContext* context,
                              const v1::QueryArtifactsRequest* request,
                              v1::QueryArtifactsResponse* response) override;

 private:
  Coordinator& coordinator_;
  Calls& calls_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_SERVICE_TRAINER_SERVICE_H_
