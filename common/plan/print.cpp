#include <fmt/format.h>

#include <string>
#include <vector>

#include "common/base/text.h"
#include "common/plan/plan.h"

namespace ganymede::plan {
namespace {

std::string buffers(const StepPlan& plan, char sign, const std::vector<int>& which) {
  std::string text;
  for (int b : which) text += fmt::format(" {}[{}]", sign, plan.buffers[b].name);
  return text;
}

std::string numbers(const std::vector<int>& which) {
  std::string text;
  for (int i : which) text += fmt::format("{}{}", text.empty() ? "" : ",", i);
  return text;
}

std::string subject(const Operation& operation, const placement::Placement& placement) {
  std::string text = operation.bucket >= 0 ? placement.buckets[operation.bucket].name
                     : operation.row >= 0  ? fmt::format("layer.{} row {}", operation.layer, operation.row)
                                           : "";
  if (operation.part != Part::whole) text += fmt::format(" {}", name(operation.part));
  return operation.wire.empty() ? text : text + " " + operation.wire;
}

}  // namespace

std::string print(const StepPlan& plan, const placement::Placement& placement) {
  std::string text = fmt::format("{:>5} {:<9} {:<16} {:<26} {:>10} {:<14} buffers\n", "#", "lane", "operation", "of",
                                 "bytes", "after");
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    const Operation& o = plan.operations[i];
    text += fmt::format("{:>5} {:<9} {:<16} {:<26} {:>10} {:<14}{}{}\n", i, name(o.lane), name(o.kind),
                        subject(o, placement), o.bytes > 0 ? human_bytes(static_cast<double>(o.bytes)) : "",
                        numbers(o.after), buffers(plan, '+', o.takes), buffers(plan, '-', o.frees));
  }
  text += fmt::format("pool {} bytes, most alive at once {} bytes, arena {} bytes, tables of rotations {} bytes\n",
                      plan.pool_bytes, plan.peak_bytes, plan.arena_bytes, plan.rotary_bytes);
  return text;
}

}  // namespace ganymede::plan
