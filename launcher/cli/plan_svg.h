#pragma once

#include <string>

#include "launcher/cli/plan_report.h"

namespace ganymede::cli {

/// Lanes over predicted time as an SVG document: a bar an operation with a tooltip, colours by kind with a legend,
/// exposed communication shaded. The report has to have durations.
std::string plan_svg(const PlanReport& report);

}  // namespace ganymede::cli
