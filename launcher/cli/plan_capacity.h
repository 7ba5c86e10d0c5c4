#pragma once

#include "launcher/cli/plan_report.h"

namespace ganymede::cli {

/// Fills in what the report says about this machine's capacities: memory_uses, peak_gflops, flops_utilisation. The
/// report has its plan, segments and step_ms; the ranks of a node are taken to be like this one.
void hold_against(const plan::Hardware& hardware, PlanReport& report);

}  // namespace ganymede::cli
