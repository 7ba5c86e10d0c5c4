#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "launcher/cli/plan_report.h"
#include "launcher/cli/plan_svg.h"
#include "launcher/cli/plan_text.h"
#include "tests/support/tree.h"

/// What a person sees of the choices of a plan.
namespace ganymede::cli {
namespace {

PlanReport report_of(std::vector<std::string> choices) {
  PlanRequest request;
  request.recipe = GANYMEDE_SOURCE_DIR "/configs/recipes/tiny.toml";
  request.hardware = GANYMEDE_SOURCE_DIR "/configs/hardware/cpu2.toml";
  request.settings = {"parallel.ranks=4", "topology.ranks_per_node=2", "data.rows_per_step=8"};
  request.settings.insert(request.settings.end(), choices.begin(), choices.end());
  return make_report(request, read_durations(request));
}

TEST(PlanChoices, OperationsAndBuffersHaveTheirNames) {
  PlanReport report = report_of({"dense.reshard=node", "micro_batch.rows=1", "micro_batch.reduce=each"});
  std::string table = operation_table(report);
  for (const char* part : {"reshard", "regather", "accumulate", "+share of layer.1.dense", "+sum layer.1.dense"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part;
  }
  std::string svg = plan_svg(report);
  for (const char* part : {"regather", "accumulate"}) EXPECT_NE(svg.find(part), std::string::npos) << part;
}

TEST(PlanChoices, TablesOfRotationsAreShownBesideThePool) {
  PlanReport report = report_of({"rope_cache=per_layer"});
  EXPECT_NE(summary(report).find("tables of rotations: "), std::string::npos);
  auto bytes = [](const PlanReport& of) {
    return nlohmann::json::parse(plan_json(of))["memory"]["rotary_bytes"].get<std::int64_t>();
  };
  EXPECT_EQ(bytes(report), report.plan.rotary_bytes);
  EXPECT_GT(bytes(report), bytes(report_of({})));
}

}  // namespace
}  // namespace ganymede::cli
