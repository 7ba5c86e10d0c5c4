#include "launcher/cli/plan_report.h"

#include <filesystem>

#include "common/base/error.h"
#include "common/cell/layouts.h"
#include "common/plan/cost/ctas.h"
#include "common/plan/cost/measured.h"
#include "common/plan/cost/update_time.h"
#include "common/plan/simulated/executor.h"
#include "launcher/cli/optimizer_facts.h"
#include "launcher/cli/plan_capacity.h"

namespace ganymede::cli {
namespace {

/// What the optimizers say of themselves; a plan can be looked at where there is no plugin. Errors of the settings are
/// the same as without it.
std::vector<placement::OptimizerFacts> facts_for(PlanReport& report) {
  try {
    return optimizer_facts(report.recipe, report.settings);
  } catch (const Error& error) {
    report.state_unknown = error.what();
    return {};
  }
}

void add_segments(PlanReport& report) {
  for (const shm::Layout& layout : shm::cell_layouts(report.config, report.placement)) {
    report.segments.push_back({layout.name, layout.size});
  }
}

void simulate(PlanReport& report, const Durations& durations) {
  plan::OperationCosts costs;
  costs.links = plan::links_of(report.moved);
  if (durations.hardware) {
    costs.durations_ms =
        plan::hardware_durations(report.plan, report.config, report.placement, report.choices, *durations.hardware);
    costs.taken = plan::taken_shares(report.plan, report.moved, report.config, *durations.hardware);
    report.update_ms = plan::update_ms(report.config, report.placement, *durations.hardware);
    costs.earliest_ms = plan::updated_from_ms(report.plan, report.config, report.placement, *durations.hardware);
  } else {
    costs.durations_ms =
        plan::MeasuredOperations(durations.measured).durations(report.plan, report.config, report.placement);
  }
  plan::ExecutorReport run = plan::SimulatedExecutor(costs).run(report.plan, {});
  report.spans = std::move(run.spans);
  report.lanes = run.lanes;
  report.exposed = plan::exposed_communication(report.plan, report.spans);
  report.step_ms = plan::length_ms(report.spans);
  costs.earliest_ms.clear();
  report.update_exposed_ms = report.step_ms - plan::length_ms(plan::timeline(report.plan, costs));
  report.durations = durations.source;
  if (durations.hardware) hold_against(*durations.hardware, report);
}

}  // namespace

Durations read_durations(const PlanRequest& request) {
  Durations durations;
  if (!request.hardware.empty()) {
    durations.hardware = plan::load_hardware(request.hardware);
    durations.source = durations.hardware->name;
  } else if (!request.measured.empty()) {
    plan::MeasuredOperations measured(request.measured);
    durations.measured = request.measured;
    durations.source = fmt::format("{}: {} measured steps of rank {} of {}",
                                   std::filesystem::path(request.measured).filename().string(), measured.steps(),
                                   measured.rank(), measured.ranks());
  }
  return durations;
}

PlanReport make_report(const PlanRequest& request, const Durations& durations) {
  PlanReport report;
  report.recipe = request.recipe;
  report.settings = request.settings;
  report.config = config::load(request.recipe, request.settings);
  int ranks = report.config.parallel.ranks;
  if (request.rank >= ranks) fail_usage("--rank {}: {} has ranks 0 to {}.", request.rank, request.recipe, ranks - 1);
  std::vector<placement::OptimizerFacts> facts = facts_for(report);
  placement::add_rest(report.config.optimizer, facts);
  report.placement = placement::build(report.config, request.rank, facts);
  report.plan = plan::build(report.config, report.placement, plan::PlanKind::train);
  report.choices = plan::choices_of(report.config);
  plan::OperationTraffic traffic(report.config, report.placement, report.choices);
  for (const plan::Operation& operation : report.plan.operations) report.moved.push_back(traffic.of(operation));
  report.traffic = plan::step_traffic(report.config, report.placement, report.choices);
  add_segments(report);
  if (durations.known()) simulate(report, durations);
  return report;
}

std::string subject(const PlanReport& report, const plan::Operation& operation) {
  if (operation.bucket >= 0) return report.placement.buckets[operation.bucket].name;
  if (operation.row < 0) return "";
  if (operation.layer < 0) return fmt::format("embed row {}", operation.row);
  if (operation.layer >= report.config.model.layers) return fmt::format("head row {}", operation.row);
  std::string part = operation.part == plan::Part::whole ? "" : fmt::format(" {}", plan::name(operation.part));
  return fmt::format("layer.{}{} row {}", operation.layer, part, operation.row);
}

}  // namespace ganymede::cli
