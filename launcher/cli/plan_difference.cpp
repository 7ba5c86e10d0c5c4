#include <fmt/format.h>

#include <cmath>
#include <map>

#include "common/base/text.h"
#include "launcher/cli/plan_text.h"

namespace ganymede::cli {
namespace {

/// Operations by what they are: "gather layer.3.dense", the second time "gather layer.3.dense again".
std::map<std::string, int> named(const PlanReport& report, std::vector<std::string>& order) {
  std::map<std::string, int> found;
  for (int i = 0; i < static_cast<int>(report.plan.operations.size()); ++i) {
    const plan::Operation& o = report.plan.operations[i];
    std::string key = fmt::format("{} {}", plan::name(o.kind), subject(report, o));
    while (key.back() == ' ') key.pop_back();
    while (found.contains(key)) key += " again";
    found[key] = i;
    order.push_back(key);
  }
  return found;
}

std::int64_t taken(const PlanReport& report, const plan::Operation& operation) {
  std::int64_t sum = 0;
  for (int b : operation.takes) sum += report.plan.buffers[b].bytes;
  return sum;
}

std::string both(std::int64_t from, std::int64_t to) {
  return fmt::format("{} → {}", human_bytes(static_cast<double>(from)), human_bytes(static_cast<double>(to)));
}

/// What is not the same of two operations of one name; empty when all is.
std::string changes(const PlanReport& a, int i, const PlanReport& b, int j) {
  const plan::Operation &x = a.plan.operations[i], &y = b.plan.operations[j];
  std::string text;
  auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (x.lane != y.lane) add(fmt::format("lane {} → {}", plan::name(x.lane), plan::name(y.lane)));
  if (x.wire != y.wire)
    add(fmt::format("wire {} → {}", x.wire.empty() ? "none" : x.wire, y.wire.empty() ? "none" : y.wire));
  if (x.bytes != y.bytes) add("bytes " + both(x.bytes, y.bytes));
  if (a.moved[i].between != b.moved[j].between) add("between nodes " + both(a.moved[i].between, b.moved[j].between));
  if (taken(a, x) != taken(b, y)) add("buffers " + both(taken(a, x), taken(b, y)));
  if (!a.timed() || !b.timed()) return text;
  double before = a.spans[i].end_ms - a.spans[i].start_ms, after = b.spans[j].end_ms - b.spans[j].start_ms;
  if (std::abs(after - before) > 1e-3 + 1e-6 * before) add(fmt::format("{:.3f} → {:.3f} ms", before, after));
  return text;
}

std::string change(double from, double to) {
  if (from == to) return "=";
  return from == 0 ? "" : fmt::format("{:+.1f}%", 100 * (to - from) / from);
}

std::int64_t sum(const PlanReport& report, std::int64_t plan::Moved::*part) {
  std::int64_t all = 0;
  for (const plan::TrafficLine& line : report.traffic) all += line.moved.*part;
  return all;
}

std::string numbers(const PlanReport& a, const PlanReport& b) {
  std::string text = fmt::format("\n{:<24} {:>14} {:>14} {:>9}\n", "", a.config.run.name, b.config.run.name, "change");
  auto line = [&](const char* what, double x, double y, auto show) {
    text += fmt::format("{:<24} {:>14} {:>14} {:>9}\n", what, show(x), show(y), change(x, y));
  };
  auto count = [](double x) { return with_commas(static_cast<std::int64_t>(x)); };
  auto seconds = [](double ms) { return human_seconds(ms / 1e3); };
  auto size = [](double x) { return human_bytes(x); };
  auto real = [](auto x) { return static_cast<double>(x); };
  line("operations", real(a.plan.operations.size()), real(b.plan.operations.size()), count);
  line("sent inside the node", real(sum(a, &plan::Moved::inside)), real(sum(b, &plan::Moved::inside)), size);
  line("sent between nodes", real(sum(a, &plan::Moved::between)), real(sum(b, &plan::Moved::between)), size);
  line("most alive at once", real(a.plan.peak_bytes), real(b.plan.peak_bytes), size);
  line("pool", real(a.plan.pool_bytes), real(b.plan.pool_bytes), size);
  line("arena", real(a.plan.arena_bytes), real(b.plan.arena_bytes), size);
  if (!a.timed() || !b.timed()) return text;
  line("exposed communication", plan::sum_ms(a.exposed), plan::sum_ms(b.exposed), seconds);
  line("step", a.step_ms(), b.step_ms(), seconds);
  line("tokens/s", a.tokens_per_second(), b.tokens_per_second(), count);
  return text;
}

}  // namespace

std::string difference(const PlanReport& from, const PlanReport& to) {
  std::vector<std::string> first, second;
  auto a = named(from, first), b = named(to, second);
  std::string text;
  int same = 0;
  for (const std::string& key : first) {
    if (!b.contains(key)) {
      text += fmt::format("- {}\n", key);
    } else if (std::string what = changes(from, a[key], to, b[key]); !what.empty()) {
      text += fmt::format("~ {}: {}\n", key, what);
    } else {
      ++same;
    }
  }
  for (const std::string& key : second) {
    if (!a.contains(key)) text += fmt::format("+ {}\n", key);
  }
  return fmt::format("{} → {}\n", from.recipe, to.recipe) + text +
         fmt::format("{} operations are the same in both\n", with_commas(same)) + numbers(from, to);
}

}  // namespace ganymede::cli
