// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: run manifests. What is accepted is valid, and is written back to the same bytes.
// Inputs that begin otherwise are numbers for the fields of a valid one, so that the rules between
// fields are reached.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "audit/presets.h"
#include "audit/run_manifest.h"
#include "audit/run_manifest_fields.h"
#include "base/logging.h"

namespace lockstep::audit {
namespace {

// The next bytes as a value: any bits.
class Values {
 public:
  Values(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  template <typename Field, typename T>
  void operator()(const Field&, T& value) {
    if (size_ == 0) return;
    const uint8_t how = *data_++;
    --size_;
    if (how % 4 == 0) return;  // As in the preset.
    uint64_t bits = 0;
    const size_t taken = std::min<size_t>(size_, how % 4 == 1 ? 2 : 8);
    if (taken > 0) std::memcpy(&bits, data_, taken);
    data_ += taken;
    size_ -= taken;
    if (how % 4 < 3) {
      value = static_cast<T>(static_cast<int64_t>(bits));
    } else {
      std::memcpy(&value, &bits, sizeof(value));
    }
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

void CheckFields(const uint8_t* data, size_t size) {
  RunManifest run = Preset("golden").value();
  Values values(data, size);
  VisitTopologyFields(run.topology, values);
  for (BatchPhaseConfig& phase : run.batch) VisitBatchFields(phase, values);
  VisitModelFields(run.model, values);
  VisitRecipeFields(run.recipe, values);
  if (!ValidateRunManifest(run).ok()) return;
  const auto parsed = ParseRunManifest(EncodeRunManifest(run));
  LOCKSTEP_CHECK(parsed.ok() && *parsed == run);
  for (const BatchPhaseConfig& phase : run.batch) {
    LOCKSTEP_CHECK(run.AccumulationOf(phase) >= 1);
    LOCKSTEP_CHECK(run.AccumulationOf(phase) * run.topology.ranks() * run.topology.micro_batch ==
                   phase.windows_per_step);
  }
}

}  // namespace
}  // namespace lockstep::audit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::audit;
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  if (size > 0 && data[0] != '{') CheckFields(data, size);
  const auto run = ParseRunManifest(input);
  if (!run.ok()) return 0;
  LOCKSTEP_CHECK(ValidateRunManifest(*run).ok());
  LOCKSTEP_CHECK(EncodeRunManifest(*run) == input);
  return 0;
}
