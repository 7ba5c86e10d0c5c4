#include "launcher/cli/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/msg/message.h"
#include "common/service/run_directory.h"
#include "launcher/cli/run_access.h"
#include "launcher/keeper/failure.h"
#include "tests/support/temporary_folder.h"

namespace ganymede::cli {
namespace {

/// A status with one worker operation a rank.
msg::Message status_of(const std::vector<std::string>& operations, std::uint64_t step = 7, double loss = 2.5,
                       const std::vector<int>& missing = {}, const char* state_of_last = "running",
                       bool restarted = false) {
  return msg::Message::build(1, 1, [&](flatbuffers::FlatBufferBuilder& builder) {
    std::vector<flatbuffers::Offset<fbs::CellStatus>> cells;
    for (std::size_t rank = 0; rank < operations.size(); ++rank) {
      std::vector<flatbuffers::Offset<fbs::ServiceStatus>> services = {fbs::CreateServiceStatusDirect(
          builder, fbs::ServiceKind::worker, 100 + static_cast<int>(rank),
          rank + 1 == operations.size() ? state_of_last : "running", 2, "", operations[rank].c_str(), 0.5)};
      cells.push_back(fbs::CreateCellStatusDirect(builder, static_cast<int>(rank), 0, &services));
    }
    std::vector<flatbuffers::Offset<fbs::LauncherStatus>> launchers = {fbs::CreateLauncherStatus(builder, 0, 11, 10)};
    for (int node : missing) launchers.push_back(fbs::CreateLauncherStatus(builder, node, 0, 0));
    std::vector<flatbuffers::Offset<fbs::RestartEvent>> events;
    if (restarted)
      events = {fbs::CreateRestartEventDirect(builder, 9, 1, "worker of rank 1", true, "killed by SIGKILL", 0, 0.75,
                                              0.25, -1, 6, 3)};
    return msg::Message::body(fbs::CreateStatusDirect(builder, "/r", step, 50, 3, "training", &cells, &launchers, loss,
                                                      1000, -1, "", nullptr, nullptr, &events));
  });
}

TEST(StatusView, JsonHasTheKeysThatScriptsRely) {
  auto message = status_of({"forward"});
  auto object = nlohmann::json::parse(status_json(*message.as<fbs::Status>()));
  EXPECT_EQ(object["run"], "/r");
  EXPECT_EQ(object["step"], 7);
  EXPECT_EQ(object["generation"], 3);
  EXPECT_EQ(object["state"], "training");
  EXPECT_EQ(object["cells"][0]["rank"], 0);
  EXPECT_EQ(object["cells"][0]["node"], 0);
  EXPECT_EQ(object["cells"][0]["services"]["worker"]["pid"], 100);
  EXPECT_EQ(object["cells"][0]["services"]["worker"]["state"], "running");
  EXPECT_EQ(object["cells"][0]["services"]["worker"]["restarts"], 2);
  EXPECT_EQ(object["launchers"], nlohmann::json::parse(R"([{"node":0,"pid":11,"keeper_pid":10}])"));
}

TEST(StatusView, ShowsWhatRestartsTook) {
  auto message = status_of({"forward"}, 7, 2.5, {}, "running", true);
  const auto& status = *message.as<fbs::Status>();
  nlohmann::json event = {{"process", "worker of rank 1"}, {"node", 1}, {"cause", "killed by SIGKILL"}, {"step", 6}};
  event.update({{"generation", 3}, {"detect_ms", 0}, {"restart_ms", 750}, {"reform_ms", 250}, {"redo_ms", nullptr}});
  EXPECT_EQ(nlohmann::json::parse(status_json(status))["restart_events"], nlohmann::json::array({event}));
  std::string text = status_text(status);
  EXPECT_NE(text.find(" at step  restarted  "), std::string::npos) << text;
  EXPECT_NE(text.find("       6  worker of rank 1, node 1 "), std::string::npos) << text;
  EXPECT_NE(text.find("        -  killed by SIGKILL"), std::string::npos) << text;
  auto undisturbed = status_of({"forward"});
  EXPECT_EQ(status_text(*undisturbed.as<fbs::Status>()).find("restarted  "), std::string::npos);
}

TEST(StatusView, SaysWhatDoesNotWorkWhileTrainingGoesOn) {
  auto message = msg::Message::build(1, 1, [](flatbuffers::FlatBufferBuilder& builder) {
    std::vector<flatbuffers::Offset<fbs::CellStatus>> cells;
    std::vector<flatbuffers::Offset<fbs::LauncherStatus>> launchers;
    std::vector texts = {builder.CreateString("The disk is full.")};
    return msg::Message::body(fbs::CreateStatusDirect(builder, "/r", 7, 50, 3, "training", &cells, &launchers, 2.5,
                                                      1000, -1, "", nullptr, nullptr, nullptr, &texts));
  });
  const auto& status = *message.as<fbs::Status>();
  EXPECT_EQ(nlohmann::json::parse(status_json(status))["degraded"], nlohmann::json({"The disk is full."}));
  EXPECT_NE(status_text(status).find("\ndegraded: The disk is full."), std::string::npos) << status_text(status);
  auto sound = status_of({"forward"});
  EXPECT_EQ(nlohmann::json::parse(status_json(*sound.as<fbs::Status>()))["degraded"], nlohmann::json::array());
  EXPECT_EQ(status_text(*sound.as<fbs::Status>()).find("degraded"), std::string::npos);
}

TEST(StatusView, SaysThatNoStepIsDoneYet) {
  auto first = status_of({"forward"}, 0, std::nan(""));
  std::string text = status_text(*first.as<fbs::Status>());
  EXPECT_NE(text.find("at step 0/50, generation 3, no step is done yet, no checkpoint yet"), std::string::npos) << text;
  EXPECT_TRUE(nlohmann::json::parse(status_json(*first.as<fbs::Status>()))["loss"].is_null());
  auto later = status_of({"forward"});
  EXPECT_NE(status_text(*later.as<fbs::Status>()).find("loss 2.5000, 1,000 tok/s"), std::string::npos);
}

TEST(StatusView, NamesTheNodesThatHaveNotCome) {
  auto message = status_of({"forward"}, 0, std::nan(""), {1, 3});
  const auto& status = *message.as<fbs::Status>();
  EXPECT_TRUE(status_text(status).ends_with("\nwaiting for nodes 1, 3")) << status_text(status);
  EXPECT_TRUE(where_text(status).ends_with("\nwaiting for nodes 1, 3")) << where_text(status);
  auto object = nlohmann::json::parse(status_json(status));
  EXPECT_EQ(object["missing_nodes"], (std::vector<int>{1, 3}));
  EXPECT_EQ(object["launchers"].size(), 1u);
}

TEST(StatusView, FindsTheRankThatEveryoneWaitsFor) {
  auto awaited = [](const std::vector<std::string>& operations) {
    return awaited_rank(*status_of(operations).as<fbs::Status>());
  };
  EXPECT_EQ(awaited({"gather embed", "forward layer.1.dense", "vote"}), 1);
  EXPECT_EQ(awaited({"gather embed", "gather embed"}), -1);
  EXPECT_EQ(awaited({"forward", "backward", "gather head"}), -1);
  EXPECT_EQ(awaited({"forward"}), -1);
  EXPECT_EQ(awaited({"combine layer.2.experts", "wait_update embed", "regather layer.1.dense, gradients"}), 1);
}

TEST(StatusView, NamesAServiceThatIsStoppedWhateverItDidLast) {
  auto message = status_of({"backward layer.1.dense", "reduce layer.1.dense"}, 7, 2.5, {}, "stopped");
  const auto& status = *message.as<fbs::Status>();
  EXPECT_EQ(awaited_rank(status), 1);
  EXPECT_TRUE(where_text(status).ends_with("\neveryone waits for worker of rank 1, which is stopped: kill -CONT 101"))
      << where_text(status);
}

/// Works in a run directory that nobody runs.
class StoppedRun : public ::testing::Test {
 protected:
  StoppedRun() {
    std::filesystem::create_directory(folder_.path() + "/ipc");
    enter_run(folder_.path());
  }
  ~StoppedRun() override { std::filesystem::current_path(before_); }
  std::filesystem::path before_ = std::filesystem::current_path();
  test::TemporaryFolder folder_;
};

TEST_F(StoppedRun, SaysStoppedWithItsLastStep) {
  std::ofstream("metrics.jsonl") << "{\"step\": 41, \"loss\": 2.5}\n{\"step\": 42, \"loss\": 2.4}\n";
  EXPECT_FALSE(run_is_alive());
  auto object = nlohmann::json::parse(idle_json("stopped", ""));
  EXPECT_EQ(object["state"], "stopped");
  EXPECT_EQ(object["step"], 42);
  EXPECT_TRUE(object["cells"].empty());
  EXPECT_NE(idle_text("stopped", "").find("stopped at step 42"), std::string::npos);
  EXPECT_NE(idle_text("recovering", "packing").find("; the launcher is packing"), std::string::npos);
  std::ofstream("metrics.jsonl", std::ios::app) << "{\"step\": -3}\n{\"step\": 18446744073709551615}\n";
  EXPECT_EQ(nlohmann::json::parse(idle_json("stopped", ""))["step"], 42) << "damaged lines do not count";
}

TEST_F(StoppedRun, ThatFailedSaysSoAndHow) {
  std::ofstream("metrics.jsonl") << "{\"step\": 42, \"loss\": 2.4}\n";
  keeper::note_failure("The worker of rank 1 ended: exit code 3; its last log lines:\nthe first\nthe second");
  EXPECT_THAT(idle_text("stopped", ""), testing::HasSubstr(": failed at step 42"));
  EXPECT_THAT(idle_text("stopped", ""), testing::HasSubstr("\nThe worker of rank 1 ended: exit code 3"));
  EXPECT_THAT(idle_text("stopped", ""), testing::Not(testing::HasSubstr("the first")));
  auto object = nlohmann::json::parse(idle_json("stopped", ""));
  EXPECT_EQ(object["state"], "stopped") << "scripts know these states";
  EXPECT_EQ(object["failure"], "The worker of rank 1 ended: exit code 3; its last log lines:");
  EXPECT_THAT(idle_text("recovering", ""), testing::HasSubstr("recovering at step 42"));
  keeper::clear_failure();
  EXPECT_THAT(idle_text("stopped", ""), testing::HasSubstr("stopped at step 42"));
  EXPECT_FALSE(nlohmann::json::parse(idle_json("stopped", "")).contains("failure"));
}

TEST_F(StoppedRun, WithAllItsStepsInACheckpointIsDone) {
  std::ofstream("config.toml") << "[run]\nsteps = 42\n";
  std::ofstream("metrics.jsonl") << "{\"step\": 42, \"loss\": 2.4}\n";
  EXPECT_NE(idle_text("stopped", "").find("stopped at step 42/42"), std::string::npos) << "it would begin again";
  std::filesystem::create_directory("checkpoint");
  service::Manifest manifest;
  manifest.step = 42;
  manifest.world = manifest.expert_group = 1;
  manifest.optimizer = "adamw";
  manifest.parts = {{0, 1, "h"}};
  service::write_manifest("checkpoint", manifest);
  EXPECT_NE(idle_text("stopped", "").find(": done at step 42/42, last checkpoint: step 42"), std::string::npos);
  EXPECT_NE(idle_text("recovering", "").find("recovering at step 42/42"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(idle_json("stopped", ""))["state"], "stopped");
}

}  // namespace
}  // namespace ganymede::cli
