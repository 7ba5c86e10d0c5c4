#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/placement/placement.h"
#include "services/optimizer/step_values.h"

/// What the optimizer of a new state epoch takes over from the one before it: a slot of the same meaning, of the same
/// parameter, with its age.
namespace ganymede::optimizer {

/// The state of one rank in one epoch. A view: whoever makes it keeps the memory.
struct EpochState {
  const placement::Placement* placement = nullptr;  // of the epoch
  Tables tables;                                    // of its plugins
  std::vector<std::span<float>> columns;            // [Placement::columns][elements]
  /// Per parameter and column: the updates that the parameter had seen when this slot of it was zero (`updates` of a
  /// decision record). So a slot's age after a step is that record's `updates` less this.
  std::span<std::uint64_t> began;  // [parameters][columns]

  std::uint64_t& began_of(int parameter, std::size_t column) const {
    return began[static_cast<std::size_t>(parameter) * columns.size() + column];
  }
};

/// For each slot of the optimizer that updates the parameter in `to`: the slot of its optimizer in `from` that has the
/// same meaning and shape, or -1, where there is none.
std::vector<int> slot_origins(const EpochState& from, const EpochState& to, int parameter);

/// Fills columns and `began` of `to` from the state after a step whose record counts `updates`: what has an origin is
/// copied with its age, all else is zero and of age 0. Every element is written, so it may be done again from the start
/// as long as `from` stands still. `moved` is called again and again meanwhile: the launcher takes who stands still for
/// one that hangs. Throws Error when the two are not of one run and rank.
void migrate(
    const EpochState& from, const EpochState& to, std::uint64_t updates, const std::function<void()>& moved = [] {});

/// `updates` of the record after which the youngest slot of the parameter was zero; 0 when it has no slot. A record's
/// `updates` less this is GanymedeStep::step: with it an optimizer corrects means that began with zero.
std::uint64_t youngest_began(const EpochState& state, int parameter);

}  // namespace ganymede::optimizer
