#include "services/optimizer/plugin_commands.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/service/run_directory.h"
#include "services/optimizer/plugin_folder.h"

namespace ganymede::optimizer {
namespace {

using nlohmann::ordered_json;

std::string chosen(const std::string& folder) { return folder.empty() ? default_plugin_folder() : folder; }

ordered_json as_json(const GanymedeOptimizer& table) {
  ordered_json object = {{"name", table.name}, {"version", table.version}, {"abi", table.abi}};
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

/// Sections of plugins that the run does not use are held against those plugins, so that nothing misspelt goes unseen.
void check_other_sections(const config::Optimizer& settings) {
  std::set<std::string> sections;
  for (const auto& entry : settings.hyper) sections.insert(entry.first.substr(0, entry.first.find('.')));
  sections.erase(settings.name);
  for (const std::string& name : sections) {
    Plugin plugin = load_plugin(find_plugin(chosen(settings.plugin_folder), name));
    hyper_parameters(*plugin.table, name, settings);
  }
}

}  // namespace

std::string prepare_run(const std::string& run) {
  config::Config config = config::load(fmt::format("{}/{}", run, service::config_file), {});
  PreparedPlugin prepared = prepare_plugin(chosen(config.optimizer.plugin_folder), config.optimizer.name, run);
  auto hyper = hyper_parameters(*prepared.plugin.table, config.optimizer.name, config.optimizer);
  check_other_sections(config.optimizer);
  ordered_json object = {{"name", prepared.plugin.table->name},
                         {"version", prepared.plugin.table->version},
                         {"slots", prepared.plugin.slots()},
                         {"hyper", hyper},
                         {"plugin", prepared.path},
                         {"hash", fmt::format("{:016x}", prepared.plugin.hash)}};
  return print(object);
}

std::string check_recipe(const std::string& recipe, const std::vector<std::string>& settings) {
  config::Optimizer optimizer = config::load(recipe, settings).optimizer;
  Plugin plugin = load_plugin(find_plugin(chosen(optimizer.plugin_folder), optimizer.name));
  hyper_parameters(*plugin.table, optimizer.name, optimizer);
  check_other_sections(optimizer);
  return fmt::format("{} {}", plugin.table->name, plugin.table->version);
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
  for (const auto& slot : std::span(plugin.table->slots, plugin.table->slot_count)) {
    lines.push_back(fmt::format("  state {}: {}, 4 bytes a parameter", slot.name, slot.meaning));
  }
  for (const auto& key : std::span(plugin.table->hyper_parameters, plugin.table->hyper_parameter_count)) {
    lines.push_back(fmt::format("  optimizer.{}.{} = {}: {} ({} to {})", name, key.name, key.default_value, key.help,
                                key.lowest, key.highest));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace ganymede::optimizer
