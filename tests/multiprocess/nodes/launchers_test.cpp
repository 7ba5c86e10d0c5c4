#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "common/msg/curve.h"
#include "tests/support/fake_programs.h"
#include "tests/support/network/nodes_run.h"
#include "tests/support/other_builds.h"
#include "tests/support/process_wait.h"

/// Launchers of several nodes among themselves; fake services stand for the real ones.
namespace ganymede::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class Launchers : public testing::Test {
 protected:
  Launchers() {
    std::filesystem::create_directory(dataset_.path() + "/set");
    run_.first().data = dataset_.path() + "/set";
  }
  static std::vector<std::string> settings() {
    return {"parallel.ranks=4",
            "topology.ranks_per_node=2",
            "launch.restart_budget=2",
            "launch.stop_timeout_seconds=2",
            "launch.node_timeout_seconds=4",
            "launch.node_start_seconds=20"};
  }
  nlohmann::json status() {
    auto answer = run_.first().ganymede({"ctl", run_.folder(0), "status", "--json"});
    return answer.exit_code == 0 ? nlohmann::json::parse(answer.output) : nlohmann::json::object();
  }
  void wait_for_generation(int generation) {
    wait_until([&] { return status().value("generation", 0) == generation && all_run(); }, 40,
               fmt::format("generation {} with all services", generation));
  }
  bool all_run() {
    auto now = status();
    if (now.value("cells", nlohmann::json::array()).size() != 4) return false;
    for (const auto& cell : now["cells"])
      for (const auto& service : cell["services"])
        if (service["state"] != "running") return false;
    return true;
  }
  int pid(const char* service, std::size_t rank) { return status()["cells"][rank]["services"][service]["pid"]; }
  void stop_now() {
    EXPECT_EQ(run_.first().ganymede({"ctl", run_.folder(0), "stop", "--now"}).exit_code, 0);
    EXPECT_THAT(run_.wait(), Each(75)) << run_.output(0) << run_.output(1);
    wait_until([&] { return run_.first().leftovers().empty(); }, 10, "no process of any node is left");
  }

  TemporaryFolder dataset_;  // the fakes do not look at it
  FakePrograms programs_;
  NodesRun run_{2, settings(), nullptr, programs_.path()};
};

TEST_F(Launchers, CtlOnNode0SeesAndStopsAllNodes) {
  run_.start();
  wait_for_generation(1);
  auto now = status();
  EXPECT_EQ(now["cells"][1]["node"], 0);
  EXPECT_EQ(now["cells"][2]["node"], 1);
  EXPECT_EQ(now["launchers"].size(), 2u);
  auto there = run_.first().ganymede({"ctl", run_.folder(1), "status", "--json"});
  EXPECT_EQ(nlohmann::json::parse(there.output)["cells"].size(), 4u) << "a node passes the question on";
  stop_now();
}

TEST_F(Launchers, AWorkerThatDiesAnywhereBringsANewGenerationEverywhere) {
  run_.start();
  wait_for_generation(1);
  ::kill(pid("worker", 3), SIGKILL);
  wait_for_generation(2);
  ::kill(pid("worker", 0), SIGKILL);
  wait_for_generation(3);
  stop_now();
}

TEST_F(Launchers, AServiceOfAnotherNodeIsRestartedByRequest) {
  run_.start();
  wait_for_generation(1);
  int before = pid("data", 2);
  auto answer = run_.first().ganymede({"ctl", run_.folder(0), "restart", "data", "--rank", "2", "--wait", "0"});
  EXPECT_EQ(answer.exit_code, 0) << answer.output;
  wait_until([&] { return pid("data", 2) != before && all_run(); }, 20, "another data server of rank 2");
  EXPECT_EQ(status()["cells"][2]["services"]["data"]["restarts"], 1);
  stop_now();
}

TEST_F(Launchers, AServiceOfAnotherNodeGoesOverToAnotherBuildWhereThatCanWork) {
  run_.start();
  wait_for_generation(1);
  std::string program = programs_.path() + "/ganymede-data";
  auto restart = [&](const std::string& name, const std::string& seconds) {
    std::string build = play_build(program, dataset_.path() + "/" + name, "exec " + program + " \"$@\" # " + name);
    return run_.first().ganymede(
        {"ctl", run_.folder(0), "restart", "data", "--rank", "2", "--binary", build, "--wait", seconds});
  };
  EXPECT_EQ(restart("other", "0").exit_code, 0);
  auto binary = [&] { return status()["cells"][2]["services"]["data"].value("binary", ""); };
  wait_until([&] { return binary().starts_with("programs/ganymede-data.") && all_run(); }, 20, "another build");
  EXPECT_TRUE(std::filesystem::exists(run_.folder(1) + "/" + binary())) << "a copy in the node's own folder";
  std::string kept = binary();
  std::ofstream(run_.folder(1) + "/config.toml", std::ios::app) << "[data]\n";
  auto refused = restart("third", "20");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, HasSubstr("Node 1: "));
  EXPECT_EQ(binary(), kept);
  EXPECT_THAT(run_.output(0), HasSubstr("node 1 (127.0.0.2): Node 1: ")) << "the terminal of node 0";
  stop_now();
}

TEST_F(Launchers, GenerationsGoOnAboveTheHighestOfAnyNode) {
  run_.start();
  wait_for_generation(1);
  ::kill(pid("worker", 3), SIGKILL);
  wait_for_generation(2);
  ::kill(status()["launchers"][0]["pid"].get<int>(), SIGKILL);
  wait_for_generation(3);
  stop_now();
}

TEST_F(Launchers, AServiceThatDiesAgainAndAgainEndsTheRunOnAllNodesAndItsNodeIsNamed) {
  run_.start_node(0);
  run_.first().environment.emplace_back("FAKE_DATA", "die");
  run_.start_node(1);
  EXPECT_THAT(run_.wait(), Each(1)) << run_.output(0) << run_.output(1);
  EXPECT_THAT(run_.output(0), HasSubstr("node 1 (127.0.0.2): "));
  EXPECT_THAT(run_.output(0), HasSubstr("the fake dies"));
}

TEST_F(Launchers, AKilledNodeEndsTheRunAndIsNamed) {
  run_.start();
  wait_for_generation(1);
  run_.signal(1, SIGKILL);
  EXPECT_EQ(run_.wait_node(0), 75);
  EXPECT_THAT(run_.output(0), HasSubstr("The launcher of node 1 (127.0.0.2) has not answered for"));
}

TEST_F(Launchers, ANodeWhoseCoordinatorIsGoneForGoodEnds) {
  run_.start();
  wait_for_generation(1);
  run_.signal(0, SIGKILL);
  EXPECT_EQ(run_.wait_node(1), 75);
  EXPECT_THAT(run_.output(1), HasSubstr("has not answered for"));
}

TEST_F(Launchers, TwiceInterruptedOnAnyNodeEverythingEndsAtOnce) {
  run_.start();
  wait_for_generation(1);
  run_.signal(1, SIGINT);
  wait_until([&] { return status()["state"] == "stopping"; }, 20, "the stop arrives at node 0");
  run_.signal(1, SIGINT);
  EXPECT_THAT(run_.wait(), Each(75));
}

TEST_F(Launchers, ANodeThatCannotTakePartIsToldWhyInOneLine) {
  run_.start_node(0);
  auto refused = [&](const std::vector<std::string>& arguments, const std::string& why) {
    run_.start_node(1, arguments);
    EXPECT_EQ(run_.wait_node(1), 2);
    std::string output = run_.output(1);
    EXPECT_THAT(output, HasSubstr(why));
    std::filesystem::remove(run_.output_file(1));
  };
  run_.nodes_option = run_.addresses() + ",127.0.0.3";
  refused({"--set", "parallel.ranks=6"}, "--nodes has to be the same on all");
  run_.nodes_option.clear();
  refused({"--set", "optimizer.lr=1e-2"}, "[optimizer] lr = 0.003 on node 0, lr = 0.01 on node 1");
  std::string other_key = dataset_.path() + "/key";
  std::ofstream(other_key) << msg::make_key_pair().public_key << "\n";
  refused({"--key", other_key}, "does not take our key");
  std::ofstream(other_key) << "no key\n";
  refused({"--key", other_key}, "holds no key");
  run_.start_node(1);
  wait_for_generation(1);
  NodesRun& run = run_;
  auto twice = run.first().ganymede({"train", run.first().recipe, "--run", run.folder(0)});
  EXPECT_EQ(twice.exit_code, 2);
  stop_now();
}

TEST_F(Launchers, ASecondLauncherOfANodeIsRefusedInOneLine) {
  run_.start();
  wait_for_generation(1);
  // As on a machine with a file system of its own: the same node, another run directory, and the key copied by hand.
  TemporaryFolder elsewhere;
  TrainingRun second(settings(), programs_.path());
  second.data = run_.first().data;
  EXPECT_EQ(
      second.train({"--nodes", run_.addresses(), "--node", "1", "--key", run_.folder(0) + "/ipc/coordinator.key"}), 2);
  EXPECT_THAT(second.output(), HasSubstr("Node 1 is in the run already"));
  EXPECT_THAT(run_.output(0), HasSubstr("a node was refused: Node 1 is in the run already"));
  stop_now();
}

TEST_F(Launchers, CheckpointsThatAreNotSharedAreRefused) {
  run_.start_node(0);
  TrainingRun elsewhere(settings(), programs_.path());
  elsewhere.data = run_.first().data;
  wait_until([&] { return std::filesystem::exists(run_.folder(0) + "/ipc/coordinator.key"); }, 20, "the key");
  EXPECT_EQ(
      elsewhere.train({"--nodes", run_.addresses(), "--node", "1", "--key", run_.folder(0) + "/ipc/coordinator.key"}),
      2);
  EXPECT_THAT(elsewhere.output(), HasSubstr("a file system that all nodes share"));
}

TEST_F(Launchers, AnAbsentCoordinatorIsNamedAfterItsTime) {
  std::string key = dataset_.path() + "/key";
  std::ofstream(key) << msg::make_key_pair().public_key << "\n";
  run_.start_node(1, {"--key", key, "--set", "launch.node_start_seconds=1"});
  EXPECT_EQ(run_.wait_node(1), 1);
  EXPECT_THAT(run_.output(1), HasSubstr("cannot be reached within"));
}

TEST_F(Launchers, ANodeThatDoesNotComeIsNamed) {
  run_.start_node(0, {"--set", "launch.node_start_seconds=4"});
  EXPECT_EQ(run_.wait_node(0), 75);
  EXPECT_THAT(run_.output(0), HasSubstr("waiting for node 1 (127.0.0.2)\n"));
  EXPECT_THAT(run_.output(0), HasSubstr("The launcher of node 1 (127.0.0.2) did not come within"));
}

TEST_F(Launchers, AStopTakesEffectWhileNodesAreWaitedFor) {
  run_.start_node(0);
  wait_until([&] { return status().value("cells", nlohmann::json::array()).size() == 2; }, 20, "node 0 waits");
  EXPECT_EQ(status()["missing_nodes"], std::vector<int>{1});
  EXPECT_EQ(run_.first().ganymede({"ctl", run_.folder(0), "stop"}).exit_code, 0);
  EXPECT_EQ(run_.wait_node(0, 15), 75);
}

TEST_F(Launchers, ANodeThatWaitsForNode0SaysSoAndCanBeStopped) {
  run_.start_node(1);
  auto ctl = [&](const char* command) { return run_.first().ganymede({"ctl", run_.folder(1), command}); };
  wait_until([&] { return ctl("where").output.find("waiting for node 0") != std::string::npos; }, 20, "it waits");
  EXPECT_EQ(ctl("stop").exit_code, 0);
  EXPECT_EQ(run_.wait_node(1, 15), 75);
}

TEST_F(Launchers, ANodeWithAnotherDatasetIsRefused) {
  run_.start_node(0);
  run_.first().environment.emplace_back("FAKE_DATASET", "another");
  run_.start_node(1);
  EXPECT_EQ(run_.wait_node(1), 2);
  EXPECT_THAT(run_.output(1), HasSubstr("of node 1 has another content (hash another) than that of node 0"));
}

TEST_F(Launchers, KeysAreForTheOwnerAlone) {
  run_.start_node(0);
  for (const char* file : {"/ipc/coordinator.key", "/ipc/coordinator.secret"}) {
    std::string path = run_.folder(0) + file;
    wait_until([&] { return std::filesystem::exists(path); }, 20, path);
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << path;
  }
}

}  // namespace
}  // namespace ganymede::test
