#include "services/optimizer/plugin_set.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/error.h"
#include "common/model_spec/model_spec.h"
#include "common/newton_schulz/coefficients.h"
#include "common/placement/placement.h"
#include "services/optimizer/rehearsal.h"

namespace ganymede::optimizer {
namespace {

placement::OptimizerFacts facts_of_one(const PreparedPlugin& prepared) { return prepared.plugin.facts(prepared.name); }

using Load = std::function<PreparedPlugin(const std::string& name, const std::string& key)>;

/// The key of the first group that names the plugin.
std::string key_of(const config::Optimizer& settings, const std::string& plugin) {
  for (const auto& [name, group] : settings.groups)
    if (group.optimizer == plugin) return fmt::format("optimizer.group.{}.optimizer", name);
  return "optimizer.name";
}

std::vector<PreparedPlugin> load_plugins(config::Optimizer& settings, const Load& load) {
  std::vector<PreparedPlugin> plugins = {load(settings.name, "optimizer.name")};
  placement::add_rest(settings, facts_of(plugins));
  std::vector<std::string> names = config::optimizers_of(settings);
  for (std::size_t i = 1; i < names.size(); ++i) plugins.push_back(load(names[i], key_of(settings, names[i])));
  return plugins;
}

void check_newton_schulz(const config::NewtonSchulz& config) {
  newton_schulz::Schedule schedule = newton_schulz::parse_schedule("newton_schulz.coefficients", config.coefficients);
  if (config.dtype == config::Dtype::fp32) return;
  const char* why = config.where == config::OrthogonaliseWhere::optimizer ? "newton_schulz.where = \"optimizer\""
                    : config.form == config::NewtonSchulzForm::gram       ? "newton_schulz.form = \"gram\""
                    : newton_schulz::withstands_bf16(schedule)            ? nullptr
                                                                          : "newton_schulz.coefficients";
  if (why) fail_usage("{} needs fp32: set newton_schulz.dtype to \"fp32\" (it is \"bf16\"), or change the first.", why);
}

}  // namespace

std::string chosen(const std::string& folder) { return folder.empty() ? default_plugin_folder() : folder; }

std::vector<PreparedPlugin> find_plugins(config::Config& config) {
  std::string folder = chosen(config.optimizer.plugin_folder);
  return load_plugins(config.optimizer, [&](const std::string& name, const std::string& key) {
    std::string path = find_plugin(folder, name, key);
    return PreparedPlugin{name, load_plugin(path), path, path};
  });
}

std::vector<PreparedPlugin> copy_plugins(config::Config& config, const std::string& run) {
  std::string folder = chosen(config.optimizer.plugin_folder);
  return load_plugins(config.optimizer, [&](const std::string& name, const std::string& key) {
    return prepare_plugin(folder, name, run, key);
  });
}

std::map<std::string, double> hyper_of(const std::vector<PreparedPlugin>& plugins, const config::Optimizer& settings) {
  std::set<std::string> others;
  for (const auto& entry : settings.hyper) others.insert(entry.first.substr(0, entry.first.find('.')));
  std::map<std::string, double> all;
  for (const PreparedPlugin& one : plugins) {
    others.erase(one.name);
    all.merge(hyper_parameters(*one.plugin.table, one.name, settings));
    rehearse(one, all);
  }
  for (const std::string& name : others) {
    Plugin plugin = load_plugin(find_plugin(chosen(settings.plugin_folder), name, fmt::format("[optimizer.{}]", name)));
    hyper_parameters(*plugin.table, name, settings);
  }
  return all;
}

std::vector<placement::OptimizerFacts> facts_of(const std::vector<PreparedPlugin>& plugins) {
  std::vector<placement::OptimizerFacts> facts;
  for (const PreparedPlugin& one : plugins) facts.push_back(facts_of_one(one));
  return facts;
}

nlohmann::ordered_json facts_json(const PreparedPlugin& prepared) {
  placement::OptimizerFacts facts = facts_of_one(prepared);
  return {{"name", facts.name},
          {"version", prepared.plugin.table->version},
          {"slots", facts.slots},
          {"matrices", facts.matrices},
          {"row_slots", facts.row_slots},
          {"updates_matrix", facts.updates_matrix},
          {"reductions", facts.reductions},
          {"file", prepared.path},
          {"hash", fmt::format("{:016x}", prepared.plugin.hash)}};
}

void check_groups(const config::Config& config, const std::vector<PreparedPlugin>& plugins) {
  check_newton_schulz(config.newton_schulz);
  std::vector<placement::OptimizerFacts> facts = facts_of(plugins);
  placement::update_groups(config.optimizer, model_spec::parameters(config.model), facts);
  placement::check_replicas(config, facts);
}

}  // namespace ganymede::optimizer
