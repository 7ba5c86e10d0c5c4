#include "common/placement/reductions.h"

#include <algorithm>

namespace ganymede::placement {
namespace {

using model_spec::HeadRows;
using model_spec::ParameterSpec;

/// What the parameter would see of this kind, but for where; of no elements: nothing.
Reduction seen_by(ReductionKind kind, const ParameterSpec& parameter, int index) {
  if (kind == ReductionKind::gradient_square) {
    bool has_gradient = parameter.update != model_spec::UpdateKind::selection_bias;
    return {.kind = kind, .parameter = index, .count = has_gradient ? 1 : 0};
  }
  bool projection = parameter.heads.role != HeadRows::Role::none;
  return {.kind = kind, .layer = parameter.layer, .count = projection ? parameter.heads.query_heads : 0};
}

/// Adds it, unless it is there already. Its index.
int add(Reductions& all, Reduction one) {
  for (std::size_t i = 0; one.layer >= 0 && i < all.parts.size(); i++)
    if (all.parts[i].kind == one.kind && all.parts[i].layer == one.layer) return static_cast<int>(i);
  one.first = all.elements;
  all.elements += one.count;
  all.parts.push_back(one);
  return static_cast<int>(all.parts.size()) - 1;
}

}  // namespace

int reduction_index(const std::string& name) {
  auto found = std::find(reduction_names.begin(), reduction_names.end(), name);
  return found == reduction_names.end() ? -1 : static_cast<int>(found - reduction_names.begin());
}

bool Reductions::asks_for(ReductionKind kind) const {
  return std::any_of(parts.begin(), parts.end(), [kind](const Reduction& part) { return part.kind == kind; });
}

const Reduction* Reductions::find(ReductionKind kind, int parameter) const {
  int index = of_parameter[static_cast<std::size_t>(parameter)][static_cast<std::size_t>(kind)];
  return index < 0 ? nullptr : &parts[static_cast<std::size_t>(index)];
}

Reductions reductions_of(const UpdateGroups& update, const std::vector<ParameterSpec>& parameters) {
  Reductions all;
  all.of_parameter.resize(parameters.size());
  for (auto& kinds : all.of_parameter) kinds.fill(-1);
  for (std::size_t kind = 0; kind < reduction_kinds; kind++) {
    for (std::size_t i = 0; i < parameters.size(); i++) {
      int index = static_cast<int>(i);
      const std::vector<std::string>& asked = update.optimizer_of(index).reductions;
      if (std::find(asked.begin(), asked.end(), reduction_names[kind]) == asked.end()) continue;
      Reduction one = seen_by(static_cast<ReductionKind>(kind), parameters[i], index);
      if (one.count > 0) all.of_parameter[i][kind] = add(all, one);
    }
    if (static_cast<ReductionKind>(kind) == ReductionKind::attention_logit) all.maxima = all.elements;
  }
  return all;
}

}  // namespace ganymede::placement
