#include "launcher/supervisor/swap_config.h"

#include <filesystem>
#include <map>
#include <set>

#include "common/base/error.h"
#include "common/config/fields.h"
#include "common/os/files.h"

namespace ganymede::launcher {
namespace {

/// Of [optimizer] itself.
const std::set<std::string>& keys_of_a_swap() {
  static const std::set<std::string> keys = {"lr",           "weight_decay", "clip_norm",   "schedule",
                                             "warmup_steps", "decay_steps",  "decay_shape", "min_lr_ratio"};
  return keys;
}

const std::set<std::string>& keys_of_the_run() {
  static const std::set<std::string> keys = {"name",      "plugin_folder",  "threads",         "policy",
                                             "outlier_z", "outlier_window", "stop_after_skips"};
  return keys;
}

/// Of the configuration, without [optimizer].
const std::set<std::string>& other_sections() {
  static const std::set<std::string> sections = [] {
    std::set<std::string> all;
    config::Config standard;
    for (const config::Field& field : config::fields(standard)) all.insert(field.key.substr(0, field.key.find('.')));
    all.erase("optimizer");
    return all;
  }();
  return sections;
}

std::string whole_key(const std::string& key, const std::string& name) {
  if (key == "warm_steps" || key == "swap.warm_steps") return "swap.warm_steps";
  std::size_t dot = key.find('.');
  if (dot != std::string::npos && other_sections().contains(key.substr(0, dot)))
    fail_usage(
        "--set {}: only keys of [optimizer], of its plugins and groups, and swap.warm_steps can be set with a "
        "swap.",
        key);
  std::string own = key.starts_with("optimizer.") ? key.substr(std::string("optimizer.").size()) : key;
  if (keys_of_the_run().contains(own))
    fail_usage("Key 'optimizer.{}' cannot change by a swap: it is the run's, whatever its optimizer.", own);
  bool plain = own.find('.') == std::string::npos;
  if (plain && !keys_of_a_swap().contains(own)) return fmt::format("optimizer.{}.{}", name, own);
  return "optimizer." + own;
}

}  // namespace

namespace {

/// A setting, and as a person wrote it.
struct Setting {
  std::string whole, written;
};

/// Whoever says two things has meant one of them.
void refuse_second(const std::vector<Setting>& before, const Setting& setting) {
  auto key = [](const Setting& one) { return one.whole.substr(0, one.whole.find('=')); };
  for (const Setting& one : before)
    if (key(one) == key(setting) && one.whole != setting.whole)
      fail_usage("Key '{}' is given twice, --set {} and --set {}: give it once.", key(setting), one.written,
                 setting.written);
}

/// The fault without the scratch file, which nobody has written: what was set is what does not fit.
std::string as_written(std::string fault, const std::vector<Setting>& settings, const std::string& scratch) {
  std::string all;
  for (const Setting& one : settings) {
    std::string whole = "--set " + one.whole + ":";
    if (fault.starts_with(whole)) return "--set " + one.written + fault.substr(whole.size() - 1);
    all += (all.empty() ? "--set " : " --set ") + one.written;
  }
  if (!fault.starts_with(scratch)) return fault;
  return (all.empty() ? "the configuration in force" : all) + fault.substr(fault.find(": "));
}

config::Config load_text(const std::string& text, const std::vector<Setting>& settings, const std::string& scratch) {
  std::vector<std::string> whole;
  for (const Setting& one : settings) whole.push_back(one.whole);
  os::write_file_atomically(scratch, text);
  try {
    config::Config changed = config::load(scratch, whole);
    std::filesystem::remove(scratch);
    return changed;
  } catch (const Error& error) {
    std::filesystem::remove(scratch);
    throw Error(error.code(), as_written(error.what(), settings, scratch));
  }
}

}  // namespace

config::Config with_settings(const config::Config& config, const std::vector<std::string>& settings,
                             const std::string& scratch) {
  std::vector<Setting> all;
  for (const std::string& one : settings) all.push_back({one, one});
  return load_text(config::effective(config), all, scratch);
}

config::Config config_of_text(const std::string& effective, const std::string& scratch) {
  return load_text(effective, {}, scratch);
}

bool stays_with_the_run(const std::string& key) {
  std::string_view section = "optimizer.";
  return key.starts_with(section) && keys_of_the_run().contains(key.substr(section.size()));
}

std::string swap_setting(const std::string& setting, const std::string& name) {
  std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0)
    fail_usage("{}: a setting is written KEY=VALUE, for example --set lr=2e-2.", setting);
  return whole_key(setting.substr(0, equals), name) + setting.substr(equals);
}

config::Config swapped_config(const config::Config& in_force, const std::string& name,
                              const std::vector<std::string>& settings, const std::string& scratch) {
  config::Config config = in_force;
  if (name != in_force.optimizer.name) {
    config.optimizer.name = name;
    config.optimizer.groups.erase(config::rest_group);
  }
  std::vector<Setting> all;
  for (const std::string& one : settings) {
    Setting setting{swap_setting(one, name), one};
    refuse_second(all, setting);
    all.push_back(std::move(setting));
  }
  return load_text(config::effective(config), all, scratch);
}

void add_rest(config::Config& swapped, const config::Config& in_force,
              const std::vector<placement::OptimizerFacts>& facts) {
  bool had = swapped.optimizer.groups.contains(config::rest_group);
  placement::add_rest(swapped.optimizer, facts);
  auto rest = swapped.optimizer.groups.find(config::rest_group);
  if (had || rest == swapped.optimizer.groups.end() || rest->second.optimizer != in_force.optimizer.name) return;
  rest->second.lr = in_force.optimizer.lr;
}

std::string other_difference(const config::Config& in_force, const config::Config& swapped) {
  config::Config before = in_force, after = swapped;
  std::map<std::string, std::string> was;
  for (const config::Field& field : config::fields(before)) was[field.key] = config::to_toml(field);
  for (const config::Field& field : config::fields(after)) {
    bool own = field.key.starts_with("optimizer.") || field.key.starts_with("swap.");
    auto found = was.find(field.key);
    if (!own && (found == was.end() || found->second != config::to_toml(field))) return field.key;
  }
  return "";
}

}  // namespace ganymede::launcher
