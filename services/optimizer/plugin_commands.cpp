#include "services/optimizer/plugin_commands.h"

#include <fmt/ranges.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/model_spec/model_spec.h"
#include "common/newton_schulz/coefficients.h"
#include "common/placement/placement.h"
#include "common/service/run_directory.h"
#include "services/optimizer/plugin_folder.h"

namespace ganymede::optimizer {
namespace {

using nlohmann::ordered_json;

std::string chosen(const std::string& folder) { return folder.empty() ? default_plugin_folder() : folder; }

ordered_json as_json(const GanymedeOptimizer& table) {
  ordered_json object = {
      {"name", table.name}, {"version", table.version}, {"abi", table.abi}, {"matrices", table.apply_chunk != nullptr}};
  object["slots"] = ordered_json::array();
  for (const auto& slot : std::span(table.slots, table.slot_count)) {
    object["slots"].push_back({{"name", slot.name}, {"meaning", slot.meaning}});
  }
  object["hyper_parameters"] = ordered_json::array();
  for (const auto& key : std::span(table.hyper_parameters, table.hyper_parameter_count)) {
    object["hyper_parameters"].push_back({{"name", key.name},
                                          {"default", key.default_value},
                                          {"lowest", key.lowest},
                                          {"highest", key.highest},
                                          {"whole", (key.flags & GANYMEDE_WHOLE_NUMBER) != 0},
                                          {"fixed", (key.flags & GANYMEDE_FIXED) != 0},
                                          {"help", key.help}});
  }
  return object;
}

/// The plugin as JSON, or {"name", "error"} when it cannot be loaded.
ordered_json listed(const std::string& folder, const std::string& name) {
  try {
    return as_json(*load_plugin(find_plugin(folder, name)).table);
  } catch (const Error& error) {
    return {{"name", name}, {"error", error.what()}};
  }
}

std::string print(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

placement::OptimizerFacts facts_of(const PreparedPlugin& prepared) { return prepared.plugin.facts(prepared.name); }

using Load = std::function<PreparedPlugin(const std::string& name, const std::string& key)>;

/// The key of the first group that names the plugin.
std::string key_of(const config::Optimizer& settings, const std::string& plugin) {
  for (const auto& [name, group] : settings.groups)
    if (group.optimizer == plugin) return fmt::format("optimizer.group.{}.optimizer", name);
  return "optimizer.name";
}

/// The run's plugins, in the order of config::optimizers_of. `settings` get the group of what the first of them does
/// not update.
std::vector<PreparedPlugin> load_plugins(config::Optimizer& settings, const Load& load) {
  std::vector<PreparedPlugin> plugins = {load(settings.name, "optimizer.name")};
  placement::add_rest(settings, {facts_of(plugins.front())});
  std::vector<std::string> names = config::optimizers_of(settings);
  for (std::size_t i = 1; i < names.size(); ++i) plugins.push_back(load(names[i], key_of(settings, names[i])));
  return plugins;
}

/// All of their hyper-parameters. Sections of plugins that the run does not use are held against those plugins, so that
/// nothing misspelt goes unseen.
std::map<std::string, double> hyper_of(const std::vector<PreparedPlugin>& plugins, const config::Optimizer& settings) {
  std::set<std::string> others;
  for (const auto& entry : settings.hyper) others.insert(entry.first.substr(0, entry.first.find('.')));
  std::map<std::string, double> all;
  for (const PreparedPlugin& one : plugins) {
    others.erase(one.name);
    all.merge(hyper_parameters(*one.plugin.table, one.name, settings));
  }
  for (const std::string& name : others) {
    Plugin plugin = load_plugin(find_plugin(chosen(settings.plugin_folder), name, fmt::format("[optimizer.{}]", name)));
    hyper_parameters(*plugin.table, name, settings);
  }
  return all;
}

ordered_json facts_json(const PreparedPlugin& prepared) {
  placement::OptimizerFacts facts = facts_of(prepared);
  return {{"name", facts.name},    {"version", prepared.plugin.table->version},
          {"slots", facts.slots},  {"matrices", facts.matrices},
          {"file", prepared.path}, {"hash", fmt::format("{:016x}", prepared.plugin.hash)}};
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

/// Every parameter has one optimizer that can update it, in this world, and matrices can be orthogonalised as the
/// configuration says.
void check_groups(const config::Config& config, const std::vector<PreparedPlugin>& plugins) {
  check_newton_schulz(config.newton_schulz);
  std::vector<placement::OptimizerFacts> facts;
  for (const PreparedPlugin& one : plugins) facts.push_back(facts_of(one));
  placement::update_groups(config.optimizer, model_spec::parameters(config.model), facts);
  placement::check_replicas(config, facts);
}

}  // namespace

std::string prepare_run(const std::string& run) {
  config::Config config = config::load(fmt::format("{}/{}", run, service::config_file), {});
  std::vector<PreparedPlugin> plugins =
      load_plugins(config.optimizer, [&](const std::string& name, const std::string& key) {
        return prepare_plugin(chosen(config.optimizer.plugin_folder), name, run, key);
      });
  check_groups(config, plugins);
  ordered_json object = {{"plugins", ordered_json::array()}, {"hyper", hyper_of(plugins, config.optimizer)}};
  for (const PreparedPlugin& one : plugins) object["plugins"].push_back(facts_json(one));
  return print(object);
}

std::string check_recipe(const std::string& recipe, const std::vector<std::string>& settings, Check check) {
  config::Config config = config::load(recipe, settings);
  std::string folder = chosen(config.optimizer.plugin_folder);
  std::vector<PreparedPlugin> plugins =
      load_plugins(config.optimizer, [&](const std::string& name, const std::string& key) {
        std::string path = find_plugin(folder, name, key);
        return PreparedPlugin{name, load_plugin(path), path};
      });
  check_groups(config, plugins);
  hyper_of(plugins, config.optimizer);
  std::vector<std::string> keys;
  for (const std::string& setting : settings) keys.push_back(setting.substr(0, setting.find('=')));
  for (const PreparedPlugin& one : plugins)
    if (check.running) refuse_fixed(*one.plugin.table, one.name, keys);
  ordered_json all = ordered_json::array();
  std::vector<std::string> lines;
  for (const PreparedPlugin& one : plugins) {
    all.push_back(facts_json(one));
    lines.push_back(fmt::format("{} {}", one.plugin.table->name, one.plugin.table->version));
  }
  return check.json ? print({{"plugins", all}}) : fmt::format("{}", fmt::join(lines, ", "));
}

std::string list_plugins(const std::string& folder, bool json) {
  ordered_json plugins = ordered_json::array();
  std::vector<std::string> lines;
  for (const std::string& name : available_plugins(chosen(folder))) {
    ordered_json plugin = listed(chosen(folder), name);
    bool broken = plugin.contains("error");
    lines.push_back(broken ? fmt::format("{}: {}", name, plugin["error"].get<std::string>())
                           : fmt::format("{} {}", name, plugin["version"].get<std::string>()));
    plugins.push_back(std::move(plugin));
  }
  if (json) return print({{"folder", chosen(folder)}, {"plugins", plugins}});
  if (lines.empty()) return fmt::format("no plugins in {}", chosen(folder));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string describe_plugin(const std::string& folder, const std::string& name, bool json) {
  Plugin plugin = load_plugin(find_plugin(chosen(folder), name));
  if (json) return print(as_json(*plugin.table));
  std::vector<std::string> lines = {
      fmt::format("{} {} (ABI {})", plugin.table->name, plugin.table->version, plugin.table->abi)};
  if (plugin.table->apply_chunk) lines.emplace_back("  updates whole matrices; others go to [optimizer.group.rest]");
  for (const auto& slot : std::span(plugin.table->slots, plugin.table->slot_count)) {
    lines.push_back(fmt::format("  state {}: {}, 4 bytes a parameter", slot.name, slot.meaning));
  }
  for (const auto& key : std::span(plugin.table->hyper_parameters, plugin.table->hyper_parameter_count)) {
    lines.push_back(fmt::format("  optimizer.{}.{} = {}: {} ({}{} to {}{})", name, key.name, key.default_value,
                                key.help, key.flags & GANYMEDE_WHOLE_NUMBER ? "whole, " : "", key.lowest, key.highest,
                                key.flags & GANYMEDE_FIXED ? "; fixed while a run lives" : ""));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace ganymede::optimizer
