// SPDX-License-Identifier: Apache-2.0
//
// The one file that is compiled with the tree's path: all others are the same in every clone, and
// come from the compiler's cache.
#include "base/testing/source_dir.h"

namespace lockstep::testing {

std::string SourcePath(const std::string& path) { return LOCKSTEP_SOURCE_DIR "/" + path; }

}  // namespace lockstep::testing
