#pragma once

#include <functional>

#include "services/optimizer/cell_memory.h"
#include "services/optimizer/spans.h"

namespace ganymede::optimizer {

/// Memory that errs: the master and what was published of it are the same values in two places. A server that takes
/// over from one that died holds the one against the other, which costs the update nothing.
/// Throws Error that names the first parameter (of an fp8 bucket: the bucket) where they differ: every bit in fp32; in
/// bf16 and fp8 what is left of the master after rounding, and every bit of the working copy. The span that is under
/// way is left out: a kill may have torn it, and it is written again. `progress` hears of every bucket.
void check_master(const placement::Placement& placement, const CellMemory& memory, const Span& under_way,
                  const std::function<void()>& progress);

}  // namespace ganymede::optimizer
