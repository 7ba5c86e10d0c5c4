#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "common/model_spec/model_spec.h"
#include "common/os/files.h"
#include "launcher/cli/plan_report.h"
#include "launcher/cli/plan_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tree.h"

/// What a plan says about a machine's capacities: memory that is enough or not, arithmetic that is used or not, an
/// update that has time or not.
namespace ganymede::cli {
namespace {

const std::string source = GANYMEDE_SOURCE_DIR;

class Capacity : public testing::Test {
 protected:
  /// The plan of tiny.toml for a machine like gh200 with these lines in its section of memory.
  PlanReport report(const std::string& memory, std::vector<std::string> settings = {}) {
    std::string text = os::read_file(source + "/configs/hardware/gh200.toml");
    for (const char* key : {"device_gib", "host_gib_per_node"}) {
      auto at = text.find(std::string("\n") + key) + 1;
      text.erase(at, text.find('\n', at) + 1 - at);
    }
    text.insert(text.find("[memory]\n") + 9, memory);
    std::string file = folder_.path() + "/machine.toml";
    std::ofstream(file) << text;
    PlanRequest request;
    request.recipe = source + "/configs/recipes/tiny.toml";
    request.settings = {"parallel.ranks=4", "topology.ranks_per_node=2"};
    request.settings.insert(request.settings.end(), settings.begin(), settings.end());
    request.hardware = file;
    return make_report(request, read_durations(request));
  }

  test::TemporaryFolder folder_;
};

TEST_F(Capacity, WithoutSizesOfTheMachineNothingIsSaidAboutWhatFits) {
  PlanReport silent = report("");
  EXPECT_TRUE(silent.memory_uses.empty());
  EXPECT_EQ(summary(silent).find("what is needed of the memory"), std::string::npos);
  EXPECT_FALSE(nlohmann::json::parse(plan_json(silent))["memory"].contains("capacity"));
}

TEST_F(Capacity, OfADeviceIsWhatTheWorkerComputesWith) {
  PlanReport fits = report("device_gib = 1\n");
  ASSERT_EQ(fits.memory_uses.size(), 1u);
  EXPECT_EQ(fits.memory_uses[0].used, static_cast<double>(fits.plan.pool_bytes + fits.plan.rotary_bytes));
  EXPECT_EQ(fits.memory_uses[0].ranks, 1);
  EXPECT_NE(summary(fits).find("fits, "), std::string::npos) << summary(fits);
  PlanReport over = report("device_gib = 0.0001\n");
  EXPECT_NE(summary(over).find("too much by "), std::string::npos) << summary(over);
}

TEST_F(Capacity, HostMemoryIsNeededByAllRanksOfANode) {
  PlanReport both = report("host_gib_per_node = 8\n"),
             one = report("host_gib_per_node = 8\n", {"topology.ranks_per_node=1"});
  ASSERT_EQ(both.memory_uses.size(), 1u);
  EXPECT_EQ(both.memory_uses[0].ranks, 2);
  EXPECT_EQ(one.memory_uses[0].ranks, 1);
  double channels = 0;  // between ranks of a node, which one alone does not have
  for (const auto& segment : both.segments)
    if (segment.name == "exchange") channels = static_cast<double>(segment.bytes);
  EXPECT_NEAR(both.memory_uses[0].used, 2 * (one.memory_uses[0].used + channels), 0.01 * both.memory_uses[0].used);
  EXPECT_NE(summary(both).find("2 ranks of "), std::string::npos) << summary(both);
  double segments = 0;
  for (const auto& segment : both.segments)
    segments += segment.name == "pool.0" ? 0 : static_cast<double>(segment.bytes);
  EXPECT_GT(both.memory_uses[0].used, 2 * segments) << "and by the services themselves";
}

TEST_F(Capacity, OfOneMemoryThePoolIsPartOfWhatTheHostHolds) {
  PlanReport apart = report("host_gib_per_node = 8\n", {"collectives.backend=gloo"});
  PlanRequest request;
  request.recipe = apart.recipe;
  request.settings = apart.settings;
  request.hardware = source + "/configs/hardware/cpu2.toml";
  for (const char* backend : {"gloo", "auto"}) {  // the pool lies in the worker, or in a segment
    request.settings.back() = std::string("collectives.backend=") + backend;
    PlanReport one = make_report(request, read_durations(request));
    ASSERT_EQ(one.memory_uses.size(), 1u);
    double more = one.memory_uses[0].used - apart.memory_uses[0].used;
    EXPECT_GE(more, 2.0 * static_cast<double>(one.plan.pool_bytes)) << backend;
    EXPECT_LT(more, 2.0 * static_cast<double>(one.plan.pool_bytes) + (64 << 20)) << backend << ": counted once";
  }
}

TEST_F(Capacity, ASegmentThatLiesInTheDeviceIsSaidNotToBeTheHosts) {
  EXPECT_NE(summary(report("")).find("in the device's memory, not counted in the host's"), std::string::npos);
  PlanRequest request;
  request.recipe = source + "/configs/recipes/tiny.toml";
  request.settings = {"parallel.ranks=4", "topology.ranks_per_node=2"};
  request.hardware = source + "/configs/hardware/cpu2.toml";
  std::string one = summary(make_report(request, read_durations(request)));
  EXPECT_NE(one.find("\n  exchange "), std::string::npos) << one;
  EXPECT_EQ(one.find("not counted"), std::string::npos) << one;
}

TEST_F(Capacity, AStateThatIsNotKnownIsSaidWhereItWouldLie) {
  std::string text = summary(report("device_gib = 1\nhost_gib_per_node = 8\n", {"optimizer.name=nothing"}));
  auto line = [&](const char* memory) {
    auto at = text.find(memory);
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_TRUE(line("  host of a node").ends_with("left, without the optimizer's state")) << text;
  EXPECT_TRUE(line("  device  ").ends_with("left")) << text;
}

TEST_F(Capacity, IsInJson) {
  auto object = nlohmann::json::parse(plan_json(report("device_gib = 0.0001\nhost_gib_per_node = 8\n")));
  auto uses = object["memory"]["capacity"];
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0]["memory"], "device");
  EXPECT_FALSE(uses[0]["fits"].get<bool>());
  EXPECT_EQ(uses[1]["capacity_bytes"], std::int64_t{8} << 30);
  EXPECT_TRUE(uses[1]["fits"].get<bool>());
  EXPECT_EQ(uses[1]["ranks"], 2);
}

TEST_F(Capacity, FlopsUtilisationIsOfAllDevicesInTheTypeThatIsComputedWith) {
  PlanReport plain = report("");
  double flops = model_spec::flops_per_token(plain.config.model, plain.config.data.seq_len) * plain.tokens_per_step();
  EXPECT_NEAR(plain.flops_utilisation, flops / (plain.step_ms / 1e3) / (4 * 67e12), 1e-9 * plain.flops_utilisation);
  PlanReport bf16 = report("", {"compute.dtype=bf16", "wire.dense_gather=bf16", "wire.expert_gather=bf16"});
  EXPECT_EQ(bf16.peak_gflops, 989e3);
  EXPECT_NE(summary(plain).find("model flops utilisation "), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(plan_json(plain))["time"].contains("model_flops_utilisation"));
}

TEST_F(Capacity, AnUpdateBesideTheForwardIsNotAddedToTheStep) {
  PlanReport streamed = report(""), first = report("", {"stream_update=false"});
  EXPECT_GT(streamed.update_ms, 0);
  EXPECT_LT(streamed.update_exposed_ms, streamed.update_ms);
  EXPECT_NEAR(first.update_exposed_ms, first.update_ms, 1e-9);
  EXPECT_LT(streamed.step_ms, first.step_ms);
  EXPECT_NE(summary(streamed).find(" beside the forward\n"), std::string::npos) << summary(streamed);
  EXPECT_NE(summary(first).find(" the optimizer's update before the forward\n"), std::string::npos) << summary(first);
  auto time = nlohmann::json::parse(plan_json(streamed))["time"];
  EXPECT_NEAR(time["plan_ms"].get<double>() + time["update_exposed_ms"].get<double>(), time["step_ms"].get<double>(),
              1e-9);
}

}  // namespace
}  // namespace ganymede::cli
