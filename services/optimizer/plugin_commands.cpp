#include "services/optimizer/plugin_commands.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <span>

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/service/run_directory.h"
#include "services/optimizer/plugin_folder.h"
#include "services/optimizer/plugin_guard.h"
#include "services/optimizer/plugin_set.h"

namespace ganymede::optimizer {
namespace {

using nlohmann::ordered_json;

ordered_json as_json(const GanymedeOptimizer& table) {
  ordered_json object = {
      {"name", table.name}, {"version", table.version}, {"abi", table.abi}, {"matrices", table.apply_chunk != nullptr}};
  object["slots"] = ordered_json::array();
  for (const auto& slot : std::span(table.slots, table.slot_count)) {
    object["slots"].push_back(
        {{"name", slot.name}, {"meaning", slot.meaning}, {"per_row", slot.shape == GANYMEDE_PER_ROW}});
  }
  object["reductions"] = std::vector<std::string>(table.reductions, table.reductions + table.reduction_count);
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

std::string print(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// The plugin as JSON, or {"name", "error"} when it cannot be loaded. One that crashes or hangs spares the others.
ordered_json listed(const std::string& folder, const std::string& name, double seconds) {
  auto faulty = [&](const Error& error) { return ordered_json{{"name", name}, {"error", error.what()}}; };
  auto load = [&] {
    try {
      return print(as_json(*load_plugin(find_plugin(folder, name)).table));
    } catch (const Error& error) {
      return print(faulty(error));
    }
  };
  try {
    return ordered_json::parse(guarded_text({.seconds = seconds}, load));
  } catch (const Error& error) {
    return faulty(error);
  }
}

}  // namespace

std::string prepare_run(const std::string& run) {
  config::Config config = config::load(fmt::format("{}/{}", run, service::config_file), {});
  std::vector<PreparedPlugin> plugins = copy_plugins(config, run);
  check_groups(config, plugins);
  ordered_json object = {{"plugins", ordered_json::array()}, {"hyper", hyper_of(plugins, config.optimizer)}};
  for (const PreparedPlugin& one : plugins) object["plugins"].push_back(facts_json(one));
  return print(object);
}

std::string check_recipe(const std::string& recipe, const std::vector<std::string>& settings, Check check) {
  config::Config config = config::load(recipe, settings);
  std::vector<PreparedPlugin> plugins = find_plugins(config);
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

std::string list_plugins(const std::string& folder, bool json, double seconds) {
  ordered_json plugins = ordered_json::array();
  std::vector<std::string> lines;
  for (const std::string& name : available_plugins(chosen(folder))) {
    ordered_json plugin = listed(chosen(folder), name, seconds);
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
    lines.push_back(fmt::format("  state {}: {}, 4 bytes a {}", slot.name, slot.meaning,
                                slot.shape == GANYMEDE_PER_ROW ? "row of a matrix" : "parameter"));
  }
  for (const char* reduction : std::span(plugin.table->reductions, plugin.table->reduction_count)) {
    lines.push_back(fmt::format("  reduction {}: of the whole step, over all ranks", reduction));
  }
  for (const auto& key : std::span(plugin.table->hyper_parameters, plugin.table->hyper_parameter_count)) {
    lines.push_back(fmt::format("  optimizer.{}.{} = {}: {} ({}{} to {}{})", name, key.name, key.default_value,
                                key.help, key.flags & GANYMEDE_WHOLE_NUMBER ? "whole, " : "", key.lowest, key.highest,
                                key.flags & GANYMEDE_FIXED ? "; fixed while a run lives" : ""));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace ganymede::optimizer
