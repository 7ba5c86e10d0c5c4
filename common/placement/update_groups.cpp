#include "common/placement/update_groups.h"

#include <fnmatch.h>

#include <algorithm>

#include "common/base/error.h"

namespace ganymede::placement {
namespace {

using model_spec::ParameterSpec;
using model_spec::UpdateKind;

std::vector<OptimizerFacts> facts_of_run(const config::Optimizer& settings, const std::vector<OptimizerFacts>& facts) {
  std::vector<OptimizerFacts> all;
  for (const std::string& name : config::optimizers_of(settings)) {
    auto found = std::find_if(facts.begin(), facts.end(), [&](const OptimizerFacts& one) { return one.name == name; });
    if (found == facts.end() && !facts.empty()) fail("Optimizer '{}' was not prepared: start the run again.", name);
    all.push_back(found == facts.end() ? OptimizerFacts{name, {}, false} : *found);
  }
  return all;
}

int index_of(const std::vector<OptimizerFacts>& optimizers, const std::string& name) {
  auto found = std::find_if(optimizers.begin(), optimizers.end(), [&](auto& one) { return one.name == name; });
  return static_cast<int>(found - optimizers.begin());
}

bool named(const config::OptimizerGroup& group, const ParameterSpec& parameter) {
  return std::any_of(group.match.begin(), group.match.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), parameter.name.c_str(), FNM_NOESCAPE) == 0;
  });
}

/// The group that names the parameter; nullptr: none.
const std::string* group_that_names(const config::Optimizer& settings, const ParameterSpec& parameter) {
  const std::string* found = nullptr;
  for (const auto& [name, group] : settings.groups) {
    if (!named(group, parameter)) continue;
    if (found) {
      fail_usage(
          "Parameter {} is in two groups, [optimizer.group.{}] and [optimizer.group.{}]: name it in one of them.",
          parameter.name, *found, name);
    }
    found = &name;
  }
  return found;
}

/// Where a parameter belongs that no group names.
std::string group_left(const UpdateGroups& all, const ParameterSpec& parameter, const config::Optimizer& settings) {
  if (!all.optimizers.front().matrices || parameter.hidden_matrix()) return "";
  if (!settings.groups.contains(config::rest_group)) {
    fail_usage(
        "Optimizer '{}' updates matrices of layers only, and {} is none: say in [optimizer.group.rest] who updates the "
        "others.",
        settings.name, parameter.name);
  }
  return config::rest_group;
}

void require_rest_is_needed(const config::Optimizer& settings, const UpdateGroups& all) {
  if (all.optimizers.front().matrices || !settings.groups.contains(config::rest_group)) return;
  fail_usage(
      "[optimizer.group.rest] is for what an optimizer of matrices leaves to others, but '{}' (optimizer.name) updates "
      "every parameter: take the section out.",
      settings.name);
}

void require_matrix(const UpdateGroups& all, const ParameterSpec& parameter, const UpdateGroup& group) {
  const OptimizerFacts& optimizer = all.optimizers[static_cast<std::size_t>(group.optimizer)];
  bool matrix = parameter.shape.size() == 2 && parameter.update != UpdateKind::selection_bias;
  if (!optimizer.matrices || matrix) return;
  fail_usage(
      "Group [optimizer.group.{0}] gives {1} to optimizer '{2}', which updates matrices only: name another in "
      "optimizer.group.{0}.optimizer.",
      group.name, parameter.name, optimizer.name);
}

}  // namespace

bool OptimizerFacts::per_row(std::size_t slot) const {
  return slot < slots.size() && std::find(row_slots.begin(), row_slots.end(), slots[slot]) != row_slots.end();
}

std::size_t UpdateGroups::columns() const {
  std::size_t most = 0;
  for (const OptimizerFacts& one : optimizers) most = std::max(most, one.slots.size());
  return most;
}

std::vector<std::string> UpdateGroups::slot_names() const {
  std::vector<std::string> names;
  for (const OptimizerFacts& one : optimizers) {
    for (const std::string& slot : one.slots) {
      if (std::find(names.begin(), names.end(), slot) == names.end()) names.push_back(slot);
    }
  }
  return names;
}

void add_rest(config::Optimizer& settings, const std::vector<OptimizerFacts>& facts) {
  auto main = std::find_if(facts.begin(), facts.end(), [&](auto& one) { return one.name == settings.name; });
  if (main == facts.end() || !main->matrices || settings.groups.contains(config::rest_group)) return;
  if (settings.groups.size() >= config::most_groups) {
    fail_usage(
        "There are {} groups [optimizer.group.NAME], and that of what optimizer '{}' does not update (rest) makes one "
        "more; "
        "at most {} are possible.",
        settings.groups.size(), settings.name, config::most_groups);
  }
  settings.groups[config::rest_group].optimizer = "adamw";
}

UpdateGroups update_groups(const config::Optimizer& settings, const std::vector<ParameterSpec>& parameters,
                           const std::vector<OptimizerFacts>& facts) {
  UpdateGroups all;
  all.optimizers = facts_of_run(settings, facts);
  if (!facts.empty()) require_rest_is_needed(settings, all);
  all.groups.push_back({});
  for (const auto& [name, group] : settings.groups) {
    const std::string& optimizer = group.optimizer.empty() ? settings.name : group.optimizer;
    all.groups.push_back({name, index_of(all.optimizers, optimizer), group.weight_decay >= 0});
  }
  for (const ParameterSpec& parameter : parameters) {
    const std::string* named = group_that_names(settings, parameter);
    std::string wanted = named ? *named : group_left(all, parameter, settings);
    auto group = std::find_if(all.groups.begin(), all.groups.end(), [&](auto& one) { return one.name == wanted; });
    require_matrix(all, parameter, *group);
    all.of_parameter.push_back(static_cast<int>(group - all.groups.begin()));
  }
  for (std::size_t i = 1; i < all.groups.size(); ++i) {
    bool used =
        std::find(all.of_parameter.begin(), all.of_parameter.end(), static_cast<int>(i)) != all.of_parameter.end();
    if (used || all.groups[i].name == config::rest_group) continue;
    fail_usage(
        "Group [optimizer.group.{}] matches no parameter of the model: `ganymede plan RECIPE --parameters` lists them; "
        "they are like {}.",
        all.groups[i].name, parameters.at(parameters.size() / 2).name);
  }
  return all;
}

}  // namespace ganymede::placement
