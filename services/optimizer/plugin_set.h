#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "services/optimizer/plugin_folder.h"

/// The plugins that a configuration names, together.
namespace ganymede::optimizer {

/// `folder`, or the one beside the programs when that is empty.
std::string chosen(const std::string& folder);

/// In the order of config::optimizers_of, loaded where they lie. `config` gets the group of what the first of them does
/// not update. Throws Error.
std::vector<PreparedPlugin> find_plugins(config::Config& config);
/// The same of their copies in the run directory `run`, which are made.
std::vector<PreparedPlugin> copy_plugins(config::Config& config, const std::string& run);

/// All of their hyper-parameters, with which each plugin is rehearsed (rehearsal.h). Sections of plugins that the run
/// does not use are held against those plugins, so that nothing misspelt goes unseen. Throws Error.
std::map<std::string, double> hyper_of(const std::vector<PreparedPlugin>& plugins, const config::Optimizer& settings);

std::vector<placement::OptimizerFacts> facts_of(const std::vector<PreparedPlugin>& plugins);

/// {"name", "version", "slots": [names], "matrices", "row_slots": [names], "updates_matrix", "reductions":
/// [names], "file", "hash": 16 hexadecimal digits}.
nlohmann::ordered_json facts_json(const PreparedPlugin& prepared);

/// Every parameter has one optimizer that can update it, in this world, and matrices can be orthogonalised as the
/// configuration says. Throws Error(usage).
void check_groups(const config::Config& config, const std::vector<PreparedPlugin>& plugins);

}  // namespace ganymede::optimizer
