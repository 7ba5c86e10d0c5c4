#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/os/files.h"
#include "launcher/supervisor/last_metrics.h"
#include "tests/support/tree.h"
#include "tests/unit/supervisor/step_log_fixture.h"

namespace ganymede::launcher {
namespace {

TEST_F(StepLogTest, WritesEveryKeyThatScriptsReadFor) {
  StepLog log(path_, 0, 10, silent_);
  take(log, {.step = 1, .loss = 0.1, .validation_loss = 2.25});
  auto line = lines().at(0);
  EXPECT_EQ(line["step"], 1);
  EXPECT_EQ(line["loss"].get<double>(), 0.1);
  EXPECT_EQ(line["tokens_per_second"].get<double>(), 5120);
  EXPECT_EQ(line["lanes"]["compute"], 7.5);
  EXPECT_EQ(line["waits"]["data"], 0.5);
  EXPECT_EQ(line["exposed_communication_ms"], 12.5);
  EXPECT_EQ(line["update_exposed_ms"], 1.25);
  EXPECT_FALSE(line.contains("attention_logit_max"));
  EXPECT_EQ(line["bytes_moved"]["all_gather"], 1e6);
  nlohmann::json traffic = {{"bucket", "experts"}, {"operation", "gather"}, {"wire", "fp8"}};
  traffic["bytes_inside_node"] = 1000;
  traffic["bytes_between_nodes"] = 200;
  EXPECT_EQ(line["traffic"], nlohmann::json::array({traffic}));
  EXPECT_EQ(line["memory"]["host_used"], 1);
  EXPECT_EQ(line["validation_loss"], 2.25);
  EXPECT_NEAR(line["mfu"].get<double>(), 0.1, 1e-12);
  for (const char* key : {"grad_norm", "lr", "step_ms", "imbalance", "restarts", "skipped_steps", "generation"})
    EXPECT_TRUE(line.contains(key)) << key;
}

TEST_F(StepLogTest, EveryKeyIsExplained) {
  StepLog log(path_, 0, 10, silent_);
  log.take_restart({.process = "data of rank 0"});
  take(log, {.step = 1, .skip = SkipReason::loss, .validation_loss = 2.25, .attention_logit_max = 80});
  std::string page = os::read_file(GANYMEDE_SOURCE_DIR "/docs/metrics.md");
  nlohmann::json line = lines().at(0);
  EXPECT_EQ(line["attention_logit_max"], 80);
  for (const auto& [key, value] : line.items())
    EXPECT_NE(page.find("`" + key + "`"), std::string::npos) << key << " is missing in docs/metrics.md";
}

TEST_F(StepLogTest, ARestartStandsInTheLineOfTheNextStepAlone) {
  StepLog log(path_, 0, 10, silent_);
  take(log, {.step = 1});
  log.take_restart({.number = 1,
                    .process = "worker of rank 1",
                    .worker = true,
                    .cause = "killed by SIGKILL",
                    .detect = 0,
                    .restart = 0.5,
                    .reform = 0.25,
                    .redo = 0.125,
                    .step = 1,
                    .generation = 2});
  take(log, {.step = 2});
  take(log, {.step = 3});
  auto all = lines();
  EXPECT_FALSE(all.at(0).contains("restart_events"));
  EXPECT_FALSE(all.at(2).contains("restart_events"));
  nlohmann::json event = {{"process", "worker of rank 1"}, {"node", 0}, {"cause", "killed by SIGKILL"}, {"step", 1}};
  event.update({{"generation", 2}, {"detect_ms", 0}, {"restart_ms", 500}, {"reform_ms", 250}, {"redo_ms", 125}});
  EXPECT_EQ(all.at(1)["restart_events"], nlohmann::json::array({event}));
}

TEST_F(StepLogTest, StepReportedAgainAfterARestartIsWrittenOnce) {
  StepLog log(path_, 0, 10, silent_);
  take(log, {.step = 1});
  take(log, {.step = 2});
  take(log, {.step = 2});
  take(log, {.step = 1});
  take(log, {.step = 3});
  ASSERT_EQ(lines().size(), 3u);
  EXPECT_EQ(lines()[2]["step"], 3);
}

TEST_F(StepLogTest, GoingOnFromACheckpointDropsTheStepsThatAreComputedAgain) {
  {
    StepLog log(path_, 0, 10, silent_);
    for (std::uint64_t step = 1; step <= 5; ++step)
      take(log, {.step = step, .skip = step == 2 ? SkipReason::loss : SkipReason::none});
  }
  StepLog log(path_, 3, 10, silent_);
  EXPECT_EQ(log.last_step(), 3u);
  take(log, {.step = 4, .loss = 9});
  auto all = lines();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[3]["loss"], 9);
  EXPECT_EQ(all[1]["skip_reason"], "loss");
  EXPECT_EQ(all[1]["skipped"], true);
  EXPECT_FALSE(all[3].contains("skip_reason"));
  EXPECT_EQ(all[3]["skipped_steps"], 1);  // the counts go on
  EXPECT_EQ(all[3]["skipped_loss"], 1);
  EXPECT_EQ(all[3]["skipped_non_finite"], 0);
  EXPECT_EQ(all[3]["restarts"], 4);  // those of the lines before and of this launch
}

TEST_F(StepLogTest, DamagedLinesNeitherHideNorDoubleSteps) {
  std::ofstream(path_) << "{\"step\": 1, \"loss\": 1}\n{\"step\": -2, \"loss\": 2}\n{\"step\": 3, \"loss\": 3}\n"
                       << "{\"step\": 18446744073709551615, \"loss\": 4, \"skipped_steps\": -1}\n";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Terminal shown(ends[1], false);
  StepLog log(path_, 4, 10, shown);
  EXPECT_EQ(log.last_step(), 3u);
  take(log, {.step = 5, .loss = 5});
  auto all = lines();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1]["step"], 3);
  EXPECT_EQ(all[2]["step"], 5);
  EXPECT_EQ(all[2]["skipped_steps"], 0);
  std::string told(4096, '\0');
  told.resize(static_cast<std::size_t>(::read(ends[0], told.data(), told.size())));
  EXPECT_NE(told.find(path_ + ": lines 2, 4 are damaged and left out.\n"), std::string::npos) << told;
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(StepLogTest, NoLossIsKnownBeforeTheFirstStep) {
  EXPECT_TRUE(std::isnan(StepLog(path_, 0, 10, silent_).last_loss()));
}

TEST_F(StepLogTest, RestartedLauncherKeepsAllLines) {
  {
    StepLog log(path_, 0, 10, silent_);
    for (std::uint64_t step = 1; step <= 5; ++step) take(log, {.step = step});
  }
  StepLog log(path_, 5, 10, silent_);
  take(log, {.step = 5});
  take(log, {.step = 6});
  EXPECT_EQ(lines().size(), 6u);
}

TEST_F(StepLogTest, LostReportOfAStepIsMadeGoodFromItsRecord) {
  StepLog log(path_, 0, 2, silent_);
  take(log, {.step = 1});
  step_protocol::DecisionRecord record;
  record.step = 2;
  record.loss_sum = 30;
  record.loss_tokens = 10;
  log.take_record(record, {.generation = 4, .restarts = 3});
  EXPECT_EQ(log.last_step(), 2u);
  EXPECT_EQ(lines().at(1)["loss"], 3.0);
  EXPECT_EQ(lines().at(1)["generation"], 4);
  EXPECT_EQ(read_last_metrics(path_)->restarts, 3);  // the next launch counts on from here
}

TEST_F(StepLogTest, StepOfWhichNothingIsLeftHasALineThatSaysSo) {
  {
    StepLog log(path_, 0, 9, silent_);
    take(log, {.step = 1, .skip = SkipReason::non_finite});
    log.take_gap(2, {.generation = 4});
    take(log, {.step = 3});
    ASSERT_EQ(lines().size(), 3u);
    EXPECT_EQ(lines()[1]["step"], 2);
    EXPECT_EQ(lines()[1]["loss"], nullptr);
    EXPECT_EQ(lines()[1]["lost"], true);
    EXPECT_EQ(lines()[1]["skipped_steps"], 1);
    log.take_gap(4, {});
  }
  StepLog log(path_, 4, 9, silent_);
  EXPECT_EQ(log.last_step(), 4u);
  take(log, {.step = 5});
  EXPECT_EQ(lines().at(4)["skipped_steps"], 1) << "the count goes on over a gap";
}

TEST_F(StepLogTest, LossOfAStepIsKnownForTheCheckpointThatFollows) {
  StepLog log(path_, 0, 10, silent_);
  take(log, {.step = 1, .loss = 4});
  EXPECT_EQ(log.loss_of(1), 4);
  EXPECT_TRUE(std::isnan(log.loss_of(2)));
}

TEST_F(StepLogTest, RunThatBeginsAnewHasNoLinesOfAnEarlierAttempt) {
  auto write = [&] { std::ofstream(path_) << "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": 2}\n"; };
  for (MetricsOrigin anew : {MetricsOrigin{.load_step = 30, .decided = 30, .load_from_other = true}, MetricsOrigin{}}) {
    write();
    std::string line = set_aside_older_metrics(path_, anew);
    EXPECT_NE(line.find("the 2 lines of an earlier attempt"), std::string::npos) << line;
    EXPECT_NE(line.find(path_ + ".old"), std::string::npos) << line;
    EXPECT_FALSE(read_last_metrics(path_));
    EXPECT_EQ(read_last_metrics(path_ + ".old")->step, 2u);
    EXPECT_EQ(set_aside_older_metrics(path_, anew), "") << "there is nothing to move";
    EXPECT_TRUE(read_last_metrics(path_ + ".old"));
  }
  write();
  EXPECT_EQ(set_aside_older_metrics(path_, {.load_step = 2, .decided = 2}), "") << "its own checkpoint";
  EXPECT_EQ(set_aside_older_metrics(path_, {.load_step = 30, .decided = 31, .load_from_other = true}), "")
      << "another launcher has begun";
  EXPECT_EQ(read_last_metrics(path_)->step, 2u);
}

TEST_F(StepLogTest, APipeInItsPlaceHoldsUpNobodyAndIsRefused) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(set_aside_older_metrics(path_, {}), "");
  EXPECT_FALSE(read_last_metrics(path_));
  Terminal terminal(STDOUT_FILENO, false);
  EXPECT_THROW(StepLog(path_, 0, 50, terminal), Error);
}

/// A limit on the size of files stands in for a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(StepLogTest, LinesThatAFullDiskDoesNotTakeAreWrittenInOrderOnceThereIsRoom) {
  StepLog log(path_, 0, 50, silent_);
  take(log, {.step = 1});
  EXPECT_EQ(log.trouble(), "");
  {
    FullDisk full(std::filesystem::file_size(path_) + 10);
    take(log, {.step = 2});
    log.take_gap(3, {});
    EXPECT_NE(log.trouble().find("cannot be written: File too large"), std::string::npos) << log.trouble();
    EXPECT_FALSE(log.write_waiting());
  }
  EXPECT_EQ(lines().size(), 1u);
  take(log, {.step = 4});
  EXPECT_EQ(log.trouble(), "");
  auto all = lines();
  ASSERT_EQ(all.size(), 4u);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i]["step"], i + 1);
}

TEST_F(StepLogTest, MoreLinesThanMemoryIsMeantForEndTheRun) {
  StepLog log(path_, 0, 50, silent_);
  FullDisk full(10);
  for (std::uint64_t step = 1; step <= StepLog::most_unwritten; ++step) log.take_gap(step, {});
  EXPECT_THROW(log.take_gap(StepLog::most_unwritten + 1, {}), Error);
}

TEST_F(StepLogTest, LastMetricsSkipsATornLine) {
  std::ofstream(path_) << "{\"step\": 4, \"loss\": 2.5}\n{\"step\": 5, \"lo";
  auto last = read_last_metrics(path_);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->step, 4u);
  EXPECT_EQ(last->loss, 2.5);
  EXPECT_FALSE(read_last_metrics(path_ + ".none"));
  std::ofstream(path_, std::ios::trunc) << "";
  EXPECT_FALSE(read_last_metrics(path_));
}

TEST_F(StepLogTest, ALineThatBelongsAfterAStepWaitsForItsReport) {
  std::string shown = folder_.path() + "/shown";
  int fd = ::open(shown.c_str(), O_WRONLY | O_CREAT, 0600);
  Terminal terminal(fd, false);
  {
    StepLog log(path_, 0, 6, terminal);
    take(log, {.step = 5});
    log.line_after(4, "checkpoint of step 4");
    log.line_after(6, "checkpoint of step 6");
    take(log, {.step = 6});
    log.line_after(7, "checkpoint of step 7");  // whose report is lost with the run
  }
  ::close(fd);
  std::ifstream file(shown);
  std::vector<std::string> begins;
  for (std::string line; std::getline(file, line);) begins.push_back(line.substr(0, line.find(" |")));
  EXPECT_EQ(begins, (std::vector<std::string>{"step 5/6", "checkpoint of step 4", "step 6/6", "checkpoint of step 6",
                                              "checkpoint of step 7"}));
}

}  // namespace
}  // namespace ganymede::launcher
