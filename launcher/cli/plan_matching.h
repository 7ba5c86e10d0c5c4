#pragma once

#include <string>
#include <vector>

#include "launcher/cli/plan_report.h"

namespace ganymede::cli {

/// An operation by what it is ("gather layer.3.dense", the second time "gather layer.3.dense again") and its index in
/// each of two plans; -1 where it is not.
struct Match {
  std::string name;
  int left = -1, right = -1;
};

/// Every operation of either plan once: those of the left one in its order, then those of the right one alone.
std::vector<Match> match_operations(const PlanReport& left, const PlanReport& right);

}  // namespace ganymede::cli
