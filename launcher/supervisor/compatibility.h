#pragma once

#include <string>

#include "common/config/config.h"
#include "common/placement/update_groups.h"

namespace ganymede::launcher {

/// Whether `now` may go on from what `before` (of the run directory `run`) has made. Throws Error(usage) that names the
/// first key that may not change, with its old and new value.
void check_compatible(const config::Config& before, const config::Config& now, const std::string& run);

/// The keys that have another value in `now`, with both: "optimizer.lr 0.003 → 0.002, parallel.ranks 2 → 3"; the
/// number of steps is left out, which changes whenever a run is made longer. Empty: none.
std::string changed_keys(const config::Config& before, const config::Config& now);

/// Whether a key keeps its value for the life of a run.
bool is_fixed(const std::string& key);

/// Throws Error(usage) when a parameter of the model would be updated by another optimizer than in the run so far; each
/// configuration with what its plugins say of themselves.
void check_who_updates(const config::Config& before, const std::vector<placement::OptimizerFacts>& facts_before,
                       const config::Config& now, const std::vector<placement::OptimizerFacts>& facts_now,
                       const std::string& run);

/// Thread counts that were chosen once hold as long as the world has the same size, so that a run that goes on has the
/// bits of one that was never stopped. 0 in `now` becomes the number of `before`, or, without one, a cell's share of
/// this machine's `cores` for the worker, and a quarter of that for the optimizer server: it updates while the worker
/// computes on the same cores, and memory bandwidth, not arithmetic, bounds it. `cells`: of this node.
void resolve_threads(config::Config& now, const config::Config* before, int cores, int cells);

/// Empty, or a line that says that the ranks of this node have more threads than there are cores.
std::string shared_cores(const config::Config& config, int cores, int cells);

/// Throws Error(usage) with both numbers when one process would have more threads than the `cores` that it may use.
/// Several ranks may share the cores: on a small machine that is how a larger world is tried out.
void check_threads(const config::Config& config, int cores);

/// Throws Error(usage) naming the first key of collectives.max_ctas that is not 0: the backends that a CPU has take no
/// thread blocks that one could cap.
void check_ctas(const config::Config& config);

}  // namespace ganymede::launcher
