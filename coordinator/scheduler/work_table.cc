// SPDX-License-Identifier: Apache-2.0
//
// Events into the scheduler's view. See work_table.h.

#include "coordinator/scheduler/work_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace lockstep::coordinator {
namespace {

// The number of `name`, the next one if it is new.
template <typename Number, typename Map, typename Name>
Number NumberOf(Map& map, const Name& name) {
  return map.try_emplace(name, static_cast<Number>(map.size())).first->second;
}

template <typename Map, typename Key>
auto CountsOf(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? typename Map::mapped_type{} : found->second;
}

// Takes a lease off; what is then empty is dropped, since keys and addresses come and go.
template <typename Map, typename Key>
void TakeOff(Map& map, const Key& key, int64_t steps) {
  const auto found = map.find(key);
  found->second.steps -= steps;
  if (--found->second.leases == 0) map.erase(found);
}

}  // namespace

Auditor WorkTable::NumberAuditor(const Digest& key, const Digest& operator_name,
                                 absl::string_view backend) {
  return {.key = NumberOf<KeyNumber>(keys_, key),
          .operator_number = NumberOf<OperatorNumber>(operators_, operator_name),
          .backend = NumberOf<BackendNumber>(backends_, backend)};
}

absl::StatusOr<size_t> WorkTable::FindRun(const Digest& run) const {
  const auto found = run_index_.find(run);
  if (found == run_index_.end()) {
    return absl::NotFoundError(absl::StrCat("no run ", run.ToHex()));
  }
  return found->second;
}

absl::StatusOr<StepView*> WorkTable::FindStep(const Digest& run, uint64_t step) {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t index, FindRun(run));
  std::vector<StepView>& steps = runs_[index].steps;
  if (step >= steps.size()) {
    return absl::NotFoundError(
        absl::StrCat("no step ", step, " in run ", run.ToHex(), " of ", steps.size(), " steps"));
  }
  return &steps[step];
}

void WorkTable::Refresh(size_t index) {
  views_[index].steps = runs_[index].steps;
  views_[index].states = runs_[index].states;
}

absl::Status WorkTable::AddRun(const WorkRun& run) {
  if (!run_index_.try_emplace(run.run, runs_.size()).second) {
    return absl::AlreadyExistsError(absl::StrCat("run ", run.run.ToHex(), " is there already"));
  }
  runs_.emplace_back();
  views_.push_back({.run = run.run,
                    .trainer = NumberOf<OperatorNumber>(operators_, run.trainer_operator),
                    .quorum_operators = run.quorum_operators,
                    .quorum_backends = run.quorum_backends,
                    .steps = {},
                    .states = {},
                    .memory_bytes = run.memory_bytes,
                    .disk_bytes = run.disk_bytes,
                    .operations_per_step = run.operations_per_step});
  return absl::OkStatus();
}

absl::Status WorkTable::SetTrainer(const Digest& run, const Digest& trainer_operator) {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t index, FindRun(run));
  views_[index].trainer = NumberOf<OperatorNumber>(operators_, trainer_operator);
  return absl::OkStatus();
}

absl::Status WorkTable::AddStep(const Digest& run, uint64_t step, int64_t now_ms) {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t index, FindRun(run));
  std::vector<StepView>& steps = runs_[index].steps;
  if (step != steps.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("step ", step, " of run ", run.ToHex(), ", expected step ", steps.size()));
  }
  steps.emplace_back().waiting_since_ms = now_ms;
  Refresh(index);
  return absl::OkStatus();
}

absl::Status WorkTable::AddState(const Digest& run, uint64_t step) {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t index, FindRun(run));
  std::vector<uint64_t>& states = runs_[index].states;
  const auto place = std::lower_bound(states.begin(), states.end(), step);
  if (place == states.end() || *place != step) states.insert(place, step);
  Refresh(index);
  return absl::OkStatus();
}

absl::Status WorkTable::DropState(const Digest& run, uint64_t step) {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t index, FindRun(run));
  std::vector<uint64_t>& states = runs_[index].states;
  const auto place = std::lower_bound(states.begin(), states.end(), step);
  if (place == states.end() || *place != step) {
    return absl::NotFoundError(absl::StrCat("no state at step ", step, " of run ", run.ToHex()));
  }
  states.erase(place);
  Refresh(index);
  return absl::OkStatus();
}

absl::Status WorkTable::AddMatch(const Digest& run, uint64_t step, const Auditor& auditor,
                                 bool second_look) {
  LOCKSTEP_ASSIGN_OR_RETURN(StepView* const view, FindStep(run, step));
  view->matches.push_back(auditor);
  // The first match decides it: one that needs no second look itself is no second look at another.
  if (view->matches.size() == 1) view->second_look = second_look;
  return absl::OkStatus();
}

absl::Status WorkTable::AddMismatch(const Digest& run, uint64_t step, const Auditor& auditor,
                                    int64_t now_ms) {
  LOCKSTEP_ASSIGN_OR_RETURN(StepView* const view, FindStep(run, step));
  view->mismatches.push_back(auditor);
  view->matched_before = CountOperators(view->matches);
  if (!view->disputed) view->waiting_since_ms = now_ms;
  view->disputed = true;
  return absl::OkStatus();
}

absl::Status WorkTable::SetDisputed(const Digest& run, uint64_t step, bool disputed,
                                    int64_t now_ms) {
  LOCKSTEP_ASSIGN_OR_RETURN(StepView* const view, FindStep(run, step));
  if (view->disputed != disputed) view->waiting_since_ms = now_ms;
  view->disputed = disputed;
  return absl::OkStatus();
}

absl::Status WorkTable::AddLease(const WorkLease& lease) {
  if (lease.first_step >= lease.end_step) {
    return absl::InvalidArgumentError(absl::StrCat("lease ", lease.lease_id, " has no steps"));
  }
  LOCKSTEP_RETURN_IF_ERROR(FindStep(lease.run, lease.end_step - 1).status());
  if (!leases_.try_emplace(lease.lease_id, lease).second) {
    return absl::AlreadyExistsError(absl::StrCat("lease ", lease.lease_id, " is there already"));
  }
  std::vector<StepView>& steps = runs_[run_index_[lease.run]].steps;
  for (uint64_t step = lease.first_step; step < lease.end_step; ++step) {
    steps[step].holders.push_back(lease.auditor);
  }
  const auto count = [&](Counts& counts) {
    ++counts.leases;
    counts.steps += lease.steps_wanted;
  };
  count(by_key_[lease.auditor.key]);
  count(by_operator_[lease.auditor.operator_number]);
  count(by_address_[lease.address]);
  return absl::OkStatus();
}

void WorkTable::RemoveHolder(const Auditor& auditor, StepView* step) {
  const auto holder = std::find(step->holders.begin(), step->holders.end(), auditor);
  if (holder != step->holders.end()) step->holders.erase(holder);
}

absl::Status WorkTable::EndStep(absl::string_view lease_id, uint64_t step) {
  const auto found = leases_.find(lease_id);
  if (found == leases_.end()) return absl::NotFoundError("no such lease");
  WorkLease& lease = found->second;
  // A lease is worked off from its front.
  while (lease.first_step < lease.end_step && lease.first_step <= step) {
    RemoveHolder(lease.auditor, &runs_[run_index_[lease.run]].steps[lease.first_step++]);
  }
  return absl::OkStatus();
}

absl::Status WorkTable::EndLease(absl::string_view lease_id) {
  const auto found = leases_.find(lease_id);
  if (found == leases_.end()) return absl::NotFoundError("no such lease");
  const WorkLease lease = std::move(found->second);
  leases_.erase(found);
  std::vector<StepView>& steps = runs_[run_index_[lease.run]].steps;
  for (uint64_t step = lease.first_step; step < lease.end_step; ++step) {
    RemoveHolder(lease.auditor, &steps[step]);
  }
  TakeOff(by_key_, lease.auditor.key, lease.steps_wanted);
  TakeOff(by_operator_, lease.auditor.operator_number, lease.steps_wanted);
  TakeOff(by_address_, lease.address, lease.steps_wanted);
  return absl::OkStatus();
}

Snapshot WorkTable::View(int64_t now_ms) const { return {.now_ms = now_ms, .runs = views_}; }

void WorkTable::CountLeases(absl::string_view address, Requester* requester) const {
  const Counts key = CountsOf(by_key_, requester->auditor.key);
  requester->leases_of_key = key.leases;
  requester->steps_of_key = key.steps;
  requester->leases_of_operator = CountsOf(by_operator_, requester->auditor.operator_number).leases;
  requester->leases_of_address = CountsOf(by_address_, address).leases;
}

}  // namespace lockstep::coordinator
