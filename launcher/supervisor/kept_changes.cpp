#include "launcher/supervisor/kept_changes.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/os/files.h"
#include "common/service/settings.h"

namespace ganymede::launcher {

KeptChanges read_changes() {
  if (!std::filesystem::exists(changes_file)) return {};
  try {
    auto object = nlohmann::json::parse(os::read_file(changes_file));
    KeptChanges changes{.job = object.at("job").get<std::uint64_t>(),
                        .number = object.at("number").get<std::uint64_t>(),
                        .given = object.at("given").get<std::map<std::string, double>>(),
                        .now = {}};
    for (const auto& entry : changes.given) changes.now[entry.first] = object.at("now").at(entry.first).get<double>();
    return changes;
  } catch (const nlohmann::json::exception& error) {
    fail_usage(
        "{} in the run directory, which has the changes that were made while the run ran, cannot be read ({}): remove "
        "it to go on with the recipe's values.",
        changes_file, error.what());
  }
}

void write_changes(const KeptChanges& changes) {
  nlohmann::ordered_json object = {
      {"job", changes.job}, {"number", changes.number}, {"given", changes.given}, {"now", changes.now}};
  os::write_file_atomically(changes_file, object.dump(2) + "\n");
}

std::string describe(const KeptChanges& changes) {
  std::string text;
  for (const auto& [key, value] : changes.now)
    if (double was = changes.given.at(key); value != was)
      text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", key, was, value);
  return text;
}

std::string keep_changes(KeptChanges& changes, config::Config& config) {
  std::map<std::string, double> given = service::changeable_values(config);
  std::erase_if(changes.now, [&](const auto& entry) {
    auto was = changes.given.find(entry.first), is = given.find(entry.first);
    return was == changes.given.end() || is == given.end() || was->second != is->second;
  });
  std::erase_if(changes.given, [&](const auto& entry) { return !changes.now.contains(entry.first); });
  for (const auto& [key, value] : changes.now) service::change(config, key, value);
  std::string text = describe(changes);
  return text.empty() ? "" : "kept from `ganymede ctl set`: " + text;
}

}  // namespace ganymede::launcher
