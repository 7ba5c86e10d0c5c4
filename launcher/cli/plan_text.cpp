#include "launcher/cli/plan_text.h"

#include <fmt/format.h>

#include "common/base/text.h"
#include "launcher/cli/table.h"

namespace ganymede::cli {
namespace {

std::string bytes(std::int64_t count) { return count == 0 ? "" : human_bytes(static_cast<double>(count)); }

std::string numbers(const std::vector<int>& which) {
  std::string text;
  for (int i : which) text += fmt::format("{}{}", text.empty() ? "" : ",", i);
  return text;
}

std::string buffers(const PlanReport& report, const plan::Operation& operation) {
  std::string text;
  auto list = [&](char sign, const std::vector<int>& which) {
    for (int b : which) text += fmt::format("{}{}{}", text.empty() ? "" : " ", sign, report.plan.buffers[b].name);
  };
  list('+', operation.takes);
  list('-', operation.frees);
  return text;
}

}  // namespace

std::string operation_table(const PlanReport& report) {
  Table table("rllllrrrrll");
  table.add({"#", "lane", "operation", "of", "wire", "bytes", "to nodes", "starts at ms", "takes ms", "waits for",
             "buffers"});
  for (std::size_t i = 0; i < report.plan.operations.size(); ++i) {
    const plan::Operation& o = report.plan.operations[i];
    std::string start = report.timed() ? fmt::format("{:.3f}", report.spans[i].start_ms) : "";
    std::string ms = report.timed() ? fmt::format("{:.3f}", report.spans[i].end_ms - report.spans[i].start_ms) : "";
    table.add({std::to_string(i), plan::name(o.lane), plan::name(o.kind), subject(report, o), o.wire, bytes(o.bytes),
               bytes(report.moved[i].between), start, ms, numbers(o.after), buffers(report, o)});
  }
  return table.text(true);
}

}  // namespace ganymede::cli
