#include "launcher/cli/config.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/config/fields.h"
#include "launcher/cli/table.h"

namespace ganymede::cli {
namespace {

using nlohmann::ordered_json;

struct Key {
  std::string key, type, value, standard, allowed, help;
};

config::Config values_of(const ConfigRequest& request) {
  if (!request.recipe.empty()) return config::load(request.recipe, request.settings);
  if (!request.settings.empty()) fail_usage("--set {}: name the recipe that it changes.", request.settings.front());
  return {};
}

[[noreturn]] void no_such_key(const std::string& prefix, const std::vector<Key>& keys) {
  std::vector<std::string> known;
  for (const Key& key : keys) {
    known.push_back(key.key);
    known.push_back(config::section_of(key.key));
  }
  std::string near = nearest(prefix, known);
  if (near.empty()) fail_usage("No key begins with '{}': `ganymede config` shows all.", prefix);
  fail_usage("No key begins with '{}'; did you mean '{}'?", prefix, near);
}

/// Keys of a parameter group: those of the recipe, or of one that could be called NAME.
void add_groups(std::vector<Key>& keys, config::OptimizerGroups groups, bool recipe) {
  if (!recipe) groups["NAME"];
  for (auto& [name, group] : groups) {
    config::OptimizerGroup standard;
    std::vector<config::Field> fields = config::group_fields(name, group);
    std::vector<config::Field> standards = config::group_fields(name, standard);
    for (std::size_t i = 0; i < fields.size(); ++i)
      keys.push_back({fields[i].key, config::type_name(fields[i]), config::to_toml(fields[i]),
                      config::to_toml(standards[i]), config::allowed(fields[i]), fields[i].help});
  }
}

/// Those of plugins that the recipe sets; what their standard is, the plugin alone knows.
void add_hyper_parameters(std::vector<Key>& keys, std::map<std::string, double> hyper) {
  for (auto& [name, value] : hyper) {
    config::Field field = config::hyper_field(name, value);
    keys.push_back({field.key, config::type_name(field), config::to_toml(field), "", "", field.help});
  }
}

std::vector<Key> all_keys(const ConfigRequest& request) {
  config::Config values = values_of(request);
  std::vector<config::Field> fields = config::fields(values);
  std::vector<config::FieldHelp> all = config::keys();
  std::vector<Key> keys;
  for (std::size_t i = 0; i < all.size(); ++i)
    keys.push_back({all[i].key, all[i].type, config::to_toml(fields[i]), all[i].standard, all[i].allowed, all[i].help});
  add_groups(keys, values.optimizer.groups, !request.recipe.empty());
  add_hyper_parameters(keys, values.optimizer.hyper);
  return keys;
}

std::vector<Key> wanted(const ConfigRequest& request) {
  std::vector<Key> all = all_keys(request), keys;
  for (const Key& key : all)
    if (key.key.starts_with(request.prefix)) keys.push_back(key);
  if (keys.empty()) no_such_key(request.prefix, all);
  return keys;
}

/// With commas in whole numbers of four digits or more: "1 to 1,000,000".
std::string readable(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = std::min(text.find_first_not_of("0123456789", i), text.size());
    bool fraction = i > 0 && text[i - 1] == '.';
    out += end - i >= 4 && !fraction ? with_commas(std::stoll(text.substr(i, end - i))) : text.substr(i, end - i);
    if (end < text.size()) out += text[end];
    i = end + 1;
  }
  return out;
}

/// "fp32 or bf16", or the type where any value of it will do; what has no limit but that of its type is "0 or more".
std::string allowed_text(const Key& key) {
  static const std::string no_limit = fmt::format(" to {}", std::numeric_limits<std::int64_t>::max());
  if (key.allowed.empty()) return key.type;
  if (!key.allowed.ends_with(no_limit)) return readable(key.allowed);
  return key.allowed.substr(0, key.allowed.size() - no_limit.size()) + " or more";
}

/// `config [RECIPE] [PREFIX]`: a single word that names no file is a prefix.
ConfigRequest sorted(ConfigRequest request) {
  const std::string& word = request.recipe;
  bool names_file =
      word.ends_with(".toml") || word.find('/') != std::string::npos || std::filesystem::is_regular_file(word);
  if (request.prefix.empty() && !names_file) std::swap(request.recipe, request.prefix);
  return request;
}

}  // namespace

std::string config_text(const ConfigRequest& request) {
  bool recipe = !request.recipe.empty();
  std::map<std::string, Table> tables;
  std::vector<std::string> sections;
  for (const Key& key : wanted(request)) {
    std::string section = config::section_of(key.key);
    if (sections.empty() || sections.back() != section) {
      sections.push_back(section);
      Table& table = tables.emplace(section, Table(recipe ? "lllll" : "llll")).first->second;
      std::string head = section.empty() ? "key" : fmt::format("[{}]", section);
      table.add(recipe ? std::vector<std::string>{head, "value", "standard", "allowed", "what it is"}
                       : std::vector<std::string>{head, "standard", "allowed", "what it is"});
    }
    std::vector<std::string> cells = {config::name_of(key.key), key.standard, allowed_text(key), key.help};
    if (recipe)
      cells.insert(cells.begin() + 1, key.value + (key.value == key.standard || key.standard.empty() ? "" : " *"));
    tables.at(section).add(std::move(cells));
  }
  std::string text;
  for (const std::string& section : sections) text += (text.empty() ? "" : "\n") + tables.at(section).text();
  if (std::string("optimizer.").starts_with(request.prefix) || request.prefix.starts_with("optimizer."))
    text += "\nKeys of a plugin, [optimizer.NAME], are listed by `ganymede optimizer describe NAME`.\n";
  return recipe ? text + "\n* differs from the standard value\n" : text;
}

std::string config_json(const ConfigRequest& request) {
  auto list = ordered_json::array();
  for (const Key& key : wanted(request)) {
    // Every value of the configuration is written in TOML as it is in JSON.
    list.push_back({{"key", key.key},
                    {"type", key.type},
                    {"value", ordered_json::parse(key.value)},
                    {"standard", key.standard.empty() ? ordered_json() : ordered_json::parse(key.standard)},
                    {"allowed", key.allowed},
                    {"help", key.help}});
  }
  return list.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void add_config(CLI::App& app) {
  struct Options {
    ConfigRequest request;
    bool json = false, toml = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("config", "List the keys of the configuration: value, limits, meaning");
  command->add_option("RECIPE", options->request.recipe, "Recipe whose values are shown (default: standard values)");
  command->add_option("PREFIX", options->request.prefix,
                      "Beginning of the keys to show: wire, optimizer.lr (default: all keys)");
  command->add_option("--set", options->request.settings, "Change a key of RECIPE: --set optimizer.lr=3e-4")
      ->allow_extra_args(false);
  auto* json = command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--toml", options->toml, "Print the whole effective configuration as a recipe")->excludes(json);
  command->callback([options] {
    ConfigRequest request = sorted(options->request);
    if (options->toml && !request.prefix.empty())
      fail_usage("--toml prints the whole configuration: leave '{}' away.", request.prefix);
    fmt::print("{}", options->toml   ? config::effective(values_of(request))
                     : options->json ? config_json(request)
                                     : config_text(request));
  });
}

}  // namespace ganymede::cli
