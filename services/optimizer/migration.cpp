#include "services/optimizer/migration.h"

#include <algorithm>
#include <string_view>

#include "common/base/error.h"

namespace ganymede::optimizer {
namespace {

std::span<const GanymedeStateSlot> slots_of(const EpochState& state, int parameter) {
  const placement::UpdateGroups& update = state.placement->update;
  auto group = static_cast<std::size_t>(update.of_parameter[static_cast<std::size_t>(parameter)]);
  const GanymedeOptimizer& table = *state.tables[static_cast<std::size_t>(update.groups[group].optimizer)];
  return {table.slots, table.slot_count};
}

/// Which elements a rank holds does not depend on the optimizer: the master is one for all epochs.
void check_same_elements(const placement::Placement& from, const placement::Placement& to) {
  bool same = std::ranges::equal(from.owned, to.owned, [](const auto& one, const auto& other) {
    return one.parameter == other.parameter && one.first == other.first && one.count == other.count &&
           one.shard_offset == other.shard_offset;
  });
  if (!same || from.rank != to.rank || from.shard_elements != to.shard_elements)
    fail("The state of rank {} cannot be taken over by rank {}: they hold other parts of the parameters", from.rank,
         to.rank);
}

std::span<float> elements_of(const EpochState& state, const placement::OwnedRange& range, std::size_t column) {
  placement::StateRun run = state.placement->state_run(range, column);
  return state.columns[column].subspan(static_cast<std::size_t>(run.offset), static_cast<std::size_t>(run.count));
}

}  // namespace

std::vector<int> slot_origins(const EpochState& from, const EpochState& to, int parameter) {
  std::span<const GanymedeStateSlot> old = slots_of(from, parameter);
  std::vector<int> origins;
  for (const GanymedeStateSlot& slot : slots_of(to, parameter)) {
    auto same = std::ranges::find_if(old, [&](const GanymedeStateSlot& one) {
      return std::string_view(one.meaning) == slot.meaning && one.shape == slot.shape;
    });
    origins.push_back(same == old.end() ? -1 : static_cast<int>(same - old.begin()));
  }
  return origins;
}

void migrate(const EpochState& from, const EpochState& to, std::uint64_t updates, const std::function<void()>& moved) {
  check_same_elements(*from.placement, *to.placement);
  for (std::span<float> column : to.columns) {
    std::ranges::fill(column, 0.0f);
    moved();
  }
  std::ranges::fill(to.began, updates);
  for (std::size_t i = 0; i < to.placement->owned.size(); ++i) {
    moved();
    const placement::OwnedRange& range = to.placement->owned[i];
    std::vector<int> origins = slot_origins(from, to, range.parameter);
    for (std::size_t column = 0; column < origins.size(); ++column) {
      if (origins[column] < 0) continue;
      auto origin = static_cast<std::size_t>(origins[column]);
      std::ranges::copy(elements_of(from, from.placement->owned[i], origin), elements_of(to, range, column).begin());
    }
  }
  auto parameters = static_cast<int>(to.placement->parameters.size());
  for (int parameter = 0; parameter < parameters; ++parameter) {
    std::vector<int> origins = slot_origins(from, to, parameter);
    for (std::size_t column = 0; column < origins.size(); ++column) {
      if (origins[column] < 0) continue;
      to.began_of(parameter, column) = from.began_of(parameter, static_cast<std::size_t>(origins[column]));
    }
  }
}

std::uint64_t youngest_began(const EpochState& state, int parameter) {
  std::uint64_t youngest = 0;
  for (std::size_t column = 0; column < slots_of(state, parameter).size(); ++column)
    youngest = std::max(youngest, state.began_of(parameter, column));
  return youngest;
}

}  // namespace ganymede::optimizer
