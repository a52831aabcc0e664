// SPDX-License-Identifier: Apache-2.0
//
// A lease from a coordinator that may send anything: read without a crash, and what is read holds
// what ReadLease promises. The input is a message; a good run and good records are put into it
// where its first byte says so, so that what lies behind them is reached.
#include <cstddef>
#include <cstdint>
#include <string>

#include "audit/step_record.h"
#include "audit/testing/small_log.h"
#include "base/logging.h"
#include "lockstep/v1/audit.pb.h"
#include "worker/lease.h"

namespace lockstep::worker {
namespace {

constexpr int kRecords = 4;

// The run and its records, once: signing is slow.
const std::vector<std::string>& Entries() {
  static const auto* const entries = [] {
    auto* const made = new std::vector<std::string>();
    const audit::RunRegistration registration = audit::TestRegistration();
    const Digest run_id = audit::RunIdOf(registration.manifest);
    made->push_back(audit::TestEntry(registration, {audit::kTrainerKey}));
    std::optional<audit::StepRecord> last;
    for (int i = 0; i < kRecords; ++i) {
      last = audit::TestRecord(registration, last ? &*last : nullptr);
      made->push_back(audit::TestEntry(audit::PublishedRecord{.run_id = run_id, .record = *last},
                                       {audit::kTrainerKey}));
    }
    return made;
  }();
  return *entries;
}

void Complete(uint8_t what, v1::Lease* lease) {
  if ((what & 1) != 0) {
    const Digest run_id = audit::RunIdOf(audit::TestRegistration().manifest);
    lease->set_run_envelope(Entries()[0]);
    lease->set_run_id(run_id.bytes.data(), run_id.bytes.size());
  }
  if ((what & 2) != 0) {
    lease->clear_records();
    for (int i = 1; i <= kRecords; ++i) lease->add_records(Entries()[i]);
  }
  if ((what & 4) != 0) {
    lease->set_lease_id(std::string(16, 'l'));
    lease->set_nonce(std::string(32, 'n'));
  }
}

void Check(const WorkLease& lease) {
  LOCKSTEP_CHECK(lease.id.size() == 16);
  LOCKSTEP_CHECK(lease.start_step <= lease.begin && lease.begin < lease.end);
  LOCKSTEP_CHECK(lease.records.size() == lease.end - lease.start_step);
  for (size_t i = 0; i < lease.records.size(); ++i) {
    LOCKSTEP_CHECK(lease.records[i].step == lease.start_step + i);
    LOCKSTEP_CHECK(i == 0 ||
                   lease.records[i].previous_chain == audit::ChainAfter(lease.records[i - 1]));
  }
  for (const LeaseFile& file : lease.start_files) {
    LOCKSTEP_CHECK(file.name.find('/') == std::string::npos && file.bytes > 0);
  }
  LOCKSTEP_CHECK(lease.heartbeat > absl::ZeroDuration());
}

}  // namespace
}  // namespace lockstep::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  lockstep::v1::Lease message;
  if (!message.ParseFromArray(data + 1, static_cast<int>(size - 1))) return 0;
  lockstep::worker::Complete(data[0], &message);
  const auto lease = lockstep::worker::ReadLease(message);
  if (lease.ok()) lockstep::worker::Check(*lease);
  return 0;
}
