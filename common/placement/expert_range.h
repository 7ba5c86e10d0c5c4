#pragma once

namespace ganymede::placement {

/// Consecutive experts of a layer.
struct ExpertRange {
  int first = 0, count = 0;
};

/// What one place of an expert group holds of a layer's experts: as many as the others, and where they do not divide
/// evenly the first places one more. `places` ≥ 1, `place` < `places`.
ExpertRange experts_of_place(int experts, int places, int place);

/// The place that holds an expert; `places` ≤ `experts`.
int place_of_expert(int experts, int places, int expert);

}  // namespace ganymede::placement
