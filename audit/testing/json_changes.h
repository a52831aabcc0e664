// SPDX-License-Identifier: Apache-2.0
//
// Every single member of a JSON text taken away, or put in another type's place. For tests of
// readers that should refuse all of that.
#ifndef LOCKSTEP_AUDIT_TESTING_JSON_CHANGES_H_
#define LOCKSTEP_AUDIT_TESTING_JSON_CHANGES_H_

#include <string>
#include <utility>
#include <vector>

#include "base/canonical_json.h"
#include "nlohmann/json.hpp"

namespace lockstep::audit {

// What was changed, and the canonical text after it. A member more in each object is among them.
inline std::vector<std::pair<std::string, std::string>> JsonChanges(const std::string& text) {
  using nlohmann::json;
  const json original = json::parse(text);
  std::vector<std::pair<std::string, std::string>> changes;
  std::vector<json::json_pointer> places = {json::json_pointer()};
  const auto add = [&](const std::string& what, const json& changed) {
    changes.emplace_back(what, CanonicalJson(changed).value());
  };
  for (size_t i = 0; i < places.size(); ++i) {
    const json::json_pointer place = places[i];
    const json& value = original[place];
    const std::string name = place.to_string();
    if (!place.empty()) {
      for (const json& other : {json(nullptr), json(true), json(-1), json(0.5), json(""), json("x"),
                                json(1e300), json::array(), json::object()}) {
        if (other == value) continue;
        json changed = original;
        changed[place] = other;
        add(name + " becomes " + other.dump(), changed);
      }
    }
    if (value.is_object()) {
      json more = original;
      more[place]["zzz"] = 1;
      add(name + " has a member more", more);
      for (const auto& item : value.items()) {
        json less = original;
        less[place].erase(item.key());
        add(name + "/" + item.key() + " is gone", less);
        places.push_back(place / item.key());
      }
    } else if (value.is_array()) {
      for (size_t k = 0; k < value.size(); ++k) places.push_back(place / k);
    }
  }
  return changes;
}

}  // namespace lockstep::audit

#endif  // LOCKSTEP_AUDIT_TESTING_JSON_CHANGES_H_
