#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "common/base/text.h"
#include "launcher/cli/plan_matching.h"
#include "launcher/cli/plan_text.h"
#include "launcher/cli/table.h"

namespace ganymede::cli {
namespace {

std::string size(double bytes) { return human_bytes(bytes); }

std::string both(std::int64_t left, std::int64_t right) {
  return fmt::format("{} → {}", size(static_cast<double>(left)), size(static_cast<double>(right)));
}

std::string wire_of(const std::string& wire) { return wire.empty() ? "none" : wire; }

std::string title(const PlanReport& report) {
  std::string text = report.recipe;
  for (const std::string& setting : report.settings) text += " " + setting;
  return text;
}

// --- the two plans' numbers -----------------------------------------------------------------------------------------

std::string ratio(double left, double right) {
  if (left == right) return "=";
  return left == 0 ? "" : fmt::format("{:.3f}", right / left);
}

struct NumberTable {
  Table table{"lrrr", "  "};
  NumberTable() { table.add({"", "left", "right", "right/left"}); }
  template <class Show>
  void add(const std::string& what, double left, double right, Show show) {
    table.add({what, show(left), show(right), ratio(left, right)});
  }
};

std::string count(double x) { return with_commas(static_cast<std::int64_t>(x)); }
std::string percent(double part) { return fmt::format("{:.1f}%", 100 * part); }
std::string duration(double ms) { return human_seconds(ms / 1e3); }

double shared_bytes(const PlanReport& report) {
  double sum = 0;
  for (const auto& segment : report.segments) sum += static_cast<double>(segment.bytes);
  return sum;
}

/// Bytes by what sends them, with both sides' wire formats.
struct Sent {
  plan::Moved left, right;
  std::string left_wire, right_wire;
};

void add_sent(NumberTable& numbers, const PlanReport& left, const PlanReport& right) {
  std::map<std::string, Sent> sent;
  std::vector<std::string> order;
  Sent all;
  auto take = [&](const PlanReport& report, plan::Moved Sent::*moved, std::string Sent::*wire) {
    for (const plan::TrafficLine& line : report.traffic) {
      std::string key = fmt::format("{} {}", plan::name(line.kind), line.operation);
      if (!sent.contains(key)) order.push_back(key);
      sent[key].*moved += line.moved;
      sent[key].*wire = line.wire;
      all.*moved += line.moved;
    }
  };
  take(left, &Sent::left, &Sent::left_wire);
  take(right, &Sent::right, &Sent::right_wire);
  auto lines = [&](const std::string& what, const Sent& one) {
    auto line = [&](const char* where, std::int64_t plan::Moved::*part) {
      if (one.left.*part == 0 && one.right.*part == 0) return;
      numbers.add(what + where, static_cast<double>(one.left.*part), static_cast<double>(one.right.*part), size);
    };
    line(", inside node", &plan::Moved::inside);
    line(", between nodes", &plan::Moved::between);
  };
  for (const std::string& key : order) {
    const Sent& one = sent[key];
    bool other_wire = !one.left_wire.empty() && !one.right_wire.empty() && one.left_wire != one.right_wire;
    lines(other_wire ? fmt::format("{} ({} → {})", key, one.left_wire, one.right_wire) : key, one);
  }
  lines("all sent", all);
}

std::string numbers(const PlanReport& a, const PlanReport& b) {
  NumberTable all;
  auto real = [](auto x) { return static_cast<double>(x); };
  if (a.timed() && b.timed()) {
    all.add("step", a.step_ms, b.step_ms, duration);
    all.add("exposed communication", plan::sum_ms(a.exposed), plan::sum_ms(b.exposed), duration);
    all.add("tokens/s", a.tokens_per_second(), b.tokens_per_second(), count);
    if (a.peak_gflops > 0) all.add("model flops utilisation", a.flops_utilisation, b.flops_utilisation, percent);
  }
  all.add("memory, most alive at once", real(a.plan.peak_bytes), real(b.plan.peak_bytes), size);
  all.add("memory, pool", real(a.plan.pool_bytes), real(b.plan.pool_bytes), size);
  all.add("memory, arena", real(a.plan.arena_bytes), real(b.plan.arena_bytes), size);
  all.add("memory, shared, of the cell", shared_bytes(a), shared_bytes(b), size);
  add_sent(all, a, b);
  all.add("operations", real(a.plan.operations.size()), real(b.plan.operations.size()), count);
  return all.table.text();
}

// --- operations -----------------------------------------------------------------------------------------------------

std::int64_t taken(const PlanReport& report, const plan::Operation& operation) {
  std::int64_t sum = 0;
  for (int b : operation.takes) sum += report.plan.buffers[b].bytes;
  return sum;
}

double duration_of(const PlanReport& report, int index) {
  return report.timed() ? report.spans[index].end_ms - report.spans[index].start_ms : 0;
}

/// What is not the same of two operations of one name; empty when all is. `aspects` without the amounts.
struct Change {
  std::string text;
  std::vector<std::string> aspects;
  void add(const std::string& aspect, const std::string& what) {
    text += (text.empty() ? "" : ", ") + what;
    aspects.push_back(aspect);
  }
};

Change change_of(const PlanReport& a, int i, const PlanReport& b, int j) {
  const plan::Operation &x = a.plan.operations[i], &y = b.plan.operations[j];
  Change change;
  auto add_same = [&](const std::string& what) { change.add(what, what); };
  if (x.lane != y.lane) add_same(fmt::format("lane {} → {}", plan::name(x.lane), plan::name(y.lane)));
  if (x.wire != y.wire) add_same(fmt::format("wire {} → {}", wire_of(x.wire), wire_of(y.wire)));
  if (x.bytes != y.bytes) change.add("bytes", "bytes " + both(x.bytes, y.bytes));
  if (a.moved[i].between != b.moved[j].between)
    change.add("between nodes", "between nodes " + both(a.moved[i].between, b.moved[j].between));
  if (taken(a, x) != taken(b, y)) change.add("buffers", "buffers " + both(taken(a, x), taken(b, y)));
  if (!a.timed() || !b.timed()) return change;
  double before = duration_of(a, i), after = duration_of(b, j);
  if (std::abs(after - before) > 1e-3 + 1e-6 * before)
    change.add("duration", fmt::format("{:.3f} → {:.3f} ms", before, after));
  return change;
}

/// Operations of one kind that are not the same in both plans.
struct Folded {
  int changed = 0, left_only = 0, right_only = 0;
  double left_bytes = 0, right_bytes = 0, left_ms = 0, right_ms = 0;
  std::set<std::string> aspects;
  void add_left(const PlanReport& report, int i) {
    left_bytes += static_cast<double>(report.plan.operations[i].bytes);
    left_ms += duration_of(report, i);
  }
  void add_right(const PlanReport& report, int i) {
    right_bytes += static_cast<double>(report.plan.operations[i].bytes);
    right_ms += duration_of(report, i);
  }
};

std::string folded_table(const std::map<plan::OperationKind, Folded>& kinds, bool timed) {
  Table table("lrrrrrrrl", "  ");
  table.add({"kind", "changed", "left only", "right only", "left bytes", "right bytes", "left ms", "right ms", "what"});
  auto number = [](int x) { return x == 0 ? std::string() : with_commas(x); };
  auto ms = [&](double x) { return timed ? fmt::format("{:.3f}", x) : std::string(); };
  auto bytes = [](double x) { return x == 0 ? std::string() : size(x); };
  for (const auto& [kind, f] : kinds) {
    table.add({plan::name(kind), number(f.changed), number(f.left_only), number(f.right_only), bytes(f.left_bytes),
               bytes(f.right_bytes), ms(f.left_ms), ms(f.right_ms), fmt::format("{}", fmt::join(f.aspects, ", "))});
  }
  return table.text(true);
}

}  // namespace

std::string difference(const PlanReport& left, const PlanReport& right, bool every) {
  std::map<plan::OperationKind, Folded> kinds;
  std::string list;
  int same = 0;
  for (const Match& match : match_operations(left, right)) {
    auto kind = match.left >= 0 ? left.plan.operations[match.left].kind : right.plan.operations[match.right].kind;
    if (match.left >= 0 && match.right >= 0) {
      Change change = change_of(left, match.left, right, match.right);
      if (change.text.empty()) {
        ++same;
        continue;
      }
      ++kinds[kind].changed;
      kinds[kind].aspects.insert(change.aspects.begin(), change.aspects.end());
      list += fmt::format("~ {}: {}\n", match.name, change.text);
    } else {
      ++(match.left >= 0 ? kinds[kind].left_only : kinds[kind].right_only);
      list += fmt::format("{} {}\n", match.left >= 0 ? "-" : "+", match.name);
    }
    if (match.left >= 0) kinds[kind].add_left(left, match.left);
    if (match.right >= 0) kinds[kind].add_right(right, match.right);
  }
  std::string text = fmt::format("left:  {}\nright: {}\n\n{}\n", title(left), title(right), numbers(left, right));
  if (!kinds.empty()) {
    text += fmt::format("operations that differ{}\n", every ? "" : ", by kind (--print lists each)");
    text += every ? list : folded_table(kinds, left.timed() && right.timed());
  }
  return text + fmt::format("{} operations are the same in both\n", with_commas(same));
}

}  // namespace ganymede::cli
