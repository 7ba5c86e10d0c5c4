#include "services/optimizer/swap_command.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/base/error.h"
#include "common/model_spec/model_spec.h"
#include "common/service/run_directory.h"
#include "services/optimizer/migration.h"
#include "services/optimizer/plugin_set.h"

namespace ganymede::optimizer {
namespace {

using nlohmann::ordered_json;

/// An optimizer with which parameters are updated, without any state.
struct Side {
  placement::Placement placement;  // `update` alone
  EpochState state;

  Side(const config::Config& config, const std::vector<placement::OptimizerFacts>& facts, Tables tables) {
    placement.update = placement::update_groups(config.optimizer, model_spec::parameters(config.model), facts);
    state.placement = &placement;
    state.tables = std::move(tables);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  std::size_t optimizer_of(int parameter) const {
    auto group = placement.update.of_parameter[static_cast<std::size_t>(parameter)];
    return static_cast<std::size_t>(placement.update.groups[static_cast<std::size_t>(group)].optimizer);
  }
  const std::string& name_of(int parameter) const { return placement.update.optimizer_of(parameter).name; }
  const GanymedeOptimizer& table_of(int parameter) const { return *state.tables[optimizer_of(parameter)]; }
};

Tables tables_of(const std::vector<service::JobPlugin>& plugins) {
  Tables tables;
  for (const service::JobPlugin& one : plugins) tables.push_back(load_plugin(one.file).table);
  return tables;
}

Tables tables_of(const std::vector<PreparedPlugin>& plugins) {
  Tables tables;
  for (const PreparedPlugin& one : plugins) tables.push_back(one.plugin.table);
  return tables;
}

/// Updates after which a mean that began with zero is nearly that of a long past: 1 / (1 - decay), of the slowest.
std::int64_t mature_after(const GanymedeOptimizer& table, const std::string& name,
                          const std::map<std::string, double>& hyper) {
  double slowest = 0;
  for (std::uint32_t i = 0; i < table.hyper_parameter_count; ++i) {
    std::string_view key = table.hyper_parameters[i].name;
    if (!key.starts_with("beta") && key != "momentum") continue;
    double decay = hyper.at(name + "." + std::string(key));
    if (decay > 0 && decay < 1) slowest = std::max(slowest, decay);
  }
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(1 / (1 - slowest) - 1e-9)));
}

ordered_json slots_of(const Side& from, const Side& to, int parameter) {
  ordered_json slots = ordered_json::array();
  std::vector<int> origins = slot_origins(from.state, to.state, parameter);
  for (std::size_t i = 0; i < origins.size(); ++i) {
    const GanymedeStateSlot& own = to.table_of(parameter).slots[i];
    ordered_json slot = {
        {"name", own.name}, {"from", nullptr}, {"column", origins[i]}, {"per_row", own.shape == GANYMEDE_PER_ROW}};
    if (origins[i] >= 0) slot["from"] = from.table_of(parameter).slots[origins[i]].name;
    slots.push_back(std::move(slot));
  }
  return slots;
}

/// Parameters of the same two optimizers take the same slots over.
ordered_json parts_of(const Side& from, const Side& to, const std::vector<model_spec::ParameterSpec>& parameters) {
  ordered_json parts = ordered_json::array();
  for (int parameter = 0; parameter < static_cast<int>(parameters.size()); ++parameter) {
    if (parameters[static_cast<std::size_t>(parameter)].update == model_spec::UpdateKind::selection_bias) continue;
    const std::string &old = from.name_of(parameter), &fresh = to.name_of(parameter);
    auto same = std::ranges::find_if(parts, [&](const auto& one) { return one["from"] == old && one["to"] == fresh; });
    if (same != parts.end()) {
      (*same)["parameters"] = (*same)["parameters"].get<int>() + 1;
      continue;
    }
    parts.push_back({{"from", old},
                     {"to", fresh},
                     {"parameters", 1},
                     {"parameter", parameter},
                     {"slots", slots_of(from, to, parameter)}});
  }
  return parts;
}

}  // namespace

std::string describe_swap(const std::string& run, const std::string& configuration, bool dry) {
  if (::chdir(run.c_str()) != 0) fail("Run directory {} cannot be entered: {}.", run, std::strerror(errno));
  config::Config config = config::load(configuration, {});
  std::vector<PreparedPlugin> plugins = dry ? find_plugins(config) : copy_plugins(config, ".");
  check_groups(config, plugins);
  std::map<std::string, double> hyper = hyper_of(plugins, config.optimizer);
  service::JobEpoch before = service::read_job().first_epoch();  // in force, with its plugins as they were copied
  Side from(config::load(before.config, {}), before.optimizers(), tables_of(before.plugins));
  Side to(config, facts_of(plugins), tables_of(plugins));
  ordered_json parts = parts_of(from, to, model_spec::parameters(config.model));
  std::int64_t warm_steps = 0;
  for (const auto& part : parts) {
    // What has a value a row begins when the swap takes effect, however long it is warmed up.
    bool empty = std::ranges::any_of(part["slots"], [](const auto& slot) {
      return slot["from"].is_null() && !slot["per_row"].template get<bool>();
    });
    int parameter = part["parameter"];
    if (empty) warm_steps = std::max(warm_steps, mature_after(to.table_of(parameter), to.name_of(parameter), hyper));
  }
  ordered_json object = {
      {"plugins", ordered_json::array()}, {"hyper", hyper}, {"warm_steps", warm_steps}, {"parts", parts}};
  for (const PreparedPlugin& one : plugins) object["plugins"].push_back(facts_json(one));
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace ganymede::optimizer
