#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ganymede::fault {

/// What spin found in one model.
struct Finding {
  bool violated = false;
  std::string violation;     // as the checker names it
  std::uint64_t states = 0;  // that it has seen
  std::string output;        // of the checker, for a person
};

/// Looks at every state that the model in `file` (of this folder) can reach, with these C macros defined
/// ("RANKS=3", "WITHOUT_RULE_4"). Throws Error when spin or the compiler refuses the model, or when not every state
/// was seen (memory or depth did not suffice).
Finding check_model(const std::string& file, const std::vector<std::string>& macros);

}  // namespace ganymede::fault
