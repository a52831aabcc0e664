// SPDX-License-Identifier: Apache-2.0
//
// What stands in a TOML file, for messages about what should stand there.
#ifndef LOCKSTEP_ENGINE_TOML_TYPE_H_
#define LOCKSTEP_ENGINE_TOML_TYPE_H_

#include <string>

#include "toml++/toml.h"

namespace lockstep::engine {

inline std::string TypeOf(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number with a point";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date or time";
  }
}

}  // namespace lockstep::engine

#endif  // LOCKSTEP_ENGINE_TOML_TYPE_H_
