#pragma once

#include <string>

namespace ganymede::optimizer {

/// What a swap from the optimizer of the run in `run` to that of its file `configuration` takes. Loads and checks the
/// new plugins, copied into the run directory under their hash, or, `dry`, where they lie, and returns one JSON object:
/// "plugins" and "hyper" as of prepare_run; "warm_steps": how many updates the slots that start empty need, 0 when
/// there are none but per-row ones; "parts": one for each pair of an old and a new optimizer of some parameters,
/// {"from", "to", "parameters": how many, "parameter": index of the first, "slots": [{"name", "from": slot that it
/// takes over or null, "column": of that, "per_row"}]}. Throws Error. The current folder becomes `run`.
std::string describe_swap(const std::string& run, const std::string& configuration, bool dry);

}  // namespace ganymede::optimizer
