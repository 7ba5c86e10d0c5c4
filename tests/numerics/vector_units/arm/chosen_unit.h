#pragma once

#include <cstddef>
#include <string>

namespace ganymede::vector_units {

/// From now on Highway finds the unit of this name alone ("NEON", "SVE", …). False when no such unit is built.
bool choose_unit(const std::string& name);

/// fp32 lanes of a vector of the chosen unit on this processor.
std::size_t lanes_of_chosen_unit();

}  // namespace ganymede::vector_units
