#include <fmt/format.h>

#include "common/base/text.h"
#include "common/model_spec/model_spec.h"
#include "launcher/cli/plan_text.h"

namespace ganymede::cli {
namespace {

using plan::GradientExchange;

std::string bytes(std::uint64_t count) { return human_bytes(static_cast<double>(count)); }

/// Milliseconds up to some seconds, as a person says it.
std::string time(double ms) { return human_seconds(ms / 1e3); }

std::string share(double part, double whole) { return fmt::format("{:.0f}%", whole > 0 ? 100 * part / whole : 0); }

std::string head(const PlanReport& report) {
  const config::Config& c = report.config;
  int per_node = c.topology.ranks_per_node == 0 ? c.parallel.ranks : c.topology.ranks_per_node;
  return fmt::format(
      "{}: {}\nrank {} of {}, {} a node; expert group {}; a step is {} rows of {} tokens; {} operations\n", c.run.name,
      model_spec::describe(c.model), report.placement.rank, c.parallel.ranks, per_node, c.parallel.expert_group,
      with_commas(c.data.rows_per_step), with_commas(c.data.seq_len), report.plan.operations.size());
}

/// How much of the step the optimizer's update is.
std::string update(const PlanReport& report) {
  if (report.update_ms == 0) return "without the optimizer's update";
  if (!report.config.stream_update)
    return fmt::format("{} of it the optimizer's update before the forward", time(report.update_exposed_ms));
  return fmt::format("{} of it for the optimizer's update, which takes {} beside the forward",
                     time(report.update_exposed_ms), time(report.update_ms));
}

std::string times(const PlanReport& report) {
  std::string text = fmt::format("\ntime, predicted with {}\n", report.durations);
  std::array<int, plan::lane_count> count{};
  for (const plan::Operation& o : report.plan.operations) ++count[static_cast<std::size_t>(o.lane)];
  for (int lane = 0; lane < plan::lane_count; ++lane) {
    if (count[lane] == 0) continue;
    double busy = report.lanes[lane].busy_ms;
    text += fmt::format("  {:<12} {:>5} operations  busy {:>8}  {:>4}\n", plan::name(static_cast<plan::Lane>(lane)),
                        count[lane], time(busy), share(busy, report.step_ms));
  }
  double exposed = plan::sum_ms(report.exposed);
  text += fmt::format("  exposed communication {}, {} of the step\n", time(exposed), share(exposed, report.step_ms));
  text += fmt::format("  step {}, {}\n", time(report.step_ms), update(report));
  double second = report.tokens_per_second();
  text += fmt::format("  {} tokens/s, {} a rank\n", with_commas(static_cast<std::int64_t>(second)),
                      with_commas(static_cast<std::int64_t>(second / report.config.parallel.ranks)));
  if (report.peak_gflops == 0) return text;
  return text + fmt::format("  model flops utilisation {:.1f}% of {} Tflop/s a device\n",
                            100 * report.flops_utilisation, report.peak_gflops / 1e3);
}

/// What a machine has and what is needed of it, where its file says how much it has.
std::string capacity(const PlanReport& report) {
  std::string text;
  for (const auto& use : report.memory_uses) {
    if (text.empty()) text = fmt::format("\nwhat is needed of the memory of {}\n", report.durations);
    text += fmt::format("  {:<15} {:>10} of {:>10}  ", use.memory, human_bytes(use.used), human_bytes(use.capacity));
    if (use.ranks > 1) text += fmt::format("{} ranks of {}: ", use.ranks, human_bytes(use.used / use.ranks));
    text += use.fits() ? fmt::format("fits, {} left", human_bytes(use.capacity - use.used))
                       : fmt::format("too much by {}", human_bytes(use.used - use.capacity));
    text += use.with_state && !report.state_unknown.empty() ? ", without the optimizer's state\n" : "\n";
  }
  return text;
}

std::string memory(const PlanReport& report) {
  std::string text = fmt::format("\nmemory of the worker: pool {}, most alive at once {}\n",
                                 bytes(static_cast<std::uint64_t>(report.plan.pool_bytes)),
                                 bytes(static_cast<std::uint64_t>(report.plan.peak_bytes)));
  auto kinds = plan::peak_by_kind(report.plan);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (kinds[kind] == 0) continue;
    text += fmt::format("  {:<17} {:>10}\n", plan::name(static_cast<plan::BufferKind>(kind)),
                        bytes(static_cast<std::uint64_t>(kinds[kind])));
  }
  text += fmt::format("  beside the pool, tables of rotations: {}\n",
                      bytes(static_cast<std::uint64_t>(report.plan.rotary_bytes)));
  std::uint64_t sum = 0;
  for (const auto& segment : report.segments) sum += segment.bytes;
  text += fmt::format("\nshared memory of the cell: {}\n", bytes(sum));
  for (const auto& segment : report.segments)
    text += fmt::format("  {:<17} {:>10}{}\n", segment.name, bytes(segment.bytes),
                        report.pool_in_device && segment.name == "pool.0"
                            ? "  the pool: in the device's memory, not counted in the host's"
                            : "");
  if (!report.state_unknown.empty()) {
    text += fmt::format("  without the optimizer's state, which is not known: {}\n", report.state_unknown);
  }
  return text;
}

std::string traffic(const PlanReport& report) {
  auto line = [](const std::string& kind, const std::string& operation, const std::string& wire,
                 const plan::Moved& moved) {
    return fmt::format("  {:<8} {:<17} {:<20} {:>12} {:>13}\n", kind, operation, wire,
                       bytes(static_cast<std::uint64_t>(moved.inside)),
                       bytes(static_cast<std::uint64_t>(moved.between)));
  };
  std::string text =
      fmt::format("\n{:<47} {:>12} {:>13}\n", "what this rank sends in a step", "inside node", "between nodes");
  plan::Moved sum;
  for (const plan::TrafficLine& one : report.traffic) {
    if (one.moved.all() > 0) text += line(plan::name(one.kind), one.operation, one.wire, one.moved);
    sum += one.moved;
  }
  return text + line("all", "", "", sum);
}

/// The choices of the reference job one after another: bytes between nodes follow from them alone.
std::string between_nodes(const PlanReport& report) {
  if (plan::node_ranks(report.config, report.placement.rank) == report.config.parallel.ranks) return "";
  std::string text =
      fmt::format("\n{:<76} {:>9} {:>9} {:>9} {:>9}\n", "between nodes, GB (1e9 bytes) of this rank in a step",
                  "forward", "backward", "gradients", "matrices");
  auto line = [&](const char* what, const plan::TrafficChoices& choices) {
    auto lines = plan::step_traffic(report.config, report.placement, choices);
    auto gb = [&](const char* operation) { return static_cast<double>(plan::total(lines, operation).between) / 1e9; };
    text += fmt::format("  {:<74} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f}\n", what, gb("gather, forward"),
                        gb("gather, backward"), gb("reduce"), gb("update_send") + gb("update_return"));
  };
  plan::TrafficChoices choices = report.choices;
  line("as this plan moves it", choices);
  choices.dense_gradients = GradientExchange::fp32_reduce_scatter;
  line("dense buckets cross once a node", choices);
  choices.keep_last = false;
  line("… and every layer is gathered again for backward, the embedding is not", choices);
  choices.expert_gather = config::ParameterWire::fp8;
  line("… and fp8 expert gathers", choices);
  choices.dense_reshard = plan::Reshard::node;
  line("… and dense weights stay in the node from forward to backward", choices);
  choices.expert_gradients = GradientExchange::bf16_all_to_all;
  line("… and bf16 expert gradients", choices);
  return text;
}

}  // namespace

std::string summary(const PlanReport& report) {
  return head(report) + (report.timed() ? times(report) : std::string()) + memory(report) + capacity(report) +
         traffic(report) + between_nodes(report);
}

}  // namespace ganymede::cli
