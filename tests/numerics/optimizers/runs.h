#pragma once

#include <string>
#include <vector>

#include "common/optimizer_abi/ganymede_optimizer.h"

namespace ganymede::optimizer {

/// A built-in plugin's table, loaded once.
const GanymedeOptimizer& plugin(const std::string& name);

/// Values of parameters and of an optimizer's state slots.
struct Parameters {
  std::vector<float> value;
  std::vector<std::vector<float>> state;
};

/// `count` normal values, zero state.
Parameters start(std::size_t count, std::size_t slots);

/// Gradients over eight orders of magnitude, as layers have them.
std::vector<float> gradients(std::uint64_t step, std::size_t count);

/// One update of elements from … to - 1, in place; a failed expectation when the plugin refuses.
void update(const GanymedeOptimizer& table, Parameters& p, const std::vector<float>& gradient, const GanymedeStep& step,
            std::size_t from, std::size_t to, bool decayed = true);

/// Largest distance in units in the last place of the larger of an element's old and new value: a value that an update
/// takes close to zero has no more digits than those it came from.
double farthest(const std::vector<float>& ours, const float* theirs, const std::vector<float>& old);

/// Updates a run of elements as a whole and cut into pieces of many lengths, for five steps: the same bits.
void expect_cuts_change_nothing(const GanymedeOptimizer& table, GanymedeStep step);

}  // namespace ganymede::optimizer
