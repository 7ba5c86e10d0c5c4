#include "launcher/supervisor/kept_changes.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/error.h"
#include "common/config/fields.h"
#include "common/os/files.h"
#include "common/service/run_directory.h"
#include "common/service/settings.h"
#include "launcher/supervisor/swap_config.h"

namespace ganymede::launcher {

KeptChanges read_changes() {
  if (!std::filesystem::exists(changes_file)) return {};
  try {
    auto object = nlohmann::json::parse(os::read_file(changes_file));
    KeptChanges changes{.job = object.at("job").get<std::uint64_t>(),
                        .number = object.at("number").get<std::uint64_t>(),
                        .given = object.at("given").get<std::map<std::string, double>>(),
                        .now = {}};
    if (object.contains("epoch")) changes.epoch = object.at("epoch").get<std::uint64_t>();
    if (object.contains("optimizer")) changes.optimizer = object.at("optimizer").get<std::string>();
    if (object.contains("recipe")) changes.recipe = object.at("recipe").get<std::map<std::string, std::string>>();
    if (object.contains("said")) changes.said = object.at("said").get<std::set<std::string>>();
    for (const auto& entry : changes.given) changes.now[entry.first] = object.at("now").at(entry.first).get<double>();
    return changes;
  } catch (const nlohmann::json::exception&) {
    fail_usage(
        "{}, which has the changes that were made while the run ran, is damaged: put it back from a copy, or remove it "
        "to go on with the recipe's values.",
        std::filesystem::absolute(changes_file).string());
  }
}

void write_changes(const KeptChanges& changes) {
  nlohmann::ordered_json object = {
      {"job", changes.job}, {"number", changes.number}, {"given", changes.given}, {"now", changes.now}};
  if (changes.epoch > 0) object["epoch"] = changes.epoch;
  if (!changes.optimizer.empty()) object["optimizer"] = changes.optimizer;
  if (!changes.recipe.empty()) object["recipe"] = changes.recipe;
  if (!changes.said.empty()) object["said"] = changes.said;
  os::write_file_atomically(changes_file, object.dump(2) + "\n");
}

namespace {

/// As TOML, by key; what is the run's own, whatever its optimizer, is not among them.
std::map<std::string, std::string> optimizer_keys(config::Config config) {
  std::map<std::string, std::string> keys;
  for (const config::Field& field : config::fields(config))
    if (field.key.starts_with("optimizer.") && (field.key == "optimizer.name" || !stays_with_the_run(field.key)))
      keys[field.key] = config::to_toml(field);
  return keys;
}

}  // namespace

void note_swap(KeptChanges& changes, std::uint64_t epoch, const std::string& optimizer, const config::Config& recipe,
               const std::set<std::string>& said) {
  changes.epoch = epoch;
  changes.optimizer = optimizer;
  changes.given.clear();
  changes.now.clear();
  changes.recipe = optimizer_keys(recipe);
  changes.said.clear();
  for (const std::string& key : said)
    if (changes.recipe.contains(key)) changes.said.insert(key);
}

void note_change(KeptChanges& changes, const std::string& key, double before, const std::set<std::string>& said) {
  if (!changes.given.emplace(key, before).second) return;
  changes.said.erase(key);
  if (said.contains(key)) changes.said.insert(key);
}

namespace {

/// Empty, or that no checkpoint has the newest swap.
std::string forget_lost_swap(KeptChanges& changes, const std::string& goes_on) {
  std::string lost = std::exchange(changes.optimizer, goes_on);
  if (lost.empty() || lost == goes_on) return "";
  changes.given.clear();
  changes.now.clear();
  return fmt::format("the swap to {} is in no checkpoint: {} goes on; order it again with `ganymede ctl`", lost,
                     goes_on);
}

/// ", not --set optimizer.lr as before it": of what the same command has set before the swap; empty: nothing.
std::string passed_over(const std::set<std::string>& said, const std::map<std::string, std::string>& given,
                        const std::map<std::string, std::string>& kept) {
  std::string keys;
  for (const std::string& key : said) {
    auto was = given.find(key), is = kept.find(key);
    bool other = was != given.end() && is != kept.end() && was->second != is->second;
    if (other && key != "optimizer.name") keys += (keys.empty() ? " --set " : ", ") + key;
  }
  return keys.empty() ? "" : fmt::format(", not{} as before it", keys);
}

}  // namespace

std::string keep_swap(KeptChanges& changes, const config::Config* checkpoint, config::Config& config,
                      const std::set<std::string>& said) {
  if (changes.recipe.empty()) return "";
  std::map<std::string, std::string> then = std::move(changes.recipe), now = optimizer_keys(config);
  changes.recipe.clear();
  std::string lost = forget_lost_swap(changes, (checkpoint ? *checkpoint : config).optimizer.name);
  bool swapped =
      checkpoint && (lost.empty() || config::toml_text(checkpoint->optimizer.name) != then["optimizer.name"]);
  auto says_anew = [&](const std::string& key, const std::string& value) {
    auto was = then.find(key);
    return was == then.end() || was->second != value || (said.contains(key) && !changes.said.contains(key));
  };
  if (!swapped || says_anew("optimizer.name", now["optimizer.name"])) return lost;
  std::vector<std::string> since;
  for (const auto& [key, value] : now)
    if (says_anew(key, value)) since.push_back(key + "=" + value);
  changes.recipe = std::move(then);
  config::Config kept = config;
  kept.optimizer = checkpoint->optimizer;
  for (const config::Field& field : config::fields(config))
    if (field.key != "optimizer.name" && stays_with_the_run(field.key))
      since.push_back(field.key + "=" + config::to_toml(field));
  std::string name = config.optimizer.name;
  config = with_settings(kept, since, fmt::format("{}/swap.toml", service::log_folder));
  std::string from =
      config.optimizer.name == name ? "" : fmt::format("optimizer {} → {}, ", name, config.optimizer.name);
  return fmt::format("{}{}kept from `ganymede ctl swap-optimizer`: {}[optimizer] of the checkpoint{}", lost,
                     lost.empty() ? "" : "; ", from, passed_over(said, now, optimizer_keys(config)));
}

std::string describe(const KeptChanges& changes) {
  std::string text;
  for (const auto& [key, value] : changes.now)
    if (double was = changes.given.at(key); value != was)
      text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", key, was, value);
  return text;
}

std::string keep_changes(KeptChanges& changes, config::Config& config, const std::set<std::string>& said) {
  std::map<std::string, double> given = service::changeable_values(config);
  std::erase_if(changes.now, [&](const auto& entry) {
    auto was = changes.given.find(entry.first), is = given.find(entry.first);
    bool anew = said.contains(entry.first) && !changes.said.contains(entry.first);
    return anew || was == changes.given.end() || is == given.end() || was->second != is->second;
  });
  std::erase_if(changes.given, [&](const auto& entry) { return !changes.now.contains(entry.first); });
  for (const auto& [key, value] : changes.now) service::change(config, key, value);
  std::string text = describe(changes);
  return text.empty() ? "" : "kept from `ganymede ctl set`: " + text;
}

}  // namespace ganymede::launcher
