#include "services/optimizer/step_values.h"

#include <algorithm>
#include <span>
#include <string>

#include "common/base/error.h"

namespace ganymede::optimizer {
namespace {

std::span<const GanymedeHyperParameter> keys_of(const GanymedeOptimizer& table) {
  return {table.hyper_parameters, table.hyper_parameter_count};
}

/// "PLUGIN.KEY" of all plugins, in the order in which a record has their values.
std::vector<std::string> names_of(const Tables& tables, const placement::UpdateGroups& update) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < tables.size(); i++) {
    for (const auto& key : keys_of(*tables[i])) names.push_back(update.optimizers[i].name + "." + key.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

StepValues::StepValues(const Tables& tables, const placement::UpdateGroups& update, std::size_t group,
                       const step_protocol::DecisionRecord& record) {
  std::vector<std::string> names = names_of(tables, update);
  if (names.size() != record.hyper_count || update.groups.size() != record.group_count) {
    fail(
        "step {} was decided with {} hyper-parameters and {} groups of parameters, but the run's plugins have {} and "
        "there are {} groups: go on with the run's own plugins",
        record.step, record.hyper_count, record.group_count, names.size(), update.groups.size());
  }
  auto optimizer = static_cast<std::size_t>(update.groups[group].optimizer);
  const GanymedeOptimizer& table = *tables[optimizer];
  double* next = hyper_.data();
  for (const auto& key : keys_of(table)) {
    auto place = std::lower_bound(names.begin(), names.end(), update.optimizers[optimizer].name + "." + key.name);
    *next++ = record.hyper[place - names.begin()];
  }
  step_.size = sizeof(step_);
  step_.hyper_count = table.hyper_parameter_count;
  step_.step = record.updates;
  step_.lr = record.groups[group].lr;
  step_.weight_decay = record.groups[group].weight_decay;
  step_.gradient_scale = record.clip_factor;
}

GanymedeStep StepValues::step() const {
  GanymedeStep step = step_;
  step.hyper = hyper_.data();
  return step;
}

}  // namespace ganymede::optimizer
