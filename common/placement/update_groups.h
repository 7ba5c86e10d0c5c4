#pragma once

#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/model_spec/model_spec.h"

/// Which optimizer updates which parameter: a pure function of the configuration and of what the plugins say of
/// themselves, computed alike by every service.
namespace ganymede::placement {

/// What a plugin's table says.
struct OptimizerFacts {
  std::string name;
  std::vector<std::string> slots;           // state slots, one fp32 value a parameter element each, but for `row_slots`
  bool matrices = false;                    // updates whole matrices only, in two phases
  std::vector<std::string> row_slots = {};  // of `slots`: those that have one value a row of a matrix instead
  bool updates_matrix = false;              // an orthogonalised matrix goes through its update_matrix as a whole
  std::vector<std::string> reductions = {};  // that it asks for, see reductions.h

  bool per_row(std::size_t slot) const;
  /// Slots with one value a parameter element.
  std::size_t element_slots() const { return slots.size() - row_slots.size(); }
  friend bool operator==(const OptimizerFacts&, const OptimizerFacts&) = default;
};

/// Parameters under one rule.
struct UpdateGroup {
  std::string name;             // of [optimizer.group.NAME]; empty: those of [optimizer] itself
  int optimizer = 0;            // index into UpdateGroups::optimizers
  bool decays_vectors = false;  // the group has a weight decay of its own, which then is on all of it
};

struct UpdateGroups {
  std::vector<OptimizerFacts> optimizers;  // of the run, in the order of config::optimizers_of
  std::vector<UpdateGroup> groups;         // first [optimizer] itself, then by name: the order in decision records
  std::vector<int> of_parameter;           // index into `groups`

  const OptimizerFacts& optimizer_of(int parameter) const {
    return optimizers[static_cast<std::size_t>(
        groups[static_cast<std::size_t>(of_parameter[static_cast<std::size_t>(parameter)])].optimizer)];
  }
  /// Most state slots of an optimizer.
  std::size_t columns() const;
  /// Names of all slots, each once, in the order of the optimizers.
  std::vector<std::string> slot_names() const;
};

/// An optimizer of matrices needs somebody for what is no matrix: adds [optimizer.group.rest] where the configuration
/// has none.
void add_rest(config::Optimizer& settings, const std::vector<OptimizerFacts>& facts);

/// `facts`: of the run's plugins, in any order; none: every plugin of the configuration is elementwise and without
/// state, which is enough for whoever has nothing to do with it. Throws Error(usage), naming group and parameter, when
/// a parameter is in two groups, a group has none, or an optimizer of matrices would get what is no matrix.
UpdateGroups update_groups(const config::Optimizer& settings, const std::vector<model_spec::ParameterSpec>& parameters,
                           const std::vector<OptimizerFacts>& facts);

}  // namespace ganymede::placement
