#include <cmath>
#include <nlohmann/json.hpp>

#include "launcher/cli/plan_text.h"

namespace ganymede::cli {
namespace {

using nlohmann::ordered_json;

ordered_json names(const PlanReport& report, const std::vector<int>& buffers) {
  ordered_json list = ordered_json::array();
  for (int b : buffers) list.push_back(report.plan.buffers[b].name);
  return list;
}

ordered_json operations(const PlanReport& report) {
  ordered_json list = ordered_json::array();
  for (std::size_t i = 0; i < report.plan.operations.size(); ++i) {
    const plan::Operation& o = report.plan.operations[i];
    ordered_json object = {{"index", i},
                           {"lane", plan::name(o.lane)},
                           {"kind", plan::name(o.kind)},
                           {"bucket", o.bucket < 0 ? "" : report.placement.buckets[o.bucket].name},
                           {"layer", o.layer},
                           {"row", o.row},
                           {"wire", o.wire},
                           {"bytes", o.bytes},
                           {"bytes_inside_node", report.moved[i].inside},
                           {"bytes_between_nodes", report.moved[i].between},
                           {"takes", names(report, o.takes)},
                           {"frees", names(report, o.frees)},
                           {"after", o.after}};
    if (report.timed()) {
      object["start_ms"] = report.spans[i].start_ms;
      object["ms"] = report.spans[i].end_ms - report.spans[i].start_ms;
    }
    list.push_back(std::move(object));
  }
  return list;
}

ordered_json memory(const PlanReport& report) {
  ordered_json object = {{"pool_bytes", report.plan.pool_bytes},
                         {"peak_bytes", report.plan.peak_bytes},
                         {"arena_bytes", report.plan.arena_bytes},
                         {"rotary_bytes", report.plan.rotary_bytes}};
  auto kinds = plan::peak_by_kind(report.plan);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (kinds[kind] > 0) object["at_peak"][plan::name(static_cast<plan::BufferKind>(kind))] = kinds[kind];
  }
  for (const auto& segment : report.segments) object["segments"][segment.name] = segment.bytes;
  object["state_known"] = report.state_unknown.empty();
  for (const auto& use : report.memory_uses) {
    object["capacity"].push_back({{"memory", use.memory},
                                  {"ranks", use.ranks},
                                  {"used_bytes", std::llround(use.used)},
                                  {"capacity_bytes", std::llround(use.capacity)},
                                  {"fits", use.fits()}});
  }
  return object;
}

ordered_json traffic(const PlanReport& report) {
  ordered_json list = ordered_json::array();
  for (const plan::TrafficLine& line : report.traffic) {
    list.push_back({{"kind", plan::name(line.kind)},
                    {"operation", line.operation},
                    {"wire", line.wire},
                    {"bytes_inside_node", line.moved.inside},
                    {"bytes_between_nodes", line.moved.between}});
  }
  return list;
}

ordered_json times(const PlanReport& report) {
  ordered_json object = {{"durations", report.durations},
                         {"plan_ms", report.step_ms - report.update_exposed_ms},
                         {"update_ms", report.update_ms},
                         {"update_exposed_ms", report.update_exposed_ms},
                         {"step_ms", report.step_ms},
                         {"exposed_communication_ms", plan::sum_ms(report.exposed)},
                         {"tokens_per_second", report.tokens_per_second()}};
  if (report.peak_gflops > 0) object["model_flops_utilisation"] = report.flops_utilisation;
  for (int lane = 0; lane < plan::lane_count; ++lane) {
    object["busy_ms"][plan::name(static_cast<plan::Lane>(lane))] = report.lanes[lane].busy_ms;
  }
  return object;
}

}  // namespace

std::string plan_json(const PlanReport& report) {
  ordered_json object = {{"recipe", report.recipe}, {"rank", report.placement.rank}, {"ranks", report.placement.world}};
  if (report.timed()) object["time"] = times(report);
  object["memory"] = memory(report);
  object["traffic"] = traffic(report);
  object["operations"] = operations(report);
  return object.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ganymede::cli
