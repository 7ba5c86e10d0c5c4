#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/optimizer_abi/ganymede_optimizer.h"

namespace ganymede::optimizer {

constexpr std::uint32_t most_slots = 16;
constexpr std::uint32_t most_hyper_parameters = 64;

/// A loaded and checked plugin. The library stays mapped until the process ends: C++ code cannot be unloaded safely.
struct Plugin {
  const GanymedeOptimizer* table = nullptr;
  std::uint64_t hash = 0;  // hash64 of the file

  std::vector<std::string> slots() const;
};

/// Loads the shared library at `path` and checks it against the ABI. Throws Error with one sentence that names the file
/// and what is wrong with it: not a library, no entry, wrong ABI, wrong size of its table, invalid slots.
Plugin load_plugin(const std::string& path);

/// Checks that the plugin's table can be used; `path` is for the text of the Error.
void check_table(const GanymedeOptimizer* table, const std::string& path);

/// Holds the configured hyper-parameters against the ranges that the plugin states. Throws Error(usage) naming key,
/// value and range.
void check_hyper_parameters(const GanymedeOptimizer& table, const config::Optimizer& settings);

}  // namespace ganymede::optimizer
