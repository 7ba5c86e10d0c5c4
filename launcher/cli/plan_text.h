#pragma once

#include <string>

#include "launcher/cli/plan_report.h"

namespace ganymede::cli {

/// A line for each operation, for a person. Ends with a newline, as the next.
std::string operation_table(const PlanReport& report);

/// Time by lane, memory and traffic of the step.
std::string summary(const PlanReport& report);

/// What two plans do otherwise: their numbers side by side, then the operations that differ: counted by kind or, with
/// `every`, each on a line as only in the right plan (+), only in the left one (-) or changed (~).
std::string difference(const PlanReport& left, const PlanReport& right, bool every);

/// All of it as one JSON object, for programs.
std::string plan_json(const PlanReport& report);

}  // namespace ganymede::cli
