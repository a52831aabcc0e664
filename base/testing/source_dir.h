// SPDX-License-Identifier: Apache-2.0
//
// Where the source tree is, for tests that read files of it.
#ifndef LOCKSTEP_BASE_TESTING_SOURCE_DIR_H_
#define LOCKSTEP_BASE_TESTING_SOURCE_DIR_H_

#include <string>

namespace lockstep::testing {

// The absolute path of a file of the tree, from its path in the tree.
std::string SourcePath(const std::string& path);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_BASE_TESTING_SOURCE_DIR_H_
