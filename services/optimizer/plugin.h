#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/optimizer_abi/ganymede_optimizer.h"
#include "common/placement/update_groups.h"
#include "common/step_protocol/control_block.h"

namespace ganymede::optimizer {

constexpr std::uint32_t most_slots = 16;
constexpr std::uint32_t most_hyper_parameters = step_protocol::most_hyper_parameters;  // of a decision record

/// A loaded and checked plugin. The library stays mapped until the process ends: C++ code cannot be unloaded safely.
struct Plugin {
  const GanymedeOptimizer* table = nullptr;
  std::uint64_t hash = 0;  // hash64 of the file

  /// What its table says, under the name that the configuration has for it: that of its file.
  placement::OptimizerFacts facts(const std::string& name) const;
};

/// Loads the shared library at `path` and checks it against the ABI. Throws Error with one sentence that names the file
/// and what is wrong with it: not a library, no entry, wrong ABI, wrong size of its table, invalid slots,
/// reductions that are not known.
Plugin load_plugin(const std::string& path);

/// Checks that the plugin's table can be used; `path` is for the text of the Error.
void check_table(const GanymedeOptimizer* table, const std::string& path);

/// What `settings` have for the plugin `name`, and its defaults where they have nothing; keys as in Optimizer::hyper.
/// Throws Error(usage) for a key that the plugin does not have (naming those that it has) and for a value out of its
/// range, or with a fraction where it has to be whole.
std::map<std::string, double> hyper_parameters(const GanymedeOptimizer& table, const std::string& name,
                                               const config::Optimizer& settings);

/// Throws Error(usage) naming the first of `keys` ("optimizer.NAME.KEY") that may not change while a run lives.
void refuse_fixed(const GanymedeOptimizer& table, const std::string& name, const std::vector<std::string>& keys);

}  // namespace ganymede::optimizer
