#pragma once

#include <vector>

#include "common/plan/timeline.h"

namespace ganymede::worker {

/// The times of a measured step, ascending, in which a gather or the step itself waited for the optimizer server's
/// update of the step before and nothing else went on: nothing was computed or transferred, and the batch was there.
/// What a faster update would shorten; no part of plan::exposed_communication. Milliseconds since the step began.
/// `spans`: by operation of `plan`, with the waits for words of the cell at their beginning.
std::vector<plan::Interval> exposed_update(const plan::StepPlan& plan, const std::vector<plan::Span>& spans);

}  // namespace ganymede::worker
