#include "common/plan/cost/cost_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/os/files.h"
#include "common/plan/cost/flops.h"
#include "common/plan/cost/measured.h"
#include "common/plan/simulated/executor.h"
#include "common/plan/timeline.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tree.h"
#include "tests/unit/plan/plans.h"

namespace ganymede::plan {
namespace {

config::Config small_with_offload() {
  config::Config config = small();
  config.offload.fraction = 0.5;
  return config;
}

std::string write(const test::TemporaryFolder& folder, const std::string& text) {
  std::string file = folder.path() + "/file";
  std::ofstream(file) << text;
  return file;
}

/// The text of the usage error that `run` ends with.
template <class Run>
std::string usage_error(Run run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(HardwareFile, ThoseOfTheTreeAreRead) {
  Hardware gh200 = load_hardware(GANYMEDE_SOURCE_DIR "/configs/hardware/gh200.toml");
  EXPECT_EQ(gh200.name, "gh200");
  EXPECT_EQ(gh200.network.gb_per_second, 25);
  EXPECT_EQ(gh200.host_link.gb_per_second, 450);
  EXPECT_EQ(gh200.memory.device_gib, 95);
  EXPECT_EQ(gh200.memory.host_gib_per_node, 478.8);
  EXPECT_TRUE(load_hardware(GANYMEDE_SOURCE_DIR "/configs/hardware/cpu2.toml").compute.shared);
}

TEST(HardwareFile, FaultsNamePlaceKeyAndWayOut) {
  test::TemporaryFolder folder;
  auto error = [&](const std::string& text) {
    std::string file = write(folder, text);
    std::string found = usage_error([&] { load_hardware(file); });
    EXPECT_TRUE(found.starts_with(file)) << found;
    return found.substr(std::min(found.size(), file.size()));
  };
  EXPECT_EQ(error("[compute]\nbf16_gflop = 1\n"),
            ":2: key 'compute.bf16_gflop' is not known; did you mean 'compute.bf16_gflops'?");
  EXPECT_EQ(error("\n[netwrk]\nlatency_us = 1\n"),
            ":3: key 'netwrk.latency_us' is not known; did you mean 'network.latency_us'?");
  EXPECT_EQ(error("colour = 1\n"),
            ":1: key 'colour' is not known in a hardware file; configs/hardware/gh200.toml shows all of them.");
  EXPECT_EQ(error("[node]\nlatency_us = -1\n"), ":2: key 'node.latency_us' is -1, but has to be 0 to 1000000000.");
  EXPECT_EQ(error("[node]\nlatency_us = \"fast\"\n"),
            ":2: key 'node.latency_us' has to be a number, not the text \"fast\".");
  EXPECT_EQ(error("[network]\ngb_per_second = 0\n"),
            ":2: key 'network.gb_per_second' is 0, but has to be 0.001 to 1000000000.");
  EXPECT_EQ(error("[node]\ngb_per_second = nan\n"),
            ":2: key 'node.gb_per_second' is nan, but has to be 0.001 to 1000000000.");
  EXPECT_EQ(error("[compute]\nbf16_gflops = 1e-300\n"),
            ":2: key 'compute.bf16_gflops' is 1e-300, but has to be 0.001 to 1000000000.");
  EXPECT_EQ(error("[compute]\nfp32_gflops = 1e10\n"),
            ":2: key 'compute.fp32_gflops' is 10000000000, but has to be 0.001 to 1000000000.");
  EXPECT_EQ(error("[host_link]\ngb_per_second = 1e-9\n"),
            ":2: key 'host_link.gb_per_second' is 1e-09, but has to be 0.001 to 1000000000, or 0 where host and device "
            "memory are one.");
  EXPECT_EQ(error("name = \"\"\n"),
            ":1: key 'name' is \"\"; it has to be a text that is not empty and has no control characters.");
  EXPECT_EQ(error("name = \"a\\tb\"\n"),
            ":1: key 'name' is \"a\\u0009b\"; it has to be a text that is not empty and has no control characters.");
  EXPECT_EQ(error("[compute]\nproduct_efficiency = 1e-320\n").find(":2: key 'compute.product_efficiency' is "), 0u);
  EXPECT_EQ(error("[memory]\ndevice_gib = 0\n"),
            ":2: key 'memory.device_gib' is 0, but has to be above 0 and up to 1000000000.");
  EXPECT_EQ(error("[memory]\nhost_gib = 1\n"),
            ":2: key 'memory.host_gib' is not known; did you mean 'memory.device_gib'?");
  EXPECT_NE(error("[node\n").find(":1: this is not TOML"), std::string::npos);
}

TEST(HardwareFile, RatesThatAreMissingAreNamed) {
  test::TemporaryFolder folder;
  std::string whole = os::read_file(GANYMEDE_SOURCE_DIR "/configs/hardware/cpu2.toml");
  std::string file = write(folder, whole.substr(0, whole.find("[network]")));
  EXPECT_EQ(usage_error([&] { load_hardware(file); }),
            file +
                " lacks the key network.gb_per_second: configs/hardware/ has complete files, docs/plan.md explains "
                "the keys.");
  file = write(folder, "name = \"x\"\n");
  EXPECT_NE(usage_error([&] { load_hardware(file); }).find("the keys compute.fp32_gflops, compute.bf16_gflops, "),
            std::string::npos);
}

TEST(HardwareFile, AFileThatIsNotThereAndAFolderAreNamed) {
  EXPECT_EQ(usage_error([] { load_hardware("/nowhere/x.toml"); }), "Hardware file /nowhere/x.toml does not exist.");
  EXPECT_EQ(usage_error([] { load_hardware("/"); }), "Hardware file / is not a file.");
}

TEST(FlopCount, ForwardAndBackwardAreThoseOfTheModelSpec) {
  for (int experts : {0, 8}) {
    config::Config config = small_with_offload();
    config.model.experts = experts;
    FlopCount flops(config);
    double sum = 0;
    for (int layer = -1; layer <= config.model.layers; ++layer) sum += 3 * flops.forward(layer).all();
    double expected = model_spec::flops_per_token(config.model, config.data.seq_len) * config.data.seq_len;
    EXPECT_NEAR(sum / expected, 1, 1e-9);
  }
}

TEST(CostTable, TimesAreProportionalToWhatTheyAreLimitedBy) {
  config::Config config = small_with_offload();
  config.topology.ranks_per_node = 1;
  placement::Placement placement = placement::build(config, 0);
  StepPlan plan = build(config, placement, PlanKind::train);
  Hardware slow;
  slow.compute = {.fp32_gflops = 1e-3, .bf16_gflops = 1e-3};
  slow.network = {.gb_per_second = 1e-3, .latency_us = 0};
  Hardware fast = slow;
  fast.compute.fp32_gflops *= 2;
  fast.network.gb_per_second *= 2;
  auto before = hardware_durations(plan, config, placement, choices_of(config), slow);
  auto after = hardware_durations(plan, config, placement, choices_of(config), fast);
  ASSERT_EQ(before.size(), plan.operations.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Operation& o = plan.operations[i];
    bool products = o.layer >= 0 && (o.kind == OperationKind::forward || o.kind == OperationKind::recompute ||
                                     o.kind == OperationKind::backward);
    if (products) {
      EXPECT_NEAR(after[i] * 2, before[i], 1e-9 * before[i]);
    }
    if (o.kind == OperationKind::gather) {
      EXPECT_NEAR(before[i], static_cast<double>(o.bytes) / 1e3, 1e-9 * before[i]);  // 1 MB/s: 1e3 bytes a millisecond
      EXPECT_NEAR(after[i] * 2, before[i], 1e-9 * before[i]);
    }
    EXPECT_GE(before[i], 0);
    EXPECT_TRUE(std::isfinite(before[i]));
  }
}

TEST(CostTable, RanksOfANodeShareWhatIsShared) {
  config::Config config = small_with_offload();
  placement::Placement placement = placement::build(config, 0);
  StepPlan plan = build(config, placement, PlanKind::train);
  Hardware own;
  own.compute.fp32_gflops = 1e-3;
  Hardware shared = own;
  shared.compute.shared = true;
  double alone = length_ms(timeline(plan, {hardware_durations(plan, config, placement, choices_of(config), own)}));
  double both = length_ms(timeline(plan, {hardware_durations(plan, config, placement, choices_of(config), shared)}));
  EXPECT_NEAR(both / alone, 2, 1e-3);
}

TEST(CostTable, APlaceWithMoreExpertsComputesMore) {
  config::Config config = small_with_offload();
  config.parallel.expert_group = 2;
  config.model.experts = 5;
  Hardware hardware;
  hardware.compute.fp32_gflops = 1e-3;  // slow, so that nothing but products counts
  auto experts_ms = [&](int rank) {
    placement::Placement placement = placement::build(config, rank);
    StepPlan plan = build(config, placement, PlanKind::train);
    auto ms = hardware_durations(plan, config, placement, choices_of(config), hardware);
    double sum = 0;
    for (std::size_t i = 0; i < ms.size(); ++i) sum += plan.operations[i].part == Part::experts ? ms[i] : 0;
    return sum;
  };
  EXPECT_NEAR(experts_ms(0) / experts_ms(1), 3.0 / 2, 1e-6);
}

struct Measured : testing::Test {
  config::Config config = small_with_offload();
  placement::Placement placement = placement::build(config, 0);
  StepPlan plan = build(config, placement, PlanKind::train);
  test::TemporaryFolder folder;

  std::vector<Span> spans(double ms, double words_ms, double collectives_ms) {
    std::vector<Span> all;
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      double own = ms + static_cast<double>(i);
      all.push_back({0, own + words_ms + collectives_ms, {words_ms, collectives_ms}});
    }
    return all;
  }
};

TEST_F(Measured, MediansWithoutWaitsComeBackFromTheFile) {
  OperationMeter meter(plan);
  meter.add(spans(10, 500, 0));
  meter.add(spans(20, 5000, 0));
  meter.add(spans(900, 0, 0));  // a step in which the machine was busy
  MeasuredOperations file(write(folder, meter.json(placement)));
  EXPECT_EQ(file.steps(), 3);
  EXPECT_EQ(file.ranks(), 2);
  std::vector<double> ms = file.durations(plan, config, placement);
  for (std::size_t i = 0; i < ms.size(); ++i) EXPECT_NEAR(ms[i], 20 + static_cast<double>(i), 1e-9);
  meter.add(spans(30, 0, 0));
  EXPECT_NEAR(meter.durations()[0], 25, 1e-9) << "of an even number: between the two in the middle";
}

TEST_F(Measured, TheFileSaysHowDurationsAreSpread) {
  OperationMeter meter(plan);
  for (double ms : {2.0, 4.0, 12.0}) meter.add(spans(ms, 0, 0));
  auto first = nlohmann::json::parse(meter.json(placement))["operations"][0];
  EXPECT_EQ(first["count"], 3);
  EXPECT_EQ(first["median_ms"], 4);
  EXPECT_EQ(first["mean_ms"], 6);
  EXPECT_EQ(first["least_ms"], 2);
}

TEST_F(Measured, OfALongRunTheLastStepsCount) {
  OperationMeter meter(plan);
  for (std::size_t i = 0; i < OperationMeter::remembered; ++i) meter.add(spans(1, 0, 0));
  for (std::size_t i = 0; i < OperationMeter::remembered; ++i) meter.add(spans(2, 0, 0));
  EXPECT_EQ(meter.durations()[0], 2);
}

TEST_F(Measured, OfCollectivesTheLeastCounts) {
  OperationMeter meter(plan);
  meter.add(spans(0, 0, 7));
  meter.add(spans(0, 0, 900));  // a peer came late
  EXPECT_NEAR(meter.durations()[3], 3 + 7, 1e-9);
}

TEST_F(Measured, APlanWithOtherOperationsTakesThoseOfTheSameKind) {
  OperationMeter meter(plan);
  meter.add(spans(1, 0, 0));
  MeasuredOperations file(write(folder, meter.json(placement)));
  config::Config deeper = config;
  deeper.model.layers = 5;
  placement::Placement placed = placement::build(deeper, 0);
  StepPlan larger = build(deeper, placed, PlanKind::train);
  std::vector<double> ms = file.durations(larger, deeper, placed);
  for (std::size_t i = 0; i < ms.size(); ++i) EXPECT_GT(ms[i], 0) << describe(larger.operations[i]);
}

TEST_F(Measured, AKindThatWasNotMeasuredIsNamed) {
  std::string file = write(folder, R"({"format": 2, "rank": 0, "ranks": 1, "steps": 1, "operations": []})");
  std::string error = usage_error([&] { MeasuredOperations(file).durations(plan, config, placement); });
  EXPECT_EQ(error, file +
                       " has no duration of `wait_batch`: measure a run of this recipe with "
                       "check.measure_operations = true.");
}

TEST_F(Measured, DamagedFilesAreRefusedWithAWayOut) {
  for (const char* text : {"", "{", "[]", "{\"format\": \"1\"}", "{\"format\": 1}",
                           R"({"format": 2, "rank": 0, "ranks": 1, "steps": 1, "operations": [{"kind": 3}]})",
                           R"({"format": 2, "rank": 0, "ranks": 1, "steps": 1, "operations":
                               [{"kind": "vote", "bucket": "", "layer": -1, "row": -1, "ms": -2}]})",
                           R"({"format": 2, "rank": 0, "ranks": 1, "steps": 1, "operations":
                               [{"kind": "vote", "bucket": "", "layer": -1, "row": -1, "ms": 1e308}]})",
                           R"({"format": 2, "rank": 0, "ranks": 1, "steps": 1, "operations":
                               [{"kind": "vote", "bucket": "", "layer": -1, "row": -7, "ms": 1}]})",
                           R"({"format": 2, "rank": -1, "ranks": 1, "steps": 1, "operations": []})",
                           R"({"format": 2, "rank": 0, "ranks": 1, "steps": -5, "operations": []})"}) {
    std::string file = write(folder, text);
    EXPECT_NE(usage_error([&] { MeasuredOperations{file}; }).find(file), std::string::npos) << text;
  }
  EXPECT_EQ(usage_error([] { MeasuredOperations{"/nowhere/x"}; }), "Measurements /nowhere/x do not exist.");
}

}  // namespace
}  // namespace ganymede::plan
