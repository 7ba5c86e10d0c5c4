#include "launcher/cli/plan_text.h"

#include <fmt/format.h>

#include "common/base/text.h"

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
    for (int b : which) text += fmt::format(" {}{}", sign, report.plan.buffers[b].name);
  };
  list('+', operation.takes);
  list('-', operation.frees);
  return text;
}

/// Wide enough for every subject, so that columns stay columns.
std::size_t subject_width(const PlanReport& report) {
  std::size_t width = 2;
  for (const plan::Operation& o : report.plan.operations) width = std::max(width, subject(report, o).size());
  return width;
}

}  // namespace

std::string operation_table(const PlanReport& report) {
  std::size_t width = subject_width(report);
  auto line = [&](const auto& index, const char* lane, const char* operation, const std::string& of,
                  const std::string& wire, const std::string& moved, const std::string& between,
                  const std::string& start, const std::string& ms, const std::string& after, const std::string& lives) {
    std::string times = report.timed() ? fmt::format(" {:>12} {:>10}", start, ms) : "";
    std::string text = fmt::format("{:>5} {:<9} {:<15} {:<{}} {:<4} {:>9} {:>9}{}  {:<12}{}", index, lane, operation,
                                   of, width, wire, moved, between, times, after, lives);
    while (text.back() == ' ') text.pop_back();
    return text + "\n";
  };
  std::string text =
      line("#", "lane", "operation", "of", "wire", "bytes", "to nodes", "starts at", "ms", "waits for", " buffers");
  for (std::size_t i = 0; i < report.plan.operations.size(); ++i) {
    const plan::Operation& o = report.plan.operations[i];
    std::string start = report.timed() ? fmt::format("{:.3f}", report.spans[i].start_ms) : "";
    std::string ms = report.timed() ? fmt::format("{:.3f}", report.spans[i].end_ms - report.spans[i].start_ms) : "";
    text += line(i, plan::name(o.lane), plan::name(o.kind), subject(report, o), o.wire, bytes(o.bytes),
                 bytes(report.moved[i].between), start, ms, numbers(o.after), buffers(report, o));
  }
  return text;
}

}  // namespace ganymede::cli
