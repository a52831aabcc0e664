// SPDX-License-Identifier: Apache-2.0
//
// Runs that are ready to start but for their data: corpus, tokenizer, and a vocabulary that must be
// the tokenizer's. People begin with one and change what they like in run.toml.
#ifndef LOCKSTEP_AUDIT_PRESETS_H_
#define LOCKSTEP_AUDIT_PRESETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "audit/run_manifest.h"

namespace lockstep::audit {

// "golden"   seconds; every operation of the real model in it; 2 x 2 ranks, accumulation 2. The
//            constant of the tests.
// "tiny"     learns visibly from real text on two cores in minutes
// "small"    the same at eight layers, for measurements
// "open-1b"  the paper's model, recipe and batch schedule, every number of its Tables 2 to 4
std::vector<std::string> PresetNames();

// NotFound lists the names.
absl::StatusOr<RunManifest> Preset(absl::string_view name);

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_PRESETS_H_
