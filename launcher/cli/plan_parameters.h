#pragma once

#include <string>

#include "launcher/cli/plan_report.h"

namespace ganymede::cli {

/// The model's parameters, those of all layers and experts that are alike in one line with '*' for their numbers: a
/// pattern as optimizer.group.NAME.match takes it. With shape, how many there are, and who updates them.
std::string parameter_table(const PlanReport& report);

}  // namespace ganymede::cli
