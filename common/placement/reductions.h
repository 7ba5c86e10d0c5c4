#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/model_spec/model_spec.h"
#include "common/placement/update_groups.h"

/// What optimizers ask to know of a whole step before it is applied: vectors that ride in its vote. Which there are,
/// and where each lies, follows from the plugins' tables and the model alone, so it is the same on all ranks.
namespace ganymede::placement {

enum class ReductionKind : std::uint8_t {
  attention_logit,  // per query head of a layer: the largest scaled logit of the step, sinks left out
  gradient_square,  // of a parameter: the sum of the squares of its gradient before clipping
};
/// By kind: as a plugin names them.
constexpr std::array<const char*, 2> reduction_names = {"attention_logit", "gradient_square"};
constexpr std::size_t reduction_kinds = reduction_names.size();

/// One vector, of a layer or of a parameter; the other is -1.
struct Reduction {
  ReductionKind kind{};
  int layer = -1, parameter = -1;
  std::int64_t first = 0, count = 0;  // elements of the array of all
};

struct Reductions {
  std::vector<Reduction> parts;
  std::int64_t elements = 0;  // fp64, of all parts
  std::int64_t maxima = 0;    // so many come first, of which ranks have the maximum together; of the others the sum
  std::vector<std::array<int, reduction_kinds>> of_parameter;  // index into `parts`, -1: none

  bool asks_for(ReductionKind kind) const;
  /// The vector of this kind that the parameter's optimizer sees; null: it has none.
  const Reduction* find(ReductionKind kind, int parameter) const;
};

/// Index of a name; -1: there is none like it.
int reduction_index(const std::string& name);

/// A parameter has what its optimizer asks for and what is of its kind: a projection of queries or keys the logits of
/// its layer, every parameter with a gradient its square. Nothing is in it twice.
Reductions reductions_of(const UpdateGroups& update, const std::vector<model_spec::ParameterSpec>& parameters);

}  // namespace ganymede::placement
