#include "launcher/cli/plan_parameters.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "common/base/text.h"
#include "launcher/cli/table.h"

namespace ganymede::cli {
namespace {

/// "model.layers.*.mlp.experts.*.up_proj.weight" of a name with numbers between dots.
std::string pattern_of(const std::string& name) {
  std::string pattern;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = std::min(name.find('.', at), name.size());
    std::string part = name.substr(at, end - at);
    bool number = std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    pattern += (pattern.empty() ? "" : ".") + (number ? "*" : part);
    at = end + 1;
  }
  return pattern;
}

struct Alike {
  std::string pattern, shape, group, optimizer;
  std::int64_t count = 0, elements = 0;
  auto key() const { return std::tie(pattern, shape, group, optimizer); }
};

}  // namespace

std::string parameter_table(const PlanReport& report) {
  const placement::UpdateGroups& update = report.placement.update;
  std::vector<Alike> all;
  for (std::size_t i = 0; i < report.placement.parameters.size(); ++i) {
    const model_spec::ParameterSpec& parameter = report.placement.parameters[i];
    bool bias = parameter.update == model_spec::UpdateKind::selection_bias;
    const placement::UpdateGroup& group = update.groups[static_cast<std::size_t>(update.of_parameter[i])];
    Alike one{pattern_of(parameter.name),
              fmt::format("{}", fmt::join(parameter.shape, " x ")),
              group.name,
              bias ? "balancing" : update.optimizer_of(static_cast<int>(i)).name,
              0,
              0};
    auto found = std::find_if(all.begin(), all.end(), [&](const Alike& other) { return other.key() == one.key(); });
    if (found == all.end()) found = all.insert(all.end(), std::move(one));
    ++found->count;
    found->elements += parameter.elements();
  }
  Table table("llrrll");
  table.add({"parameter", "shape", "number", "elements", "group", "updated by"});
  for (const Alike& one : all)
    table.add({one.pattern, one.shape, with_commas(one.count), with_commas(one.elements), one.group, one.optimizer});
  return table.text(true);
}

}  // namespace ganymede::cli
