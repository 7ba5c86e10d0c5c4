#include "launcher/cli/plan_matching.h"

#include <fmt/format.h>

#include <map>

namespace ganymede::cli {
namespace {

/// What it is about; of one that is about no bucket, layer or row: the buffers that it gives back, else takes.
std::string subject_or_buffers(const PlanReport& report, const plan::Operation& o) {
  std::string text = subject(report, o);
  if (!text.empty()) return text;
  for (int b : o.frees.empty() ? o.takes : o.frees)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", report.plan.buffers[b].name);
  return text;
}

/// The names of all operations in their order; each is there once.
std::vector<std::string> names_of(const PlanReport& report) {
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  for (const plan::Operation& o : report.plan.operations) {
    std::string name = fmt::format("{} {}", plan::name(o.kind), subject_or_buffers(report, o));
    while (name.back() == ' ') name.pop_back();
    for (int again = seen[name]++; again > 0; --again) name += " again";
    names.push_back(name);
  }
  return names;
}

}  // namespace

std::vector<Match> match_operations(const PlanReport& left, const PlanReport& right) {
  std::vector<Match> matches;
  std::map<std::string, int> places;
  for (const std::string& name : names_of(left)) {
    places[name] = static_cast<int>(matches.size());
    matches.push_back({name, static_cast<int>(matches.size()), -1});
  }
  int index = 0;
  for (const std::string& name : names_of(right)) {
    auto found = places.find(name);
    if (found == places.end())
      matches.push_back({name, -1, index});
    else
      matches[found->second].right = index;
    ++index;
  }
  return matches;
}

}  // namespace ganymede::cli
