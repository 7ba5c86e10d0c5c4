#pragma once

#include <string>

#include "launcher/cli/plan_report.h"

namespace ganymede::cli {

/// A line for each operation, for a person. Ends with a newline, as the next.
std::string operation_table(const PlanReport& report);

/// Time by lane, memory and traffic of the step.
std::string summary(const PlanReport& report);

/// What a second plan does otherwise: operations that are added (+), gone (-) or changed (~), then both plans' numbers
/// side by side.
std::string difference(const PlanReport& from, const PlanReport& to);

/// All of it as one JSON object, for programs.
std::string plan_json(const PlanReport& report);

}  // namespace ganymede::cli
