#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "common/base/error.h"
#include "launcher/cli/plan_parameters.h"
#include "launcher/cli/plan_report.h"
#include "launcher/cli/plan_svg.h"
#include "launcher/cli/plan_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tree.h"

namespace ganymede::cli {
namespace {

const std::string source = GANYMEDE_SOURCE_DIR;

PlanReport report_of(std::vector<std::string> settings, bool timed = true,
                     const std::string& recipe = source + "/configs/recipes/tiny.toml") {
  PlanRequest request;
  request.recipe = recipe;
  request.settings = std::move(settings);
  if (timed) request.hardware = source + "/configs/hardware/cpu2.toml";
  return make_report(request, read_durations(request));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

TEST(Plan, TheTableHasALineForEveryOperation) {
  for (bool timed : {true, false}) {
    PlanReport report = report_of({"parallel.ranks=2"}, timed);
    std::string table = operation_table(report);
    EXPECT_EQ(count(table, "\n"), report.plan.operations.size() + 1);
    EXPECT_EQ(table.find("starts at") != std::string::npos, timed);
    EXPECT_NE(table.find("+parameters layer.1.experts"), std::string::npos);
  }
}

TEST(Plan, TheSummaryGivesTimeMemoryAndTraffic) {
  std::string text = summary(report_of({"parallel.ranks=2"}));
  for (const char* part : {"predicted with cpu2", "exposed communication", "tokens/s", "most alive at once", "arena",
                           "working", "experts  gather, forward", "reduce"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("between nodes, GB"), std::string::npos) << "all ranks are on one node";
}

TEST(Plan, WithoutDurationsNoTimeIsInvented) {
  std::string text = summary(report_of({}, false));
  EXPECT_EQ(text.find("tokens/s"), std::string::npos);
  EXPECT_NE(text.find("most alive at once"), std::string::npos);
}

TEST(Plan, OfTheReferenceJobShowsThePublishedBytesBetweenNodes) {
  PlanRequest request;
  request.recipe = source + "/configs/recipes/reference.toml";
  request.hardware = source + "/configs/hardware/gh200.toml";
  std::string text = summary(make_report(request, read_durations(request)));
  auto row = [&](const std::string& what) {
    auto at = text.find(what);
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_TRUE(row("… and every layer").find("471.0     469.8     941.9") != std::string::npos) << text;
  EXPECT_TRUE(row("… and bf16 expert gradients").find("246.0     239.5     477.5") != std::string::npos) << text;
}

TEST(Plan, ParametersAreListedAsPatternsWithWhoUpdatesThem) {
  std::string text = parameter_table(report_of(
      {"optimizer.name=muon", "model.layers=3", "model.experts=4", "optimizer.group.q.match=[\"*.q_proj.weight\"]"}));
  auto row = [&](const std::string& pattern) {
    auto at = text.find(pattern + " ");
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_TRUE(row("model.layers.*.self_attn.q_proj.weight").ends_with("q      muon")) << text;
  EXPECT_TRUE(row("model.embed_tokens.weight").ends_with("rest   adamw")) << text;
  EXPECT_NE(row("model.layers.*.mlp.experts.*.up_proj.weight").find(" 8 "), std::string::npos) << text;
}

TEST(Plan, APlanDoesNotDifferFromItself) {
  PlanReport report = report_of({"parallel.ranks=2"});
  std::string text = difference(report, report, true);
  EXPECT_EQ(text.find("operations that differ"), std::string::npos);
  EXPECT_NE(text.find(fmt::format("{} operations are the same", report.plan.operations.size())), std::string::npos);
}

TEST(Plan, ADifferenceNamesOperationsThatComeGoAndChange) {
  PlanReport none = report_of({"parallel.ranks=2"}), half = report_of({"parallel.ranks=2", "offload.fraction=0.5"});
  std::string there = difference(none, half, true), back = difference(half, none, true);
  EXPECT_NE(there.find("\n+ offload layer.0 row 0\n"), std::string::npos) << there;
  EXPECT_NE(back.find("\n- offload layer.0 row 0\n"), std::string::npos) << back;
  EXPECT_NE(there.find("arena"), std::string::npos);
  PlanReport bf16 =
      report_of({"parallel.ranks=2", "compute.dtype=bf16", "wire.dense_gather=bf16", "wire.expert_gather=bf16"});
  EXPECT_NE(difference(none, bf16, true).find("~ gather embed: wire fp32 → bf16, bytes 24 KiB → 12 KiB"),
            std::string::npos);
}

TEST(Plan, ADifferenceNamesWhatIsReleased) {
  PlanReport early = report_of({"parallel.ranks=2"}), late = report_of({"parallel.ranks=2", "early_release=false"});
  std::string text = difference(early, late, true);
  EXPECT_NE(text.find("\n+ release gradients head\n"), std::string::npos) << text;
  EXPECT_EQ(text.find(" release\n"), std::string::npos) << text;
  EXPECT_EQ(text.find(" release again"), std::string::npos) << text;
}

TEST(Plan, ADifferenceBeginsWithTheNumbersAndFoldsOperationsByKind) {
  PlanReport fp32 = report_of({"parallel.ranks=2"});
  PlanReport fp8 = report_of({"parallel.ranks=2", "wire.expert_gather=fp8"});
  std::string text = difference(fp32, fp8, false);
  EXPECT_TRUE(text.starts_with("left:  " + fp32.recipe + " parallel.ranks=2\nright: ")) << text;
  auto numbers = text.find("experts gather, forward (fp32 → fp8), inside node"), kinds = text.find("by kind");
  ASSERT_NE(numbers, std::string::npos) << text;
  ASSERT_NE(kinds, std::string::npos) << text;
  EXPECT_LT(text.find("step "), numbers);
  EXPECT_LT(text.find("most alive at once"), numbers);
  EXPECT_LT(numbers, kinds);
  EXPECT_EQ(count(text, "\n  gather "), 1u) << text;
  EXPECT_EQ(count(text, "~ "), 0u);
  EXPECT_NE(text.find("wire fp32 → fp8", kinds), std::string::npos) << text;
}

TEST(Plan, ColumnsOfTheTableAreAligned) {
  std::istringstream lines(operation_table(report_of({"parallel.ranks=2"})));
  std::string header, line;
  std::getline(lines, header);
  auto bytes = header.find("bytes") + 5, waits = header.find("waits for");
  while (std::getline(lines, line)) {
    ASSERT_GT(line.size(), bytes);
    EXPECT_EQ(line[bytes], ' ') << line;
    EXPECT_TRUE(line.size() <= waits || line[waits - 1] == ' ') << line;
  }
}

TEST(Plan, JsonHasEveryOperationWithItsTime) {
  PlanReport report = report_of({"parallel.ranks=2"});
  auto object = nlohmann::json::parse(plan_json(report));
  ASSERT_EQ(object["operations"].size(), report.plan.operations.size());
  double end = 0;
  for (const auto& operation : object["operations"]) {
    end = std::max(end, operation["start_ms"].get<double>() + operation["ms"].get<double>());
  }
  EXPECT_NEAR(object["time"]["step_ms"].get<double>(), end, 1e-9);
  EXPECT_EQ(object["memory"]["peak_bytes"], report.plan.peak_bytes);
  EXPECT_FALSE(nlohmann::json::parse(plan_json(report_of({}, false))).contains("time"));
}

TEST(Plan, TheDrawingHasABarForEveryOperationThatTakesTime) {
  PlanReport report = report_of({"parallel.ranks=2", "run.name=a&b"});
  std::string svg = plan_svg(report);
  std::size_t bars = 0;
  for (const plan::Span& span : report.spans) bars += span.end_ms > span.start_ms ? 1 : 0;
  EXPECT_EQ(count(svg, "<g><title>"), bars);
  EXPECT_EQ(count(svg, "<g>"), count(svg, "</g>"));
  EXPECT_EQ(count(svg, "exposed communication: "), report.exposed.size());
  EXPECT_NE(svg.find("a&amp;b"), std::string::npos);
  EXPECT_TRUE(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
}

TEST(Plan, TheDrawingSaysWhatItsBarsLanesColoursAndAxisAre) {
  std::string svg = plan_svg(
      report_of({"parallel.ranks=4", "parallel.replicas=2", "offload.fraction=0.5", "topology.ranks_per_node=1"}));
  EXPECT_EQ(count(svg, "></text>"), 0u) << "a text without letters";
  for (const char* part : {">gather 72 KiB<", ">layer.1.experts<", ">lane gather: parameters from other ranks<",
                           ">busy ", ">0 ms<", ">time since the step began<", ">replica_reduce<"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  double width = std::stod(svg.substr(svg.find("width=\"") + 7));
  std::regex place("<text x=\"([0-9.]+)\" y=\"[0-9.]+\">([^<]+)<");
  for (std::sregex_iterator found(svg.begin(), svg.end(), place), end; found != end; ++found) {
    double right = std::stod((*found)[1]) + 6.6 * static_cast<double>((*found)[2].length());
    EXPECT_LT(right, width) << (*found)[2] << ": the legend runs out of the drawing";
  }
}

TEST(Plan, RanksThatAreNotThereAreRefused) {
  PlanRequest request;
  request.recipe = source + "/configs/recipes/tiny.toml";
  request.rank = 3;
  try {
    make_report(request, {});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(std::string(error.what()), "--rank 3: " + request.recipe + " has ranks 0 to 0.");
  }
}

TEST(Plan, AnOptimizerThatIsNotThereIsSaid) {
  PlanReport report = report_of({"optimizer.name=nothing"});
  EXPECT_FALSE(report.state_unknown.empty());
  EXPECT_NE(summary(report).find("without the optimizer's state, which is not known: "), std::string::npos);
}

}  // namespace
}  // namespace ganymede::cli
