#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/config/config.h"
#include "common/service/run_directory.h"

namespace ganymede::cli {

/// What a swap of the run in the current folder takes, as its optimizers say it.
struct SwapPlan {
  struct Slot {
    std::string name, from;  // from: the slot that it takes over; empty: it starts empty
    std::uint64_t age = 0;   // updates that this has seen
    bool per_row = false;    // a value a row of a matrix: no warming up fills it
  };
  struct Part {
    std::string from, to;  // optimizers
    int parameters = 0;
    std::vector<Slot> slots;
  };
  struct Rate {
    std::string group;  // empty: of what is in no group
    double before = 0, after = 0;
  };
  std::string before, after;  // optimizers
  std::string configuration;  // effective, with the new one
  std::vector<service::JobPlugin> plugins;
  std::vector<Part> parts;
  std::vector<Rate> rates;
  std::uint64_t warm_steps = 0;
  std::uint64_t base = 0;  // hash of the effective configuration that it was made from
};

/// `settings` as of launcher::swap_setting. `copy`: plugins are copied into the run directory and are those of the
/// plan. Throws Error, also when a plugin is not loaded within `seconds`.
SwapPlan plan_swap(const std::string& name, const std::vector<std::string>& settings, bool copy, double seconds);

/// Whether some slot starts empty that could be warmed up.
bool starts_empty(const SwapPlan& plan);

/// "18 parameters adamw → muon: momentum takes over first_moment, 120 updates old", a line a part.
std::vector<std::string> part_lines(const SwapPlan& plan);
/// "learning rate 0.02 → 0.003; rest stays 0.003".
std::string rates_line(const SwapPlan& plan);
/// [{"group", "before", "after"}], the group null for what is in none.
nlohmann::ordered_json rates_json(const SwapPlan& plan);
/// [{"from", "to", "parameters", "slots": [{"name", "from" or null, "age"}]}].
nlohmann::ordered_json parts_json(const SwapPlan& plan);

}  // namespace ganymede::cli
